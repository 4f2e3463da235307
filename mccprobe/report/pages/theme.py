"""Colours by what they mean, for light and dark. Each light value is unique: a figure is drawn in light colours, and
in a page every one of them becomes the variable of its name, so that dark mode reaches the figures.

Verdicts are told apart by word and shape first; their colours (blue, vermilion, grey) are those of Okabe and Ito
(https://jfly.uni-koeln.de/color/), darkened until text in them has a contrast of 4.5 on the page.
"""

from __future__ import annotations

LIGHT_AND_DARK: dict[str, tuple[str, str]] = {
    "page": ("#fdfdfc", "#15171a"),
    "panel": ("#f3f3f0", "#1f2226"),
    "line": ("#dcdcd6", "#363a40"),
    "grid": ("#e9e9e4", "#2a2e33"),
    "ink": ("#1b1d1f", "#e9e9e6"),
    "soft": ("#5a5e63", "#a9adb3"),
    "accent": ("#4b43a8", "#b3acff"),
    "other": ("#00745a", "#5fd0ac"),
    "good": ("#0a5f9e", "#74bdf2"),
    "bad": ("#b03a06", "#ff9a63"),
    "unresolved": ("#63666b", "#a4a8ad"),
    "good-soft": ("#d7e7f3", "#173249"),
    "bad-soft": ("#f8ddd0", "#4a2413"),
    "unresolved-soft": ("#e4e4e6", "#34373b"),
    "sim": ("#7a5200", "#e6b450"),
    "sim-soft": ("#fbf0d6", "#3a2e12"),
    "added": ("#e0efe3", "#16331f"),
    "removed": ("#f7e0e0", "#42191b"),
}
# pipes: backgrounds under text in "ink"; hues of Okabe and Ito, in an order that keeps neighbours apart
PIPES: tuple[tuple[str, str], ...] = (
    ("#8cc6ee", "#1d5c88"), ("#f2b985", "#8a4b12"), ("#9fd9c0", "#1c6b50"), ("#e7b3cf", "#7d3a5f"),
    ("#f1e28a", "#6b6013"), ("#a9b4ec", "#3c4896"), ("#d2cbbf", "#5b5447"), ("#bfe08f", "#47651c"),
    ("#f0a7a0", "#87372f"), ("#b8dfe6", "#2c6470"),
)  # fmt: skip
# the same pipes as patterns, where tiles are too small for a name: many eyes do not tell these colours apart.
# Lines only: matplotlib writes some 300 kB for a pattern of dots
HATCHES = ("", "////", "----", "\\\\\\\\", "xxxx", "||||", "++++", "//", "\\\\", "xx")
LIGHT_AND_DARK |= {f"pipe{at}": pair for at, pair in enumerate(PIPES)}
LIGHT = {name: light for name, (light, _) in LIGHT_AND_DARK.items()}
NAME_OF_LIGHT = {light: name for name, light in LIGHT.items()}
# of figures drawn by other modules in matplotlib's own colours
NAME_OF_LIGHT |= {
    "#1f77b4": "accent",
    "#ff7f0e": "other",
    "#d62728": "bad",
    "#2ca02c": "good",
    "#7f7f7f": "unresolved",
    "#000000": "ink",
}

VERDICT_MARKS = {"GOOD": "o", "BAD": "X", "UNRESOLVED": "^"}  # shapes in figures, as matplotlib names them
VERDICT_SIGNS = {"GOOD": "●", "BAD": "✕", "UNRESOLVED": "▲"}  # the same in text


def pipe_hatch(place: int) -> str:
    """Pattern of the n-th most frequent pipe, as matplotlib names it."""
    return HATCHES[min(place, len(HATCHES) - 1)]


def pipe_colour(place: int) -> str:
    """Light colour of the n-th most frequent pipe; the last one stands for all further ones."""
    return LIGHT[f"pipe{min(place, len(PIPES) - 1)}"]


def variables(dark: bool) -> str:
    """Declarations of all colours."""
    return "".join(f"--{name}:{pair[dark]};" for name, pair in LIGHT_AND_DARK.items())
