"""Sphinx: how the documentation is built with `make docs`.

`python -m sphinx` runs in the repository's folder, so that it finds `tools.docs.site`. The pages
load nothing from the network.
"""

import importlib.util
from pathlib import Path

from plumecast.base.version import __version__

project = "plumecast"
author = "plumecast contributors"
project_copyright = author
release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "tools.docs.site",
]
root_doc = "index"
exclude_patterns = ["_build"]
nitpicky = True
# Types of other packages: their documentation is not within reach of an offline build. Names of
# modules and of types that are not public have no page of their own.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!plumecast\.\w+$).*"),
]
highlight_language = "bash"  # blocks without a language are commands
smartquotes = False  # "--" begins an option and is not a dash

myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_in_temp = True  # what tutorials write does not belong to the repository
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
default_role = "code"

# MathJax as one file of a wheel; its own default is a server on the network.
_mathjax = importlib.util.find_spec("sphinx-mathjax-offline")
if _mathjax is None or not _mathjax.submodule_search_locations:
    raise ImportError("the package sphinx-mathjax-offline is missing; build with `make docs`")
mathjax_path = "tex-svg.js"

html_theme = "pydata_sphinx_theme"
html_title = "plumecast"
html_static_path = [
    "_static",
    str(Path(_mathjax.submodule_search_locations[0]) / "static" / "mathjax" / mathjax_path),
]
html_css_files = ["plumecast.css"]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "icon_links": [
        {
            "name": "Source",
            "url": "https://github.com/plumecast/plumecast",
            "icon": "fa-brands fa-github",
        }
    ],
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp"
