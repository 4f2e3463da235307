"""Two files, image by image and function by function: resources, mix, instructions.

Images are paired by architecture (in order where one has several), functions by name; where both
sides have exactly one function left over, those two are paired, so that a renamed kernel compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe.base.errors import UsageError
from mccprobe.objects.binary.read import read_kernels
from mccprobe.objects.binary.records import DeviceImage, KernelMetadata
from mccprobe.objects.isa.change import FunctionChange, compare
from mccprobe.objects.isa.disassemble import ImageListing
from mccprobe.objects.isa.flow import isa_of
from mccprobe.objects.isa.records import Function


@dataclass(frozen=True)
class ResourceChange:
    """One figure of one kernel that is not the same. left, right: None where a side does not tell it."""

    kernel: str
    name: str
    left: Any
    right: Any


@dataclass(frozen=True)
class ImageChange:
    """left, right: the image of each side, None where it has none of this architecture."""

    target: str
    isa: str
    left: ImageListing | None
    right: ImageListing | None
    resources: tuple[ResourceChange, ...]
    functions: tuple[FunctionChange, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """True if nothing is told apart: same functions, same streams, same resources."""
        both = self.left is not None and self.right is not None
        return both and not (
            self.resources or self.only_left or self.only_right or any(not one.equal for one in self.functions)
        )


def diff_images(left: Sequence[ImageListing], right: Sequence[ImageListing], function: str = "") -> list[ImageChange]:
    """All pairs of images. `function` picks one function. Raises UsageError if nobody has it."""
    changes = [_image(one, two, function) for one, two in _pairs(left, right)]
    if function and not any(one.functions or one.only_left or one.only_right for one in changes):
        raise UsageError(f"no function {function} on either side", hint="mccprobe disasm lists the functions")
    return changes


def _target(one: ImageListing) -> str:
    return one.listing.target or one.image.target


def _pairs(
    left: Sequence[ImageListing], right: Sequence[ImageListing]
) -> list[tuple[ImageListing | None, ImageListing | None]]:
    if len(left) == 1 and len(right) == 1:  # also across architectures: the user named these two
        return [(left[0], right[0])]
    by_target: dict[str, list[ImageListing]] = defaultdict(list)
    for two in right:
        by_target[_target(two)].append(two)
    pairs: list[tuple[ImageListing | None, ImageListing | None]] = []
    for one in left:
        rest = by_target[_target(one)]
        pairs.append((one, rest.pop(0) if rest else None))
    pairs += [(None, two) for rest in by_target.values() for two in rest]
    return pairs


def _image(left: ImageListing | None, right: ImageListing | None, function: str) -> ImageChange:
    known = left or right
    assert known is not None
    isa = isa_of(known.listing.format)
    one = [item for item in (left.listing.functions if left else ()) if not function or item.name == function]
    two = [item for item in (right.listing.functions if right else ()) if not function or item.name == function]
    if left is None or right is None:
        names = tuple(item.name for item in one), tuple(item.name for item in two)
        return ImageChange(_target(known), isa, left, right, (), (), *names)
    paired, only_one, only_two = _functions(one, two)
    alone = [item.name for item in only_one], [item.name for item in only_two]
    resources: list[ResourceChange] = []
    if tells_kernels(left.image) and tells_kernels(right.image):
        kernels = kernels_by_name(left.image), kernels_by_name(right.image)
        both = {item.name for pair in paired for item in pair}
        resources = list(_resources(*kernels, both, function))
        if not _renamed(*kernels, function):
            streams = both.union(*alone)
            alone[0].extend(_stripped(*kernels, streams, function))
            alone[1].extend(_stripped(*kernels[::-1], streams, function))
    return ImageChange(
        _target(known),
        isa,
        left,
        right,
        tuple(resources),
        tuple(compare(a, b, isa) for a, b in paired),
        tuple(alone[0]),
        tuple(alone[1]),
    )


def _stripped(
    own: Mapping[str, KernelMetadata], other: Mapping[str, KernelMetadata], streams: Collection[str], function: str
) -> Iterator[str]:
    """Kernels that one side's metadata alone knows, and whose code is on neither side."""
    names = (name for name in own if name not in other and name not in streams)
    return (name for name in names if not function or name == function)


def _functions(
    left: Sequence[Function], right: Sequence[Function]
) -> tuple[list[tuple[Function, Function]], list[Function], list[Function]]:
    waiting: dict[str, list[Function]] = defaultdict(list)
    for two in right:
        waiting[two.name].append(two)
    paired, only_left = [], []
    for one in left:
        rest = waiting[one.name]
        if rest:
            paired.append((one, rest.pop(0)))
        else:
            only_left.append(one)
    only_right = [two for rest in waiting.values() for two in rest]
    if len(only_left) == 1 and len(only_right) == 1 and not paired:
        return [(only_left[0], only_right[0])], [], []
    return paired, only_left, only_right


def figures(kernel: KernelMetadata) -> dict[str, Any]:
    """What metadata says of a kernel, by name; registers as `registers.temp`."""
    found: dict[str, Any] = {f"registers.{name}": value for name, value in kernel.registers.items()}
    found |= {
        "shared_memory_bytes": kernel.shared_memory_bytes,
        "private_memory_bytes": kernel.private_memory_bytes,
        "has_barrier": kernel.has_barrier,
        "max_block_size": kernel.max_block_size,
        "code_bytes": kernel.code_bytes,
    }
    spills: Mapping[str, int] = kernel.spills or {}
    return found | {f"spills.{name}": value for name, value in spills.items()}


def _renamed(one: Mapping[str, KernelMetadata], two: Mapping[str, KernelMetadata], function: str) -> bool:
    """True where the only kernel of each side is taken for the same, whatever it is called."""
    return len(one) == len(two) == 1 and not function


def _resources(
    one: Mapping[str, KernelMetadata], two: Mapping[str, KernelMetadata], streams: Collection[str], function: str
) -> Iterator[ResourceChange]:
    """Figures that differ; of a kernel that one side's metadata leaves out, and whose code is there, all of them."""
    pairs: list[tuple[str, KernelMetadata | None, KernelMetadata | None]]
    if _renamed(one, two, function):
        only_one, only_two = next(iter(one.values())), next(iter(two.values()))
        pairs = [(only_one.name, only_one, only_two)]
    else:
        both = [name for name in dict.fromkeys((*one, *two)) if (name in one and name in two) or name in streams]
        pairs = [(name, one.get(name), two.get(name)) for name in both if not function or name == function]
    for name, a, b in pairs:
        before, after = figures(a) if a else {}, figures(b) if b else {}
        for field in dict.fromkeys((*before, *after)):
            if before.get(field) != after.get(field):
                yield ResourceChange(name, field, before.get(field), after.get(field))


def tells_kernels(image: DeviceImage) -> bool:
    """False for listings and host objects, which have no metadata of kernels."""
    return image.kind not in ("listing", "host-elf", "unknown")


def kernels_by_name(image: DeviceImage) -> dict[str, KernelMetadata]:
    """Kernels of an image; a listing has none."""
    if not tells_kernels(image):
        return {}
    return {kernel.name: kernel for kernel in read_kernels(image)[0]}
