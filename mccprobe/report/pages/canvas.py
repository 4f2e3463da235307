"""Figures to SVG for a page, or to SVG and PNG files. The only module that draws; matplotlib is imported late.

The same record gives the same bytes: no date, fixed ids, no settings of the user. Text stays text, without formulas
(a `$` in a flag is a `$`), in the font of the page.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from mccprobe.base.console import visible
from mccprobe.report.pages.blocks import Figure
from mccprobe.report.pages.theme import LIGHT, NAME_OF_LIGHT

PIXELS_PER_INCH = 72  # one unit of the SVG is then one CSS pixel
PNG_PIXELS_PER_INCH = 216  # three device pixels a CSS pixel: sharp on paper
TEXT_PIXELS = 12
_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_TITLE_PIXELS, _TITLE_LETTERS = 34, 84  # room above a figure that is a file, and letters of a line there
_JOINS = "stroke-linejoin: round; stroke-linecap: butt"  # as matplotlib's own style element says
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_FONT = re.compile(r"\bfont: *([^;]*?)([\d.]+px)[^;]*")  # `font: 700 11px 'DejaVu Sans'`
_FAMILY = re.compile(r"\bfont-family:[^;]*;? *")
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mccprobe",
    "text.parse_math": False,
    "axes.unicode_minus": False,
    "font.family": "sans-serif",
    "font.size": TEXT_PIXELS,
    "figure.dpi": PIXELS_PER_INCH,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": LIGHT["soft"],
    "axes.labelcolor": LIGHT["soft"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": TEXT_PIXELS,
    "axes.titlelocation": "left",
    "axes.titlecolor": LIGHT["ink"],
    "grid.color": LIGHT["grid"],
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["soft"],
    "ytick.color": LIGHT["soft"],
    "xtick.labelsize": TEXT_PIXELS - 1,
    "ytick.labelsize": TEXT_PIXELS - 1,
    "legend.frameon": False,
    "legend.fontsize": TEXT_PIXELS - 1,
    "hatch.linewidth": 0.6,
    "path.simplify": False,
}


@contextlib.contextmanager
def _drawn(figure: Figure, *, narrow: bool) -> Iterator[Any]:
    """The figure, painted, while our settings hold."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name in letters that the measuring font lacks; the page's font has them
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(_SETTINGS)
        width, height = figure.size.narrow if narrow else figure.size.wide
        canvas = Canvas(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), layout="constrained")
        FigureCanvasAgg(canvas)
        figure.paint(canvas, narrow)
        yield canvas


def page_svg(figure: Figure, *, narrow: bool, prefix: str) -> str:
    """SVG to stand in a page. prefix: of its ids, which a page's other figures must not have."""
    root = _tree(_svg(figure, narrow=narrow))
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in used:
            element.set("id", f"{prefix}{own}")
        for key, value in list(element.attrib.items()):
            element.set(key, _REFERENCE.sub(lambda found: f"url(#{prefix}{found[1]})", value))
        if _HREF in element.attrib:
            element.set("href", f"#{prefix}{element.attrib.pop(_HREF).removeprefix('#')}")
        style = [f"fill: {element.attrib.pop('fill')}"] if _COLOUR.match(element.get("fill", "")) else []  # of patterns
        style += [element.attrib["style"]] if "style" in element.attrib else []
        if style:
            element.set("style", _themed("; ".join(style)))
    width, height = figure.size.narrow if narrow else figure.size.wide
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "class": "narrow" if narrow else "wide",
        "style": f"max-width:{width}px; {_JOINS}",
        "width": str(width),
        "height": str(height),
        "aria-hidden": "true",
        "focusable": "false",
    }
    for parent in list(root.iter()):
        for name in ("metadata", "style"):  # a style element would be the whole page's
            for element in parent.findall(f"{{{_SVG}}}{name}"):
                parent.remove(element)
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(f"{{{_SVG}}}")  # in HTML the parser knows where it stands
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def rectangles(axes: Any, corners: Sequence[tuple[float, float, float, float]], **colours: str) -> None:
    """Many rectangles (x, y, width, height) as one path: a long loop stays small. colours: and a hatch."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if corners:
        points = [
            [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
            for x, y, width, height in corners
        ]
        codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(corners)
        axes.add_patch(PathPatch(Path([point for box in points for point in box], codes), linewidth=0.6, **colours))


def file_bytes(figure: Figure, suffix: str, *, mark: str = "") -> bytes:
    """The figure as a file: `svg` in light colours, `png` on the page's light ground.

    mark: of a stand-in. It stands in the picture, with the caption: a file goes alone.
    """
    titled = dataclasses.replace(
        figure,
        caption=f"{mark}: {figure.caption}" if mark else figure.caption,
        size=dataclasses.replace(figure.size, wide=(figure.size.wide[0], figure.size.wide[1] + _TITLE_PIXELS)),
        paint=lambda canvas, narrow: _titled(canvas, figure, mark),
    )
    if suffix == "svg":
        return _svg(titled, narrow=False)
    buffer = io.BytesIO()
    with _drawn(titled, narrow=False) as canvas:
        canvas.savefig(
            buffer, format="png", dpi=PNG_PIXELS_PER_INCH, facecolor=LIGHT["page"], metadata={"Software": "mccprobe"}
        )
    return buffer.getvalue()


def _titled(canvas: Any, figure: Figure, mark: str) -> None:
    figure.paint(canvas, False)
    caption = "\n".join(textwrap.wrap(visible(figure.caption), _TITLE_LETTERS))
    canvas.suptitle(caption, x=0.006, ha="left", fontsize=TEXT_PIXELS, fontweight="bold")
    if mark:
        canvas.text(0.994, 0.994, visible(mark), ha="right", va="top", color=LIGHT["sim"], fontweight="bold")


def _svg(figure: Figure, *, narrow: bool) -> bytes:
    buffer = io.BytesIO()
    with _drawn(figure, narrow=narrow) as canvas:
        metadata = {"Date": None, "Creator": "mccprobe", "Title": visible(figure.caption)}
        canvas.savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def _tree(text: bytes) -> ElementTree.Element:
    """Our own output; the declaration of the document type is cut off, so nothing in it can name a file."""
    return ElementTree.fromstring(text[text.index(b"<svg") :])


def _references(element: ElementTree.Element) -> Iterator[str]:
    for key, value in element.attrib.items():
        if key == _HREF:
            yield value.removeprefix("#")
        yield from _REFERENCE.findall(value)


def _themed(style: str) -> str:
    """Colours as variables; of a font only size and weight, the family is the page's."""

    def colour(found: re.Match[str]) -> str:
        name = NAME_OF_LIGHT.get(found[0])
        return f"var(--{name})" if name else found[0]

    def font(found: re.Match[str]) -> str:
        weight = f"; font-weight: {found[1].strip()}" if found[1].strip().isdigit() else ""
        return f"font-size: {found[2]}{weight}"

    return _COLOUR.sub(colour, _FONT.sub(font, _FAMILY.sub("", style)))
