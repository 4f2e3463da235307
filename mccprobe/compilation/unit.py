"""The one source that is bisected: recorded once, brought to bitcode once, compiled once a limit.

    source --front end--> bitcode --flags + limit--> object of each device architecture (or the host's)
    offload only:  objects --device link--> images --bundle--> image --> host half, compiled once

Only the bisected compile gets flags and a limit; the host half of an offload compile never does.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.compilation.image import replace_image
from mccprobe.compilation.job import OUTPUT, SCRATCH, CompileJob, CompileOutcome
from mccprobe.compilation.ledger import Ledger
from mccprobe.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.process import RunSpec, run
from mccprobe.toolchain.base import Recording, Toolchain
from mccprobe.toolchain.jobs import Job, JobKind, back_end_argv, emits_object, front_end_argv

UNLIMITED = -1


class Unit:
    """Compiles of one source with one set of arguments.

    jobs: the compiles that a limit applies to, one for each device architecture (plain C: one).
    active: index of the one that is bisected; the others keep their unlimited object.
    from_bitcode: False when the bitcode route did not give the direct compile's bytes.
    """

    def __init__(
        self, toolchain: Toolchain, ledger: Ledger, source: Path, args: Sequence[str], *,
        tag: str, timeout_s: float, prefix: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.toolchain = toolchain
        self.ledger = ledger
        self.source = source
        self.args = tuple(args)
        self.tag = tag
        self.timeout_s = timeout_s
        self.prefix = tuple(prefix)
        self.folder = ledger.run.unit / tag
        self.folder.mkdir(parents=True, exist_ok=True)
        self.env = toolchain.environment(Path(SCRATCH))
        self.recording: Recording = toolchain.record(
            [*args, "-c", str(source), "-o", str(self.folder / "recorded.o")], self.folder
        )
        self.jobs = self._bisectable()
        self.active = 0
        self.from_bitcode = False
        self.notes: list[str] = []
        self.base: list[str] = []  # unlimited object of each job
        self._bitcode: list[Path] = []
        self._host_half: bytes = b""
        self._base_image: bytes = b""

    @property
    def offload(self) -> bool:
        """True when the driver compiles for a device and a host."""
        return self.jobs[0].kind is JobKind.DEVICE_COMPILE

    def _bisectable(self) -> tuple[Job, ...]:
        jobs = self.recording.jobs
        device = tuple(job for job in jobs if job.kind is JobKind.DEVICE_COMPILE)
        chosen = device or tuple(job for job in jobs if job.kind is JobKind.COMPILE)
        if not chosen or not all(emits_object(job) for job in chosen):
            kinds = ", ".join(job.kind.value for job in jobs)
            raise ToolchainError(
                f"{self.source}: the driver's compile does not end in an object of one cc1 ({kinds}), "
                "so its passes cannot be counted",
                hint="leave out -flto, -fgpu-rdc, -fno-integrated-as, -S and -emit-llvm",
            )
        return chosen

    # -- compiles -----------------------------------------------------------------------------

    def job(
        self, limit: int | None = None, *, index: int | None = None, options: Sequence[str] = (), ordinal: int = 0,
        around: int = 0, fixed: bool = True, emit: str = "-emit-obj", from_source: bool = False, label: str = "",
    ) -> CompileJob:  # fmt: skip
        """The compile at one limit (None: no limit option). fixed: with address randomisation off."""
        which = self.active if index is None else index
        if limit is not None:
            options = [*options, f"-opt-bisect-limit={limit}"]
        bitcode = self.from_bitcode and not from_source
        argv = back_end_argv(
            self.jobs[which], str(self._bitcode[which]) if bitcode else "", OUTPUT,
            language="ir" if bitcode else "", options=options, emit=emit,
        )  # fmt: skip
        return CompileJob(
            argv=(*(self.prefix if fixed else ()), *argv),
            env=self.env, objects=self.ledger.run.objects, trials=self.ledger.run.root / "trials",
            timeout_s=self.timeout_s, limit=limit, ordinal=ordinal, around=around,
            label=label or f"{self.tag} limit {limit}",
        )  # fmt: skip

    def repeat_job(self, limit: int | None, *, ordinal: int, env: Mapping[str, str]) -> CompileJob:
        """The compile as the user would repeat it: from the source, addresses not fixed.

        Plain C goes through the driver; of an offload compile only the active device job is run.
        """
        if self.offload:
            job = self.job(limit, fixed=False, from_source=True, ordinal=ordinal)
        else:
            options = [] if limit is None else ["-mllvm", f"-opt-bisect-limit={limit}"]
            command = (*self.toolchain.driver, *self.args, *options, "-c", str(self.source), "-o", OUTPUT)
            job = replace(self.job(limit, from_source=True, ordinal=ordinal), argv=command)
        return replace(job, env={**job.env, **env}, label=f"{self.tag} repeat {ordinal} of limit {limit}")

    def prepare(self, *, bitcode: bool = True) -> None:
        """Compile directly once, make the bitcode, and check that both routes give one object.

        Raises SourceDoesNotCompile with the compiler's message.
        """
        direct = [self.ledger.submit(self.job(index=i, from_source=True, label=f"{self.tag} direct")) for i in
                  range(len(self.jobs))]  # fmt: skip
        front_ends = [self.ledger.submit(self._front_end(i)) for i in range(len(self.jobs))] if bitcode else []
        for future in direct:
            self.base.append(self._require(future.result()))
        if not bitcode:
            return
        for index, future in enumerate(front_ends):
            outcome = future.result()
            if outcome.object is None:
                self.notes.append(f"the front end alone does not run ({outcome.reason}); every trial compiles the source")
                return
            path = self.folder / f"{index}.bc"
            shutil.copyfile(self.ledger.run.object_path(outcome.object), path)
            self._bitcode.append(path)
        self.from_bitcode = True
        again = [self.ledger.submit(self.job(index=i, label=f"{self.tag} from bitcode")) for i in range(len(self.jobs))]
        if [future.result().object for future in again] != self.base:
            self.from_bitcode = False
            self.notes.append(
                "compiling from cached bitcode does not give the object of the direct compile; every trial compiles "
                "the source"
            )

    def _front_end(self, index: int) -> CompileJob:
        argv = (*self.prefix, *front_end_argv(self.jobs[index], OUTPUT))
        return replace(self.job(index=index, from_source=True, label=f"{self.tag} front end"), argv=argv, suffix=".bc")

    def _require(self, outcome: CompileOutcome) -> str:
        if outcome.object is None:
            raise SourceDoesNotCompile(
                f"{self.source} does not compile ({outcome.reason})",
                detail=outcome.diagnostics,
                hint="the same command without mccprobe must work first: "
                + " ".join((*self.toolchain.driver, *self.args, "-c", str(self.source))),
            )
        return outcome.object

    # -- from the object to something that links -------------------------------------------------

    def linkable(self, digest: str) -> Path:
        """A host object file that holds this object of the active job. Plain C: the object itself."""
        if not self.offload:
            return self.ledger.run.object_path(digest)
        target = self.ledger.run.programs / f"{digest}.o"
        if target.is_file():
            return target
        self._prepare_host_half()
        image = self._image(digest)
        patched = replace_image(self._host_half, self._base_image, image)
        temporary = target.with_suffix(".tmp")
        if patched is not None:
            temporary.write_bytes(patched)
        else:
            # The host compile embeds the image in a way that cannot be patched: replay it, untouched but for the image.
            note = "the host half is replayed for each image (flags untouched): its image section was not recognised"
            if note not in self.notes:
                self.notes.append(note)
            with self.ledger.run.scratch("host") as scratch:
                self._host_compile(image, temporary, scratch)
        temporary.replace(target)
        return target

    def _prepare_host_half(self) -> None:
        if self._host_half:
            return
        path, image = self.folder / "host.o", self.folder / "base.image"
        if not (path.is_file() and image.is_file()):
            base = self._image(self.base[self.active])
            with self.ledger.run.scratch("host") as scratch:
                self._host_compile(base, scratch / "host.o", scratch)
                image.write_bytes(base)
                (scratch / "host.o").replace(path)
        self._host_half, self._base_image = path.read_bytes(), image.read_bytes()

    def _host_compile(self, image: bytes, output: Path, scratch: Path) -> None:
        job = self._one(JobKind.HOST_COMPILE_WITH_IMAGE)
        given = scratch / "image"
        given.write_bytes(image)
        bundle = self._one(JobKind.BUNDLE).output
        self._replay(job.substitute({bundle: str(given), job.output: str(output)}), scratch)

    def _image(self, digest: str) -> bytes:
        """Device link and bundle with this object of the active job."""
        with self.ledger.run.scratch("image") as scratch:
            paths: dict[str, str] = {}
            for index, job in enumerate(self.jobs):
                chosen = digest if index == self.active else self.base[index]
                # a link by a name of its own: the linker writes input names into the image
                name = scratch / f"device-{index}.o"
                name.symlink_to(self.ledger.run.object_path(chosen))
                paths[job.output] = name.name
            for number, job in enumerate(j for j in self.recording.jobs if j.kind is JobKind.DEVICE_LINK):
                paths[job.output] = f"device-{number}.image"
                self._replay(job.substitute(paths), scratch)
            bundle = self._one(JobKind.BUNDLE)
            paths[bundle.output] = "bundle"
            self._replay(bundle.substitute(paths), scratch)
            return (scratch / "bundle").read_bytes()

    def _one(self, kind: JobKind) -> Job:
        for job in self.recording.jobs:
            if job.kind is kind:
                return job
        raise ToolchainError(f"{self.source}: the driver shows no {kind.value} job", hint="see run.json for its jobs")

    def _replay(self, job: Job, scratch: Path) -> None:
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in self.env.items()}
        # relative inputs of device jobs are ours; the host compile's own inputs are the user's, by their cwd
        cwd = None if job.kind is JobKind.HOST_COMPILE_WITH_IMAGE else scratch
        result = run(RunSpec(job.argv, cwd=cwd, env=env, timeout_s=self.timeout_s))
        if not result.ok:
            raise ToolchainError(
                f"{job.kind.value} of {self.source} does not work: {result.describe()}",
                detail=result.stderr_text.strip(),
                hint="replayed as the driver shows it: " + " ".join(job.argv),
            )
