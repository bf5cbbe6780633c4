"""The documentation site: `make site` builds it into build/site, and fails for whatever Sphinx warns of."""

from __future__ import annotations

import sys
from importlib.metadata import version as find_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate_reference import generate

project = "nnrewrite"
author = "the authors of nnrewrite"
copyright = author
version = release = find_version("nnrewrite")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["draw_gallery.py", "generate_reference.py", "notebooks/execute.py"]
html_theme = "furo"
html_title = "nnrewrite"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Commands and rules stand in blocks of four spaces, of which no language is known.
highlight_language = "none"
# Notebooks are executed by `make notebooks`, and shown as they are.
nb_execution_mode = "off"
copybutton_prompt_text = "$ "
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Options begin with two hyphens.
smartquotes = False
# Docstrings set names in single backticks.
default_role = "code"

generate(Path(__file__).parent / "reference")
