"""A page as one HTML document that loads nothing: no network, no script but the one that its policy names by hash.

Every text is escaped by jinja2; control characters are made visible. Markup are only our own style, script and figures.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from mccprobe.base.console import visible
from mccprobe.report.pages.blocks import Block, Code, Figure, Page
from mccprobe.report.pages.canvas import page_svg
from mccprobe.report.pages.theme import VERDICT_SIGNS, variables

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = "templates"
SHORT_HASH = 12  # characters of a hash that are shown
MOST_PRINTED_ROWS = 60  # of a figure's table: some two sheets; a longer one is printed where the reader unfolded it
_DIFF_MARKS = {"+": "added", "-": "removed", "@": "place"}


def render_html(page: Page) -> str:
    """The whole document; the same record gives the same bytes."""
    from markupsafe import Markup

    script = _text("page.js")
    svgs = {}
    for at, figure in enumerate(page.figures()):
        drawn = [page_svg(figure, narrow=narrow, prefix=f"f{at}{'n' if narrow else 'w'}-") for narrow in (False, True)]
        svgs[figure.name] = Markup("".join(drawn))
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page,
        svgs=svgs,
        policy=_policy(script),
        script=Markup(script),
        style=Markup(_style()),
        signs=VERDICT_SIGNS,
        short_hash=SHORT_HASH,
        most_rows=MOST_PRINTED_ROWS,
    )


def _policy(script: str) -> str:
    """Nothing may be loaded, sent or framed; figures carry their style with them."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _style() -> str:
    return _text("page.css").replace("LIGHT_COLOURS", variables(False)).replace("DARK_COLOURS", variables(True))


def _text(name: str) -> str:
    return resources.files("mccprobe.report.pages").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("mccprobe.report.pages", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    environment.tests["figure"] = lambda block: isinstance(block, Figure)
    environment.filters["kind"] = _kind
    environment.filters["lines"] = _lines
    return environment


def _kind(block: Block) -> str:
    """Which macro sets a block."""
    return type(block).__name__.lower()


def _lines(block: Code) -> list[tuple[str, str]]:
    """(class, text) of each line of a diff."""
    found = []
    for line in block.text.splitlines():
        heading = line.startswith(("+++", "---"))
        found.append(("place" if heading else _DIFF_MARKS.get(line[:1], ""), line))
    return found
