"""`mccprobe report`: from files to one record of all kernels, and to the document of `--json`.

Flow: file or source -> images (`mccprobe.objects.binary`) -> kernels -> `KernelResources` (`mccprobe.objects.model`).
Nothing is printed here. What a file does not say is None, never 0.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.errors import InputError, MccprobeError
from mccprobe.build.device_source import SourceOptions, compile_source, is_source, resource_text, sources_and_arguments
from mccprobe.inspection.demangled import demangled
from mccprobe.inspection.disasm import ImageView, view
from mccprobe.inspection.host_elf import SIM_HEADING, host_kernels
from mccprobe.inspection.instructions import ImageCode, disassemblers, image_code
from mccprobe.inspection.published import Comparison, compare
from mccprobe.objects.binary.elf import is_linked
from mccprobe.objects.binary.read import MAX_FILE_BYTES, is_simulated, read_images, read_kernels
from mccprobe.objects.binary.records import DeviceImage, KernelMetadata
from mccprobe.objects.isa.by_table import tables_folder
from mccprobe.objects.isa.disassemble import Disassemblers, disassemble
from mccprobe.objects.model.frames import Frame, kernels_frame
from mccprobe.objects.model.resources import UNITS, InstructionMix, KernelResources, Options, resources_of
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.targets import registry
from mccprobe.targets.choose import wanted_of
from mccprobe.targets.nvidia.ptxas import (
    SOURCE_FORMAT,
    USAGE_FORMAT,
    counts_of_sections,
    kernels_of_text,
    usage_format,
)
from mccprobe.targets.protocol import ResourceText, Target

_FOREIGN = "its device code is of a kind that is not read here"


@dataclass(frozen=True)
class ReportRequest:
    """What to report.

    compare: the kernel whose published figures stand beside it, None for none.

    count_instructions: what takes most of the time where a disassembler must be run.
    functions: of how many kernels, from the first, the code is kept for a closer look.
    """

    files: Sequence[Path]
    options: Options = field(default_factory=Options)
    source: SourceOptions = field(default_factory=SourceOptions)
    compare: KernelSpec | None = None
    count_instructions: bool = True
    functions: int = 0


@dataclass(frozen=True)
class ResourceReport:
    """All kernels of all files, in the order of the files. told: on how sources were compiled.

    functions: index of a kernel -> its code, of as many as were asked for and something here reads.
    """

    kernels: tuple[KernelResources, ...]
    warnings: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    comparison: Comparison | None = None
    functions: Mapping[int, ImageView] = field(default_factory=dict)

    def frame(self) -> Frame:
        """One row a kernel as a pandas frame. Raises UsageError without pandas."""
        return kernels_frame(self.kernels)

    def to_dict(self) -> dict[str, Any]:
        """The document of `--json` (reports/report.schema.json)."""
        return {**self.document(), "kernels": [kernel.to_dict() for kernel in self.kernels]}

    def document(self) -> dict[str, Any]:
        """The same for `json_stream`, with the kernels still as records."""
        return {
            "schema_version": 1,
            "tool_version": __version__,
            "status": "ok",
            "units": dict(UNITS),
            "kernels": list(self.kernels),
            "comparison": self.comparison.to_dict() if self.comparison is not None else None,
            "told": list(self.told),
            "warnings": list(self.warnings),
        }


def report_on(
    request: ReportRequest, tell: Callable[[int, int, str], None] = lambda done, of, what: None
) -> ResourceReport:
    """Read (and compile) everything. tell: files done, all, the next one.

    Raises InputError, SourceDoesNotCompile, CompilerNotFound.
    """
    kernels: list[KernelResources] = []
    warnings: list[str] = []
    told: list[str] = []
    functions: dict[int, ImageView] = {}
    damaged: list[InputError] = []
    words: dict[int, int | None] = {}  # index of a kernel -> words of its main loop
    tools = replace(disassemblers(request.source.mcc), tables=tables_folder())
    with tempfile.TemporaryDirectory(prefix="mccprobe-report-") as folder:
        for number, path in enumerate(request.files):
            tell(number, len(request.files), str(path))
            named = registry.find(request.source.toolchain)
            if named is not None and named.printed is not None and is_source(path):
                kernels += _printed(named, named.printed, path, request, Path(folder), told)
                continue
            foreign = _read_by_a_target(path, request)
            if foreign is not None:
                kernels += foreign
                continue
            for file, heading, simulated in _inputs(path, request.source, Path(folder), told):
                for image in _readable(path, file, warnings):
                    origin = image.origin.replace(str(file), str(path), 1)
                    try:
                        found = list(_kernels(image, tools, request, origin, heading, simulated, warnings))
                    except InputError as error:  # one damaged image of several
                        damaged.append(error)
                        warnings.append(error.message.replace(str(file), str(path)))
                        continue
                    kept = found[: max(0, request.functions - len(kernels))]
                    shown = _functions(image, tools, [kernel for kernel, _ in kept])
                    functions |= {len(kernels) + at: function for at, function in shown.items()}
                    for kernel, code in found:
                        words[len(kernels)] = _loop_words(kernel, code, request)
                        kernels.append(kernel)
    if damaged and not kernels:
        raise damaged[0]
    if not kernels and not warnings:
        warnings.append("no kernel found: is it device code, and was it stripped?")
    names = demangled(kernel.kernel.name for kernel in kernels)
    kernels = [replace(one, demangled=names[one.kernel.name]) if one.kernel.name in names else one for one in kernels]
    comparison = compare(request.compare, kernels, words) if request.compare is not None else None
    once = tuple(dict.fromkeys(warnings)), tuple(dict.fromkeys(told))
    return ResourceReport(tuple(kernels), *once, comparison, functions)


def _read_by_a_target(path: Path, request: ReportRequest) -> list[KernelResources] | None:
    """Kernels of an object whose format a target alone knows; None where no target does."""
    for read in (target.reads for target in registry.targets()):
        if read is None or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            continue
        found = read(path.read_bytes(), str(path))
        if found is not None:
            mix = InstructionMix(None, reason="not counted: no disassembler is known for this format")
            return [resources_of(one, origin=str(path), options=request.options, mix=mix) for one in found]
    return None


def _printed(
    target: Target, printed: ResourceText, path: Path, request: ReportRequest, scratch: Path, told: list[str]
) -> list[KernelResources]:
    """What the compiler itself prints of a source."""
    toolchain = target.find(wanted_of(request.source.mcc, request.source.cache)).toolchain
    told.append(f"{path} compiled by {printed.compiler} for the {toolchain.heading}")
    sources, args = sources_and_arguments(path, request.source)
    mix = InstructionMix(None, reason=printed.uncounted)
    return [
        resources_of(metadata, origin=str(source), options=request.options, mix=mix, heading=toolchain.heading)
        for source in sources
        for metadata in printed.parse(resource_text(toolchain, printed, source, args, scratch))
    ]


def _readable(path: Path, file: Path, warnings: list[str]) -> list[DeviceImage]:
    """The images of a file that are known here, the others as warnings. Raises InputError when there is none."""
    found = [
        replace(image, kind=usage_format(image.data)) if image.kind == "unknown" and usage_format(image.data) else image
        for image in read_images(file)
    ]
    images = [image for image in found if image.kind != "unknown"]
    warnings += [
        f"{image.origin.replace(str(file), str(path), 1)}: of no known kind, left out"
        for image in found
        if image.kind == "unknown" and images
    ]
    hosts = [image for image in images if image.kind == "host-elf" and not is_simulated(image)]
    programs = [image for image in hosts if is_linked(image.data)]
    if programs and file == path:
        about = _FOREIGN if len(images) < len(found) else "no device code"
        warnings += [f"{path}: host program ({image.target}), {about}" for image in programs]
        return [image for image in images if image not in programs]
    if not images:
        raise InputError(
            f"{path}: neither an object, a bundle, an assembly text nor a listing",
            hint="mccprobe report takes what mcc or clang made, and .mu and .cu sources",
        )
    return images


def _inputs(path: Path, options: SourceOptions, scratch: Path, told: list[str]) -> Iterator[tuple[Path, str, bool]]:
    """(file to read, heading, simulated): the path itself, or what its compile made."""
    if not is_source(path):
        yield path, "", False
        return
    for made in compile_source(path, options, scratch):
        told += made.told
        yield made.path, made.heading, made.simulated


def _kernels(
    image: DeviceImage,
    tools: Disassemblers,
    request: ReportRequest,
    origin: str,
    heading: str,
    simulated: bool,
    warnings: list[str],
) -> Iterator[tuple[KernelResources, ImageCode]]:
    if image.kind in (SOURCE_FORMAT, USAGE_FORMAT):
        code = ImageCode(reason="not counted: this text has resources only")
    elif request.count_instructions or image.kind == "listing":
        code = image_code(image, tools)
    else:
        code = ImageCode(reason="not asked for (--no-instructions)")
    if image.kind == "host-elf":
        simulated = simulated or is_simulated(image)
        heading = heading or (SIM_HEADING if simulated else "")
        listed = [metadata for metadata, _ in host_kernels(image, simulated=simulated)]
    elif image.kind == "listing":
        counts = counts_of_sections(image.data)
        listed = [_of_listing(image, name, counts.get(name, {})) for name in code.counts]
    elif image.kind in (SOURCE_FORMAT, USAGE_FORMAT):
        listed = kernels_of_text(image.data)
    else:
        listed, more = read_kernels(image)
        warnings += [warning if origin in warning else f"{origin}: {warning}" for warning in more]
    for metadata in listed:
        names = (metadata.symbol, metadata.name)
        warnings += [f"{origin}: {metadata.name}: {warning}" for warning in metadata.warnings]
        yield (
            resources_of(
                metadata,
                origin=origin,
                options=request.options,
                mix=_mix(metadata, code),
                declared_shared=code.shared_of(*names),
                heading=heading,
            ),
            code,
        )


def _functions(image: DeviceImage, tools: Disassemblers, kernels: Sequence[KernelResources]) -> dict[int, ImageView]:
    """The listing with that kernel alone, by its index; {} where nothing here reads it. Host code is left out."""
    wanted = {
        name: at
        for at, kernel in enumerate(kernels)
        if kernel.kernel.source_format != "host-elf"
        for name in (kernel.kernel.name, kernel.kernel.symbol)
        if name
    }
    if not wanted:
        return {}
    try:
        listing = disassemble(image, tools)
    except MccprobeError:
        return {}
    named = {function.name for function in listing.listing.functions}
    return {at: view(listing, name) for name, at in wanted.items() if name in named}


def _mix(metadata: KernelMetadata, code: ImageCode) -> InstructionMix:
    return code.mix_of(metadata.name, metadata.symbol, (metadata.symbol or "").removesuffix(".kd"))


def _of_listing(image: DeviceImage, name: str, counts: Mapping[str, int]) -> KernelMetadata:
    """A listing has code and no metadata; counts: what nvdisasm prints at the head of a section."""
    return KernelMetadata(
        name=name,
        symbol=name,
        target=image.target,
        source_format=image.kind,
        registers={"vector": counts["REGISTERS"]} if "REGISTERS" in counts else {},
        shared_memory_bytes=None,
        private_memory_bytes=None,
        spills=None,
        has_barrier=counts["BARRIERS"] > 0 if "BARRIERS" in counts else None,
        max_block_size=None,
        code_bytes=None,
        unknown_keys=(),
        raw={},
    )


def _loop_words(kernel: KernelResources, code: ImageCode, request: ReportRequest) -> int | None:
    if request.compare is None or not kernel.kernel.source_format.startswith("mtgpu"):
        return None
    return code.main_loop_words(kernel.kernel.name, kernel.kernel.symbol)
