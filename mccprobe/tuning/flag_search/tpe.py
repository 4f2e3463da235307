"""Optuna's tree-structured Parzen estimator as a strategy. Extra: `search`.

The study lies in an SQLite file of its own: each answer is a committed transaction, so a killed search
loses at most the trial in flight, and several processes may work on one study (`--storage FILE`).
"""

from __future__ import annotations

import contextlib
import fcntl
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.tuning.flag_search.evaluate import Evaluator
from mccprobe.tuning.flag_search.space import Point, Space
from mccprobe.tuning.flag_search.strategies import best_of

STARTUP_TRIALS = 10  # at random before the estimator has anything to go by
WAIT_S = 60.0  # for another process's transaction
MAX_REPEATS = 50  # of points that are known already, one after the other: the space is used up


def require_optuna() -> Any:
    """The package. Raises UsageError without it."""
    try:
        import optuna
    except ImportError as error:
        raise UsageError("--strategy tpe needs the package optuna", hint=install_command("search")) from error
    return optuna


def tpe(evaluator: Evaluator, storage: Path, *, trials: int, seed: int) -> Point:
    """Until the study has `trials` finished ones, whoever made them. Raises UsageError without optuna, BudgetSpent."""
    optuna = require_optuna()
    space = evaluator.space
    study = _study(optuna, storage, seed, _signature(evaluator))
    finished = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    repeats = 0
    while len(study.get_trials(deepcopy=False, states=finished)) < trials and repeats < MAX_REPEATS:
        asked = study.ask()
        point = tuple(
            asked.suggest_categorical(f"{at}", list(range(len(one.choices)))) for at, one in enumerate(space.dimensions)
        )
        repeats = repeats + 1 if point in evaluator.trials else 0
        trial = evaluator.one(point)
        asked.set_user_attr("named", space.named(point))
        if trial.counts:
            study.tell(asked, trial.value)
        else:  # never a winner; the estimator takes it for worse than all
            study.tell(asked, state=optuna.trial.TrialState.PRUNED)
    best = space.baseline
    for entry in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)):
        found = tuple(int(entry.params[f"{at}"]) for at in range(len(space.dimensions)))
        if found not in evaluator.trials and entry.value == study.best_value:
            evaluator.one(found)  # another process's best is checked here before it wins here
        best = best_of(evaluator, [found], best)
    return best


def _signature(evaluator: Evaluator) -> dict[str, Any]:
    """What processes of one study must have in common."""
    space: Space = evaluator.space
    return {
        "dimensions": [[one.name, *(choice.text for choice in one.choices)] for one in space.dimensions],
        "objective": evaluator.meter.objective,
        "subject": evaluator.subject.described(),
    }


def _study(optuna: Any, storage: Path, seed: int, signature: dict[str, Any]) -> Any:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), _alone(storage):
        warnings.simplefilter("ignore")  # of experimental parts
        kept = optuna.storages.RDBStorage(
            f"sqlite:///{storage.absolute()}", engine_kwargs={"connect_args": {"timeout": WAIT_S}}
        )
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP_TRIALS, multivariate=True, constant_liar=True
        )
        study = optuna.create_study(study_name="flags", storage=kept, sampler=sampler, load_if_exists=True)
        known = study.user_attrs.get("signature")
        if known is None:
            study.set_user_attr("signature", signature)
        elif known != signature:
            raise UsageError(
                f"{storage} holds a search of another space, source or compiler", hint="choose another --storage"
            )
    return study


@contextlib.contextmanager
def _alone(storage: Path) -> Iterator[None]:
    """Two processes must not make the tables at once; the lock ends with its process."""
    with storage.with_name(storage.name + ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
