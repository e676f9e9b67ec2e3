"""How Sphinx builds the site: ``make docs``, or ``make docs-quick`` for small data."""

import os
import re
from importlib.metadata import version as version_of
from importlib.resources import files

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

project = "hardmargin"
author = "the hardmargin developers"
project_copyright = "the hardmargin developers"
release = version = version_of("hardmargin")

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "figures"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings = ["config.cache"]  # sorting keys of the gallery cannot be pickled

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference: every public class with its methods, from its docstring
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Figures of the guide are drawn while building
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
plot_formats = [("png", 160)]
plot_rcparams = {"figure.constrained_layout.use": True, "font.size": 9}
plot_apply_rcparams = True

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py|__init__\.py",
    "subsection_order": ExplicitOrder(
        [
            "../examples/learning",
            "../examples/probabilities",
            "../examples/data",
            "../examples/published",
            "../examples/models",
        ]
    ),
    "within_subsection_order": FileNameSortKey,
    "doc_module": ("hardmargin",),
    "reference_url": {"hardmargin": None},
    "backreferences_dir": "api/backreferences",
    "abort_on_example_error": True,
    "show_memory": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "write_computation_times": False,  # these pages would load scripts from other sites
}

intersphinx_mapping = {}
if os.environ.get("READTHEDOCS"):  # elsewhere the site builds without the network
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# How it looks
html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"  # browsers draw it without a script, and screen readers read it
html_title = "hardmargin"
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "hardmargin"},
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "getting_started": [], "which": []}

# Labels of scikit-learn's documentation in docstrings that our classes inherit
INHERITED_LABELS = {"accuracy_score", "df_output_transform", "metadata_routing"}


def setup(app):
    """Resolve what Sphinx cannot by itself."""
    app.connect("source-read", anchors_as_targets)
    app.connect("missing-reference", labels_as_text)
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))


def anchors_as_targets(app, docname, source):
    """Let anchors in pages that commands write be targets of links."""
    source[0] = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)


def labels_as_text(app, env, node, text):
    """Leave labels of scikit-learn's documentation as plain text."""
    target = node["reftarget"]
    is_inherited = target in INHERITED_LABELS or target.startswith("sphx_glr_auto_examples")
    return text if is_inherited else None


def inline_formula(writer, node):
    """Write a formula in a line of text as MathML."""
    writer.body.append(mathml(node, "inline") + "\u2060")  # keeps a full stop on its line
    raise nodes.SkipNode


def formula(writer, node):
    """Write a formula in lines of its own as MathML."""
    writer.body.append(f'<div class="formula">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def mathml(node, display):
    """Return a formula as MathML, with a warning if a part of it is not known."""
    tex = node.astext()
    if display == "block":  # what is below "min" belongs under it
        tex = re.sub(r"\\(?:min|max)(?=_)", r"\g<0>\\limits", tex)
    found = convert(tex, display=display)
    if "\\" in found or ">&<" in found:
        logging.getLogger(__name__).warning("cannot write %r", tex, location=node)
    return found
