"""What is supposed of MTGPU encodings: patterns of bits for classes of instructions, places of their operands.

Nothing here is believed: `measure.py` counts for and against each line in real objects, and the table that
mccprobe ships holds only what the counts allow. Bit b of dword n is number 32 n + b; bits 31 are cleared.
How the places were found is in docs (page on MTGPU code).
"""

from __future__ import annotations

from dataclasses import dataclass, field

Bits = tuple[int | tuple[int, ...], ...]  # by weight; a tuple: bits that must agree; (): a weight that was never seen


@dataclass(frozen=True)
class Place:
    """An operand. extra: higher weights that only the banks in `wide` use; elsewhere they must be zero."""

    name: str
    role: str
    bits: Bits
    bank: tuple[int, ...]
    banks: dict[str, str]
    span: int = 1
    offset: int = 0
    extra: tuple[int, ...] = ()
    wide: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """A rule. ones, zeros: bits that must be 1 and 0. low: value of the low bits of dwords: {dword: (mask, value)}.

    checks: names of `checks.py` that apply besides those of its operands.
    """

    id: str
    name: str
    pipe: str
    dwords: tuple[int, ...]
    low: dict[int, tuple[int, int]]
    ones: tuple[int, ...] = ()
    zeros: tuple[int, ...] = ()
    flow: str = ""
    places: tuple[Place, ...] = ()
    checks: tuple[str, ...] = ()
    never_certain: bool = False
    widths: tuple[tuple[int, int], ...] = ()  # of a memory access: (bit, bytes); exactly one of the bits is set
    by_note: bool = False  # kept without an instruction: the note gives the number that makes it

    def mask_value(self) -> tuple[int, int]:
        mask = value = 0
        for dword, (under, bits) in self.low.items():
            mask |= under << 32 * dword
            value |= bits << 32 * dword
        for bit in self.ones:
            mask |= 1 << bit
            value |= 1 << bit
        for bit in self.zeros:
            mask |= 1 << bit
        return mask, value


@dataclass(frozen=True)
class Family:
    """One encoding."""

    name: str
    targets: tuple[str, ...]
    defaults: tuple[tuple[int, int, int], ...]
    guesses: tuple[Guess, ...]
    distance: tuple[int, ...]
    sign: tuple[int, ...] = field(default=())


_R_AR = {"10": "R", "01": "AR"}

# --- INT: one layout in all architectures --------------------------------------------------------
INT_DST = Place("dst", "written", (19, 41, 53, 59), (4,), {"0": "R", "1": "AR"})
INT_A = Place("a", "read", (6, 16, 17, 36), (28, 7), {**_R_AR, "00": "SH"}, extra=(48,), wide=("SH",))
INT_B = Place(
    "b", "read", (15, 38, 37, 40), (20, 5), {**_R_AR, "00": "SH", "11": "C"}, extra=(47, 54), wide=("SH", "C")
)
INT_C = Place("c", "read", (42, 61, 57, 74), (55, 34), {"00": "R", "01": "AR"})


def _pair(place: Place) -> Place:
    return Place(
        place.name,
        place.role,
        place.bits,
        place.bank,
        {k: v for k, v in place.banks.items() if v != "C"},
        2,
        place.offset,
        place.extra,
        place.wide,
    )


def _int(
    id: str,
    name: str,
    op: int,
    form: int | None,
    dwords: tuple[int, ...],
    places: tuple[Place, ...],
    *,
    compare: bool = False,
    form_mask: int = 0xFF,
    checks: tuple[str, ...] = (),
) -> Guess:
    low = {0: (0x3F0F, op << 8)}
    if form is not None:
        low[2] = (form_mask, form)
    return Guess(
        id,
        name,
        "INT",
        dwords,
        low,
        ones=(50,) if compare else (),
        zeros=() if compare else (50,),
        places=places,
        checks=checks,
    )


