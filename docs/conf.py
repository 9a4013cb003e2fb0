"""Sphinx configuration (`make docs`).

Pages of the papers and of the API are generated first, from results and docstrings.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import unlazy
from unlazy.report.formulas import html_scripts

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "scripts"))

_spec = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts" / "site_pages.py")
assert _spec is not None and _spec.loader is not None
site_pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site_pages)
site_pages.write(HERE)

project = "unlazy"
author = "The unlazy developers"
version = release = unlazy.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "summaries",
    "gallery/README.rst",
    "examples/*.py",
    "examples/*.ipynb",
    "examples/*.md5",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "unlazy"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path: list[str] = []
nitpicky = False
# All other links are checked.
linkcheck_ignore = [r"http://127\.0\.0\.1.*"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": False, "undoc-members": False}
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "image_scrapers": ("matplotlib", "site_pages.bare_figures"),
    "capture_repr": (),
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
}


def _plain(line: str) -> str:
    """Return a docstring line as reStructuredText: code in backticks stays code, all else is
    escaped.
    """
    parts = line.split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return re.sub(r"([*|_`\\])", r"\\\1", line)
    return "".join(
        f"``{part}``" if index % 2 else re.sub(r"([*|_\\])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def _docstring(app, what, name, obj, options, lines) -> None:
    lines[:] = [_plain(line) for line in lines]


def _scripts(app, pagename, templatename, context, doctree) -> None:
    """Raise and lower the scripts of formulas on pages made of statements of papers."""
    if pagename in ("ledger", "errata") or pagename.startswith("papers/"):
        context["body"] = html_scripts(context["body"])


def setup(app) -> None:
    """Register the hooks."""
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("html-page-context", _scripts)


html_show_copyright = False
