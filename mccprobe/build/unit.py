"""The one translation unit that is bisected: recorded once, brought to bitcode once, compiled once a limit.

    source --front end--> bitcode --flags + limit--> object of each device architecture (or the host's)
    offload only:  objects --device link--> images --bundle--> image --> host half, compiled once

A RecordedSource is one record.TranslationUnit with the jobs of its driver; its Units are variants that differ
in LLVM options alone (the bad build and its reference). Only the bisected compile gets a Unit's
options and a limit; the host half of an offload compile never does.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.executor import Urgency
from mccprobe.build.image import replace_image
from mccprobe.build.job import OUTPUT, SCRATCH, CompileJob, CompileOutcome
from mccprobe.build.ledger import Ledger
from mccprobe.build.record import TranslationUnit
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.protocol import UNLIMITED as UNLIMITED
from mccprobe.targets.protocol import Job, JobKind, PassCounter, Recording, Toolchain

PROVE_LATER_EXECUTIONS = 1000  # some 0.1 s of compile: above, the search does not wait for the direct compile
# What the host half is compiled with in place of a device image: found again by its content.
# Roomy, so that images also fit into the linked program in its place; larger ones are linked each.
PLACEHOLDER_IMAGE = b"mccprobe: a device image goes here\n" * 20_000


class RecordedSource:
    """One source with one set of driver arguments.

    jobs: the compiles that a limit applies to, one for each device architecture (plain C: one).
    active: index of the one that is bisected; the others keep their unlimited object.
    from_bitcode: False when the bitcode route is not known to give the direct compile's bytes.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        ledger: Ledger,
        record: TranslationUnit,
        *,
        name: str,
        timeout_s: float,
        prefix: Sequence[str] = (),
    ) -> None:
        self.toolchain = toolchain
        self.ledger = ledger
        self.record = record
        self.timeout_s = timeout_s
        self.prefix = tuple(prefix)
        self.folder = ledger.run.unit / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.env = {**toolchain.environment(Path(SCRATCH)), **record.environment}
        self.recording: Recording = toolchain.record(
            [*record.args, "-c", record.source, "-o", str(self.folder / "recorded.o")],
            self.folder,
            cwd=record.working_directory,
        )
        self.counter = _counter_of(toolchain)
        self.jobs = self._bisectable()
        self.active = 0
        self.from_bitcode = False
        self.bitcode: list[Path] = []
        self.notes: list[str] = []
        self._host_half: Future[Path] | None = None

    @property
    def source(self) -> Path:
        """The source, as messages name it."""
        return self.record.path

    @property
    def args(self) -> tuple[str, ...]:
        """Its compile options."""
        return self.record.args

    @property
    def offload(self) -> bool:
        """True when the driver compiles for a device and a host."""
        return self.jobs[0].kind is JobKind.DEVICE_COMPILE

    def _bisectable(self) -> tuple[Job, ...]:
        jobs = self.recording.jobs
        device = tuple(job for job in jobs if job.kind is JobKind.DEVICE_COMPILE)
        chosen = device or tuple(job for job in jobs if job.kind is JobKind.COMPILE)
        if not chosen or not all(self.counter.counts(job) for job in chosen):
            kinds = ", ".join(job.kind.value for job in jobs)
            raise ToolchainError(
                f"{self.source}: the driver's compile does not end in an object of one cc1 ({kinds}), "
                "so its passes cannot be counted",
                hint="leave out -flto, -fgpu-rdc, -fno-integrated-as, -S and -emit-llvm",
            )
        return chosen

    def one(self, kind: JobKind) -> Job:
        """The first job of a kind. Raises ToolchainError."""
        for job in self.recording.jobs:
            if job.kind is kind:
                return job
        raise ToolchainError(
            f"{self.source}: the driver shows no {kind.value} job",
            hint="see what it shows: " + " ".join(self.recording.command) + " -###",
        )

    def template(self) -> CompileJob:
        """What all compiles of this source share."""
        return CompileJob(
            argv=(),
            env=self.env,
            objects=self.ledger.run.objects,
            trials=self.ledger.run.root / "trials",
            timeout_s=self.timeout_s,
            cwd=self.record.working_directory,
            counter=self.counter,
        )

    def start_host_half(self) -> None:
        """Compile the host half in the background, once, with a placeholder for the image."""
        if self.offload and self._host_half is None:
            self._host_half = self.ledger.executor.submit(self._compile_host_half)

    def host_half(self) -> Path:
        """The host object with PLACEHOLDER_IMAGE in it."""
        self.start_host_half()
        assert self._host_half is not None
        return self._host_half.result()

    def _compile_host_half(self) -> Path:
        path = self.folder / "host.o"
        if not self.ledger.run.kept.usable(path):
            with self.ledger.run.scratch("host") as scratch:
                self.host_compile(PLACEHOLDER_IMAGE, scratch / "host.o", scratch)
                self.ledger.run.kept.keep(scratch / "host.o", path)
        return path

    def host_compile(self, image: bytes, output: Path, scratch: Path) -> None:
        """The driver's host compile, untouched but for the image that it embeds and where it writes."""
        job = self.one(JobKind.HOST_COMPILE_WITH_IMAGE)
        given = scratch / "image"
        given.write_bytes(image)
        bundle = self.one(JobKind.BUNDLE).output
        # its inputs are the user's, relative to the folder that the compile ran in
        paths = {bundle: str(given), job.output: str(output)}
        self.replay(job.substitute(paths), scratch, cwd=self.record.working_directory)

    def replay(self, job: Job, scratch: Path, *, cwd: Path | None) -> None:
        """Run a recorded job. Raises ToolchainError with its own message."""
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in self.env.items()}
        result = run(RunSpec(job.argv, cwd=cwd, env=env, timeout_s=self.timeout_s))
        if not result.ok:
            raise ToolchainError(
                f"{job.kind.value} of {self.source} does not work: {result.describe()}",
                detail=result.stderr_text.strip(),
                hint="replayed as the driver shows it: " + " ".join(job.argv),
            )

    def front_ends(self) -> list[Future[CompileOutcome]]:
        """Start the compiles to bitcode."""
        jobs = []
        for job in self.jobs if self.counter.has_ir else ():
            argv = (*self.prefix, *self.counter.front_end(job, OUTPUT))
            jobs.append(replace(self.template(), argv=argv, suffix=".bc", label="front end"))
        return [self.ledger.submit(job) for job in jobs]

    def keep_bitcode(self, front_ends: Sequence[Future[CompileOutcome]]) -> bool:
        """Take the finished bitcode; False (with a note, where it was asked for) when there is none."""
        if not self.counter.has_ir:
            return False
        for index, future in enumerate(front_ends):
            outcome = future.result()
            if outcome.object is None:
                why = f"the front end alone gives nothing ({outcome.reason})"
                self.notes.append(f"{why}; every trial compiles the source")
                return False
            path = self.folder / f"{index}.bc"
            shutil.copyfile(self.ledger.run.object_path(outcome.object), path)
            self.bitcode.append(path)
        return True