def _integers(two: int, three: int, bypass: int, wide: int, dwords: tuple[int, ...]) -> tuple[Guess, ...]:
    """The forms of INT; the numbers are the low bits of the third dword, which differ by one bit between families."""
    compare = tuple(
        _int(
            f"int.compare.{op:02x}",
            "integer compare",
            op,
            two,
            dwords,
            (INT_A, INT_B),
            compare=True,
            checks=("before-mask",),
        )
        for op in (0x23, 0x2E, 0x2F)
    )
    return (
        *compare,
        _int("int.move", "integer move", 0x2E, bypass, dwords, (_pair(INT_A),), checks=("pairs",)),
        _int("int.add64", "integer add", 0x0C, wide, dwords, (_pair(INT_DST), _pair(INT_A)), checks=("pairs",)),
        _int("int.add", "integer add", 0x0C, two, dwords, (INT_DST, INT_A, INT_B), checks=("sums", "counter")),
        _int(
            "int.madd", "integer multiply-add", 0x0C, three, dwords, (INT_DST, INT_A, INT_B, INT_C), checks=("index",)
        ),
        _int(
            "int.multiply",
            "integer multiply",
            0x2C,
            three,
            dwords,
            (INT_DST, INT_A, INT_C),
            checks=("products", "index"),
        ),
        _int("int.convert", "integer convert", 0x2C, two, dwords, (_pair(INT_DST), INT_A), checks=("widened",)),
        _int("int.narrow", "integer convert", 0x20, two, dwords, (INT_DST,)),
        Guess("int.other", "integer", "INT", dwords, {0: (0xF, 0)}, never_certain=True),
    )


# --- BIT: one layout in all architectures ----------------------------------------------------------
BIT_DST = Place("dst", "written", (8, 14, 19, 33), (16,), {"0": "R", "1": "AR"})
BIT_A = Place("a", "read", (25, 36, 44, 47), (53, 15), _R_AR)
BIT_B = Place("b", "read", (13, 17, 34, 29), (52, 9), {**_R_AR, "00": "SH"}, extra=(35,), wide=("SH",))
BIT_C = Place("c", "read", (54, 51, 57, 84), (76,), {"0": "R", "1": "AR"})
_BITS = (
    Guess(
        "bit.three",
        "bit operation",
        "BIT",
        (4,),
        {0: (0xF, 8)},
        ones=(26, 28),
        places=(BIT_DST, BIT_A, BIT_B, BIT_C),
        checks=("chain",),
    ),
    Guess(
        "bit.two", "bit operation", "BIT", (2, 3, 4), {0: (0xF, 8)}, places=(BIT_DST, BIT_A, BIT_B), checks=("imms",)
    ),
)

# --- moves ---------------------------------------------------------------------------------------
MOVE_DST = Place("dst", "written", (4, 16, 24, 33), (5,), {"0": "R", "1": "AR"})
MOVE_SRC = Place("a", "read", (14, 21, 25, 27), (37, 35), {"10": "SH+16", "01": "R"})
FOP_DST = MOVE_DST

# --- memory --------------------------------------------------------------------------------------
LOAD_DST = Place("dst", "written", (29, 35, 37, (30, 41)), (13,), {"0": "R", "1": "AR"})
LOAD_ADDRESS = Place("address", "read", (45, 17, 22, (30, 41)), (43,), {"0": "R", "1": "AR"}, span=2)
STORE_DATA = Place("data", "read", (25, 23, 28), (10,), {"0": "R", "1": "AR"})
STORE_ADDRESS = Place("address", "read", (45, 17), (43,), {"0": "R", "1": "AR"}, span=2)
STORE_DATA_31 = Place("data", "read", ((), 23, (), ()), (10,), {"0": "R", "1": "AR"})  # all data seen is even
STORE_ADDRESS_31 = Place("address", "read", (45, 17, (), ()), (43,), {"0": "R", "1": "AR"}, span=2)
STORE_LOCAL = Place("data", "read", (25, 23, 28), (), {"": "LM"})
SLOT_DST = Place("dst", "written", (8, 9, 10, 11), (62,), {"0": "R", "1": "AR"})
WIDTHS = ((16, 4), (33, 8), (50, 2), (52, 1))
WIDTHS_SHARED = ((83, 1), (84, 2), (85, 4), (86, 8))
WIDTHS_SHARED_A = ((36, 1), (54, 2), (57, 8))  # 4 bytes have a bit of their own nowhere: such a width is not read
SHARED_DST = Place("dst", "written", (9, 10, 23, 24), (), {"": "R"})
SLOT_DST_31 = Place("dst", "written", (8, 9, 10, 11), (62,), {"0": "R", "1": "AR"}, offset=-1)

