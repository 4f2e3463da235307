"""Results as one HTML page each: a page is made from the document of `--json`, and holds nothing that it does not.

Flow: document -> `*_page.py` (pure: a `Page` of blocks) -> `render_html.py` (jinja2, escaped) -> `write.py`
(one file, atomic). Figures are drawn by `canvas.py` (matplotlib) as SVG in the page, or as files. Extra: `pages`.
"""
