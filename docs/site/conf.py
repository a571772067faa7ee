"""How Sphinx makes the site; `python docs/site` calls it, with the pages laid out as it needs them."""

import functools
import html
import sys
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer, get_lexer_for_filename
from sphinx.search.en import SearchEnglish
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

import public  # noqa: E402
import reference  # noqa: E402

from gradix._version import __version__  # noqa: E402

project = "Gradix"
author = "The authors of Gradix"
project_copyright = author
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence"]
myst_heading_anchors = 4
root_doc = "index"
html_theme = "furo"
html_title = f"Gradix {__version__}"
html_static_path = [str(HERE / "static")]
html_css_files = ["gradix.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "source_view_link": "", "footer_icons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
python_maximum_signature_line_length = 88
python_display_short_literal_types = True
add_module_names = True
# Pages of names are reached from their modules and by the search; in the bar at the side they would be thousands.
exclude_patterns = ["site"]


class CodeThatNames(SphinxPostTransform):
    """Makes `jnp.where` and the like in the pages links to the reference."""

    default_priority = 900

    def run(self, **_):
        docname = self.env.docname
        if docname.startswith("reference/"):
            return
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            inside = isinstance(literal.parent, (nodes.reference, nodes.title, nodes.caption))
            page = None if inside or "." not in text else reference.page_of(text)
            if page:
                link = nodes.reference("", "", refuri=f"{'../' * docname.count('/')}{page}.html", internal=True)
                literal.replace_self(link)
                link += literal


class English(SearchEnglish):
    """Keeps the stems of words for all pages, which have most words in common; Sphinx keeps them for one page."""

    def __init__(self, options):
        super().__init__(options)
        self.stem = functools.cache(self.stem)


def one_sidebar(app, pagename, templatename, context, doctree):
    """Pages that stand in no table of contents share the bar at the side: it is resolved once for each depth of folders."""
    if doctree is not None and (
        not pagename.startswith("reference/gradix") or pagename.removeprefix("reference/") in public.modules()
    ):
        return
    make, depth = context.get("toctree"), pagename.count("/")
    if make is not None:
        context["toctree"] = lambda **options: _sidebar(app, depth, make, options)


def _sidebar(app, depth, make, options):
    kept = app.__dict__.setdefault("_gradix_sidebars", {})
    key = depth, tuple(sorted(options.items()))
    if key not in kept:
        kept[key] = make(**options)
    return kept[key]


def source_pages(app):
    """A page for each file of the repository that the reference or a page links to, with a number at each line."""
    for name in (Path(app.srcdir) / "sources.txt").read_text(encoding="utf-8").split():
        text = (HERE.parent.parent / name).read_text(encoding="utf-8")
        try:
            lexer = PythonLexer() if name.endswith(".py") else get_lexer_for_filename(name)
        except Exception:
            lexer = TextLexer()
        shown = highlight(text, lexer, HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True))
        body = f"<h1>{html.escape(name)}</h1>\n{shown}"
        yield f"source/{name}", {"title": name, "body": body, "parents": []}, "page.html"


def setup(app):
    app.add_lexer("jax", TextLexer)
    app.add_search_language(English)
    app.add_directive("public-module", reference.PublicModule)
    app.add_directive("public-name", reference.PublicName)
    app.add_post_transform(CodeThatNames)
    app.connect("html-page-context", one_sidebar, priority=400)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