_MP_2X = (
    *_integers(0x98, 0x99, 0x88, 0x18, (2, 3, 4)),
    Guess("barrier", "barrier", "AP", (1,), {0: (0x7FFFFDFF, 0x0A255CE8)}, checks=("count",)),
    *_BITS,
    Guess("move", "move", "FOP", (1, 2, 3, 4), {0: (0xFCB, 0x80B)}, places=(MOVE_DST, MOVE_SRC), checks=("argument",)),
    Guess(
        "float.add", "float add", "FOP", (1, 2, 3, 4), {0: (0xF8F, 0x60B)}, places=(FOP_DST,), checks=("float-only",)
    ),
    Guess(
        "float.multiply",
        "float multiply",
        "FOP",
        (1, 2, 3, 4),
        {0: (0xFCF, 0x68D)},
        places=(FOP_DST,),
        checks=("float-only",),
    ),
    Guess(
        "float.madd",
        "float multiply-add",
        "FOP",
        (1, 2, 3, 4),
        {0: (0xF, 9)},
        places=(FOP_DST,),
        checks=("float-only",),
    ),
    Guess("double", "double operation", "FP64", (2, 3, 4), {0: (0xF, 4)}, checks=("double-only",)),
    Guess("slot.1", "read block index", "LM", (1,), {0: (0xFF, 0x4A)}, checks=("count",)),
    Guess(
        "shared.load.a",
        "load shared",
        "LM",
        (1, 2, 3),
        {0: (0xFF, 0x0A)},
        places=(SHARED_DST,),
        checks=("count", "width"),
        widths=WIDTHS_SHARED_A,
    ),
    Guess("shared.store.a", "store shared", "LM", (1, 2, 3), {0: (0xFF, 0x8A)}, checks=("count",)),
    Guess(
        "slot.3",
        "read block index",
        "LM",
        (3, 4),
        {0: (0xBF, 0x2E)},
        ones=(23,),
        zeros=(28,),
        places=(SLOT_DST,),
        checks=("count",),
    ),
    Guess(
        "shared.store.e", "store shared", "LM", (3, 4), {0: (0xBF, 0x2E)}, ones=(28,), zeros=(23,), checks=("count",)
    ),
    Guess(
        "shared.load.e",
        "load shared",
        "LM",
        (3, 4),
        {0: (0xBF, 0x2E)},
        zeros=(23, 28),
        places=(SLOT_DST,),
        checks=("count", "width"),
        widths=WIDTHS_SHARED,
    ),
    Guess(
        "load.indexed",
        "load global",
        "DMA.LD",
        (2, 3, 4),
        {0: (0xFF, 0x8E)},
        ones=(36,),
        places=(LOAD_DST,),
        checks=("count",),
    ),
    Guess(
        "load",
        "load global",
        "DMA.LD",
        (2, 3, 4),
        {0: (0xFF, 0x8E)},
        places=(LOAD_DST, LOAD_ADDRESS),
        checks=("count", "width"),
        widths=WIDTHS,
    ),
    Guess(
        "store.indexed",
        "store global",
        "DMA.ST",
        (2,),
        {0: (0xFF, 0x4E)},
        ones=(36,),
        places=(STORE_DATA,),
        checks=("count",),
    ),
    Guess(
        "store",
        "store global",
        "DMA.ST",
        (2,),
        {0: (0xFF, 0x4E)},
        places=(STORE_DATA, STORE_ADDRESS),
        checks=("count", "width"),
        widths=WIDTHS,
    ),
    Guess("store.local", "store global", "DMA.ST", (3, 4), {0: (0xFF, 0x4E)}, places=(STORE_LOCAL,), checks=("count",)),
    Guess("atomic", "atomic global", "DMA.AT", (3, 4), {0: (0xFF, 0x0E)}, checks=("count",)),
    Guess("mask", "lane mask", "COND", (1, 2), {0: (0x1F, 0x1E)}, checks=("mask-branch",)),
    Guess("end", "end", "CTRL", (1,), {0: (0x1FF, 0x11C)}, flow="end", checks=("count",)),
    Guess(
        "branch.lanes",
        "branch",
        "CTRL",
        (2,),
        {0: (0x1FF, 0x1C)},
        ones=(12,),
        flow="branch",
        checks=("lands", "after-mask"),
    ),
    Guess("branch.predicate", "branch", "CTRL", (2,), {0: (0x1FF, 0x1C)}, ones=(47,), flow="branch", checks=("lands",)),
    Guess("jump", "jump", "CTRL", (2,), {0: (0x1FF, 0x1C)}, flow="jump", checks=("lands", "next-is-target")),
    Guess("control", "no operation", "CTRL", (1, 2), {0: (0xFF, 0x9C)}, never_certain=True),
)