def _counter_of(toolchain: Toolchain) -> PassCounter:
    if toolchain.counter is None:
        raise ToolchainError(
            f"{toolchain.name} cannot count pass executions, so nothing can be bisected with it",
            hint="mccprobe toolchains lists what each toolchain can do",
        )
    return toolchain.counter


class Unit:
    """One variant of a recorded source: its LLVM options, its unlimited objects, its trials.

    flags: of LLVM each, for a driver's own are in the recording.
    base: the unlimited object of each job, filled by `finish`; samples: the same, addresses not fixed.
    """

    def __init__(self, recorded: RecordedSource, tag: str, flags: Sequence[CompilerFlag] = ()) -> None:
        self.recorded = recorded
        self.tag = tag
        self.options = tuple(flag.option for flag in flags)
        self.driver_flags = tuple(word for flag in flags for word in flag.argv)
        self.base: list[str] = []
        self.samples: list[str] = []
        self.proved = True  # False while the bitcode route has not been compared with the direct compile

    @property
    def ledger(self) -> Ledger:
        return self.recorded.ledger

    @property
    def source(self) -> Path:
        return self.recorded.source

    @property
    def variant(self) -> str:
        """Names what an object is linked into: one object for two architectures makes two programs."""
        source = self.recorded
        return self.tag if len(source.jobs) == 1 else f"{self.tag}-{source.jobs[source.active].arch}"

    # -- compiles -----------------------------------------------------------------------------

    def job(
        self,
        limit: int | None = None,
        *,
        index: int | None = None,
        options: Sequence[str] = (),
        ordinal: int = 0,
        fixed: bool = True,
        emit: str = "-emit-obj",
        from_source: bool = False,
        label: str = "",
    ) -> CompileJob:
        """The compile at one limit (None: no limit option).

        options: further LLVM options, in place of those that are there. fixed: address randomisation off.
        """
        source = self.recorded
        which = source.active if index is None else index
        bitcode = source.from_bitcode and not from_source
        argv = source.counter.at_limit(
            source.jobs[which],
            str(source.bitcode[which]) if bitcode else "",
            OUTPUT,
            limit=limit,
            options=self.options,
            emit=emit,
            bitcode=bitcode,
        )
        if options:
            argv = source.counter.with_options(argv, options)
        return replace(
            source.template(),
            argv=(*(source.prefix if fixed else ()), *argv),
            limit=limit,
            ordinal=ordinal,
            around=limit if limit is not None and limit > 0 else 0,
            label=label or f"{self.tag} limit {limit}",
        )

    def repeat_job(self, limit: int | None, *, ordinal: int, env: Mapping[str, str]) -> CompileJob:
        """The compile again, addresses not fixed.

        Plain C without a limit goes through the driver, as the user would repeat it; everything else is
        the very compile that the search makes.
        """
        source = self.recorded
        job = self.job(limit, fixed=False, ordinal=ordinal)
        if not source.offload and limit is None:
            given = source.record.with_args((*source.args, *self.driver_flags))
            job = replace(job, argv=given.argv(source.toolchain, OUTPUT))
        return replace(job, env={**job.env, **env}, label=f"{self.tag} repeat {ordinal} of limit {limit}")

    def plain_back_end_job(self, ir: Path, label: str) -> CompileJob | None:
        """Optimised IR through another code generator: -O0, without this unit's options. None at -O0 already."""
        source = self.recorded
        counter = source.counter
        argv = counter.at_limit(source.jobs[source.active], str(ir), OUTPUT, limit=None, bitcode=True)
        argv = counter.code_generator(argv)
        plain = counter.plain(argv)
        if plain == argv:
            return None
        return replace(source.template(), argv=(*source.prefix, *plain), label=label)

    def start(self, *, fixed: bool = True, urgency: Urgency = Urgency.NOW) -> list[Future[CompileOutcome]]:
        """Start the user's compile: from the source, without a limit."""
        jobs = [
            self.job(index=index, from_source=True, fixed=fixed, label=f"{self.tag} direct")
            for index in range(len(self.recorded.jobs))
        ]
        return [self.ledger.submit(job, urgency=urgency) for job in jobs]

    def begin(self) -> None:
        """Start what `finish` waits for."""
        self.recorded.front_ends()
        self.recorded.start_host_half()
        self.start(fixed=False, urgency=Urgency.LATER)

    def finish(self, variants: Sequence[Unit] = (), *, prove_later: bool = False) -> None:
        """Make the bitcode, and check that it gives the object of the direct compile.

        variants: others of the same source, whose unlimited compile may start as soon as there is bitcode.
        prove_later: of a large unit the direct compile is not waited for; ask `bitcode_holds` in the end.
        Raises SourceDoesNotCompile with the compiler's message.
        """
        source = self.recorded
        direct = self.start(fixed=False, urgency=Urgency.LATER)
        if not source.keep_bitcode(source.front_ends()):
            self.samples = [self._require(future.result()) for future in direct]
            self.base = [self._require(future.result()) for future in self.start()]
            return
        source.from_bitcode = True
        # with limit -1 at once: that is the bad end, which every search needs
        again = [self.ledger.submit(self.job(UNLIMITED, index=index)) for index in range(len(source.jobs))]
        for variant in variants:
            variant.start_unlimited()
        outcomes = [future.result() for future in again]
        self.base = [outcome.object for outcome in outcomes if outcome.object is not None]
        self.proved = False
        large = sum(outcome.log.total for outcome in outcomes) > PROVE_LATER_EXECUTIONS
        if prove_later and large and len(self.base) == len(outcomes):
            return
        if not self.bitcode_holds():
            source.from_bitcode = False
            source.notes.append(
                "compiling from cached bitcode does not give the object of the direct compile; every trial compiles "
                "the source"
            )

    def bitcode_holds(self) -> bool:
        """Compare with the direct compile. False sets `base` to what the source gives.

        The direct compile ran without fixed addresses: where it differs, one with them decides.
        """
        if not self.proved:
            self.proved = True
            direct = self.start(fixed=False, urgency=Urgency.LATER)
            self.samples = [self._require(future.result()) for future in direct]
            if self.samples != self.base:
                fixed = [self._require(future.result()) for future in self.start()]
                self.proved = fixed == self.base
                self.base = fixed
        return self.proved

    def prepare_from(self, other: Unit) -> None:
        """As another variant of the same source, or from the source alone where there is no bitcode."""
        assert other.recorded is self.recorded
        self.base = [self._require(future.result()) for future in self.start_unlimited()]

    def start_unlimited(self) -> list[Future[CompileOutcome]]:
        """Start the compile without a limit, from bitcode where there is some."""
        jobs = [self.job(index=i, label=f"{self.tag} unlimited") for i in range(len(self.recorded.jobs))]
        return [self.ledger.submit(job) for job in jobs]

    def prepare_direct(self) -> None:
        """Compile from the source once; no bitcode is made."""
        self.base = [self._require(future.result()) for future in self.start()]

    def _require(self, outcome: CompileOutcome) -> str:
        if outcome.object is None:
            source = self.recorded
            command = (*source.toolchain.driver, *source.args, *self.driver_flags, "-c", source.record.source)
            raise SourceDoesNotCompile(
                f"{source.source} does not compile ({outcome.reason})",
                detail=outcome.diagnostics,
                hint="the same command without mccprobe must work first: " + " ".join(command),
            )
        return outcome.object

    # -- from the object to something that links -------------------------------------------------

    def linkable(self, digest: str) -> Path:
        """A host object file that holds this object of the active job. Plain C: the object itself."""
        source = self.recorded
        if not source.offload:
            return self.ledger.run.object_path(digest)
        target = self.ledger.run.programs / f"{self.variant}-{digest}.o"
        if self.ledger.run.kept.usable(target):
            return target
        image = self.image(digest)
        patched = replace_image(source.host_half().read_bytes(), PLACEHOLDER_IMAGE, image)
        temporary = target.with_suffix(".tmp")
        if patched is not None:
            temporary.write_bytes(patched)
        else:
            # the image is embedded in a way that cannot be patched: replay the host compile, untouched but for it
            note = "the host half is replayed for each image (flags untouched): its image section was not recognised"
            if note not in source.notes:
                source.notes.append(note)
            with self.ledger.run.scratch("host") as scratch:
                source.host_compile(image, temporary, scratch)
        return self.ledger.run.kept.keep(temporary, target)

    def image(self, digest: str) -> bytes:
        """Device link and bundle with this object of the active job."""
        source = self.recorded
        with self.ledger.run.scratch("image") as scratch:
            paths: dict[str, str] = {}
            for index, job in enumerate(source.jobs):
                chosen = digest if index == source.active else self.base[index]
                # a link by a name of its own: the linker may write input names into the image
                name = scratch / f"device-{index}.o"
                name.symlink_to(self.ledger.run.object_path(chosen))
                paths[job.output] = name.name
            links = [job for job in source.recording.jobs if job.kind is JobKind.DEVICE_LINK]
            for number, job in enumerate(links):
                paths[job.output] = f"device-{number}.image"
                source.replay(job.substitute(paths), scratch, cwd=scratch)
            bundle = source.one(JobKind.BUNDLE)
            paths[bundle.output] = "bundle"
            source.replay(bundle.substitute(paths), scratch, cwd=scratch)
            return (scratch / "bundle").read_bytes()
