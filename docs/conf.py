"""Sphinx builds the pages of this folder: `make docs`. What is generated from the code: _ext/generated.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))

from mccprobe import __version__

project = "mccprobe"
author = "the mccprobe authors"
release = version = __version__
html_title = f"mccprobe {__version__}"

extensions = ["myst_parser", "sphinx_click", "generated"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_ext"]
nitpicky = True
smartquotes = False  # -- is two dashes in an option

html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False  # LICENSE says it; without a year the footer is an empty sign
html_copy_source = False
html_static_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "github-dark"
# Pages are read without a network: no external font, script or image.
html_theme_options = {"source_edit_link": "", "footer_icons": []}