_MP_31 = (
    *_integers(0x90, 0x91, 0x80, 0x10, (4,)),
    Guess(
        "barrier", "barrier", "AP", (2,), {0: (0x7FFFFFFF, 0x34252802), 1: (0x7FFFFEF7, 0x00080011)}, checks=("count",)
    ),
    *_BITS,
    Guess("move", "move", "FOP", (3, 4), {0: (0x8CB, 0x803)}, places=(MOVE_DST, MOVE_SRC), checks=("argument",)),
    Guess("float.add", "float add", "FOP", (3, 4), {0: (0xCB, 0x43)}, places=(FOP_DST,), checks=("float-only",)),
    Guess(
        "float.multiply", "float multiply", "FOP", (3, 4), {0: (0xCF, 0xC7)}, places=(FOP_DST,), checks=("float-only",)
    ),
    Guess("float.madd", "float multiply-add", "FOP", (3, 4), {0: (0xF, 5)}, places=(FOP_DST,), checks=("float-only",)),
    Guess("double", "double operation", "FP64", (2,), {0: (0xF, 4)}, checks=("double-only",)),
    Guess("shared.store", "store shared", "LM", (3, 4), {0: (0xBF, 0x2E)}, ones=(28,), checks=("count",)),
    *(
        Guess(
            f"slot.{index}",
            "read block index",
            "LM",
            (3, 4),
            {0: (0x7F0BF, 0x2E | index << 12), 2: (0xFFFFBF, 0x200000)},
            zeros=(28,),
            places=(SLOT_DST_31,),
            checks=("count",),
            by_note=True,
        )
        for index in (0, 1, 2)
    ),
    Guess(
        "shared.load",
        "load shared",
        "LM",
        (3, 4),
        {0: (0xBF, 0x2E)},
        zeros=(28,),
        places=(SLOT_DST_31,),
        checks=("count", "width"),
        widths=WIDTHS_SHARED,
    ),
    Guess(
        "load.indexed",
        "load global",
        "LSU.LD",
        (3, 4),
        {0: (0xFF, 0x0E)},
        ones=(36, 61),
        places=(LOAD_DST,),
        checks=("count",),
    ),
    Guess(
        "load",
        "load global",
        "LSU.LD",
        (3, 4),
        {0: (0xFF, 0x0E)},
        ones=(61,),
        places=(LOAD_DST, LOAD_ADDRESS),
        checks=("count", "width"),
        widths=WIDTHS,
    ),
    Guess(
        "store.indexed",
        "store global",
        "LSU.ST",
        (3, 4),
        {0: (0x7F, 0x04)},
        ones=(52,),
        places=(STORE_DATA_31,),
        checks=("count", "width"),
        widths=WIDTHS,
    ),
    Guess(
        "store",
        "store global",
        "LSU.ST",
        (3, 4),
        {0: (0x7F, 0x04)},
        places=(STORE_DATA_31, STORE_ADDRESS_31),
        checks=("count", "width"),
        widths=WIDTHS,
    ),
    Guess("atomic", "atomic global", "LSU.AT", (3, 4), {0: (0xFFF, 0xA7C)}, checks=("count",)),
    Guess("wait", "wait for stores", "LSU.WAIT", (3, 4), {0: (0xFFF, 0xF7C)}, checks=("before-barrier",)),
    Guess("mask", "lane mask", "COND", (1, 2), {0: (0x1F, 0x1E)}, checks=("mask-branch",)),
    Guess("end", "end", "CTRL", (1,), {0: (0x1FF, 0x11C)}, flow="end", checks=("count",)),
    Guess(
        "branch.lanes",
        "branch",
        "CTRL",
        (2,),
        {0: (0x1FF, 0x1C)},
        ones=(61,),
        flow="branch",
        checks=("lands", "after-mask"),
    ),
    Guess("branch.predicate", "branch", "CTRL", (2,), {0: (0x1FF, 0x1C)}, ones=(47,), flow="branch", checks=("lands",)),
    Guess("jump", "jump", "CTRL", (2,), {0: (0x1FF, 0x1C)}, flow="jump", checks=("lands", "next-is-target")),
    Guess("control", "no operation", "CTRL", (1, 2), {0: (0xFF, 0x9C)}, never_certain=True),
)

_DISTANCE = (16, 14, 13, 15, 17, 18, 28, 39)
_SIGN = (*range(19, 28), 29, 30, *range(32, 39), 40, 41, 43, 44)
FAMILIES = (
    Family("mp_2x", ("mp_21", "mp_22"), ((0, 2, 0x040C0A98),), _MP_2X, _DISTANCE, _SIGN),
    Family("mp_31", ("mp_31",), (), _MP_31, _DISTANCE, _SIGN),
)
