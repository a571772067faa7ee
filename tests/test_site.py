"""What the site of the documentation is made of: its names, pages, pictures; and, where Sphinx is installed, the site itself."""

import importlib
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from docs import gallery, options, pictures
from docs.site import check, public
from gradix._core import annotations

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "site"
NAMES = public.names()


def module(name):
    """A file of docs/site, which imports its neighbours by their names alone, as Sphinx runs them."""
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(SITE))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(SITE))


def test_names_are_those_that_modules_list():
    assert len(NAMES) > 2000 and {
        "gradix.jit",
        "gradix.numpy.sum",
        "gradix.lax.sin_p",
        "gradix.scipy.stats.norm.pdf",
    } <= set(NAMES)
    assert NAMES["gradix.jit"].kind == "function" and NAMES["gradix.Array"].kind == "class"
    assert NAMES["gradix.errors.KeyReuseError"].kind == "exception" and NAMES["gradix.numpy.pi"].kind == "value"


def test_each_object_is_described_under_one_name():
    for name in NAMES.values():
        home = NAMES[name.home]
        assert home.home == home.path and home.value is name.value
    assert NAMES["gradix.NamedSharding"].home == "gradix.sharding.NamedSharding"
    assert NAMES["gradix.tree_util.tree_leaves"].home == "gradix.tree_util.tree_leaves"


def test_every_function_and_class_says_what_it_is():
    silent = [p for p, n in NAMES.items() if n.kind in ("function", "class", "exception") and not public.summary_of(n)]
    assert silent == []


@pytest.mark.parametrize(
    ("path", "file", "word"),
    [
        ("gradix.jit", "gradix/_api/jit/jit.py", "def jit"),
        ("gradix.sharding.Mesh", "gradix/_core/mesh.py", "class Mesh"),
        ("gradix.numpy.add", "gradix/numpy/arithmetic.py", "def add"),
        ("gradix.experimental.sparse.BCOO", "gradix/experimental/sparse/_bcoo_array.py", "class BCOO"),
    ],
)
def test_source_is_where_the_object_is_made(path, file, word):
    found, line = public.source_of(NAMES[path].value)
    lines = (ROOT / found).read_text(encoding="utf-8").splitlines()
    assert found == file and any(word in text for text in lines[line - 1 : line + 8])


def test_most_names_have_a_source():
    ours = [n for n in NAMES.values() if n.kind == "function" and n.path == n.home]
    assert sum(public.source_of(n.value) is not None for n in ours) > 0.97 * len(ours)


def answer_of_new_process(ask: str) -> str:
    """What a program prints that asks the options of a process in which no test has defined others."""
    environment = {"PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_options_that_are_praised_are_read():
    described = [name for group in options.DOES.values() for name in group]
    read = answer_of_new_process("import docs.options as o; print(*o.read_in_source())").split()
    assert len(described) == len(set(described)) and set(described) == set(read)


def test_the_page_of_options_is_what_is_made_of_them():
    ask = "import docs.options as o; print(o.PAGE.read_text(encoding='utf-8') == o.page())"
    assert answer_of_new_process(ask) == "True", "run python -m docs.options"


def test_defaults_of_own_options_are_those_of_a_new_process():
    ask = "import gradix, docs.options as o; print([n for n, d in o._OWN_DEFAULTS.items() if getattr(gradix.config, n) != d])"
    assert answer_of_new_process(ask) == "[]"


@pytest.mark.x32
@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_what_is_made_of_their_figures(name):
    made = pictures.PICTURES[name]().svg()
    assert (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == made, "run python -m docs.pictures"


def test_pictures_are_used_and_have_dark_colours():
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs").glob("*.md"))
    for file in pictures.FOLDER.glob("*.svg"):
        assert f"pictures/{file.name})" in text and "prefers-color-scheme: dark" in file.read_text(encoding="utf-8")


def test_the_gallery_shows_what_each_example_draws():
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    drawing = {p.stem for p in (ROOT / "examples").glob("*.py") if '"--out"' in p.read_text(encoding="utf-8")}
    assert drawing == set(gallery.PROGRAMS) == {p.stem for p in gallery.FOLDER.glob("*.png")}
    for name in gallery.PROGRAMS:
        picture = (gallery.FOLDER / f"{name}.png").read_bytes()
        width, height = struct.unpack(">II", picture[16:24])
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and width >= 1200 and height >= 300 and len(picture) < 400_000
        assert f"pictures/gallery/{name}.png)" in text and f"../examples/{name}.py)" in text


def test_blocks_are_shown_as_they_are_read():
    stage = module("stage")
    assert stage._block("```python\n>>> 1\n1\n\n```") == "```python\n>>> 1\n1\n```"
    assert stage._block("```console\npip install .\n```") == "```bash\npip install .\n```"
    assert stage._block("```text\na\n\n```console\nb\n```") == "```text\na\n\n```console\nb\n```"


def test_what_is_wrong_with_a_site_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top">up</a><a href="https://x.org">out</a>'
    )
    (tmp_path / "b.html").write_text(
        '<img src="no.png"><script src="https://x.org/y.js"></script><a href="c.html">c</a><p id="there"></p>'
    )
    (tmp_path / "s.css").write_text(
        "@import 'https://x.org/fonts.css'; a { background: url(//x.org/z.png) } b { background: url(z.png) }"
    )
    found = check.problems(tmp_path)
    assert found == [
        "a.html: links to b.html#here, whose page has no such place",
        "b.html: loads no.png, which is not there",
        "b.html: loads https://x.org/y.js from a network",
        "b.html: links to c.html, which is not there",
        "s.css: loads https://x.org/fonts.css from a network",
        "s.css: loads //x.org/z.png from a network",
    ]


def test_docstrings_are_read_in_parts():
    docstrings = module("docstrings")
    text = "The sum.\n\nMore.\n\nArgs:\n    x: an array\n        of numbers.\n    *rest: more.\n\nExample:\n    >>> 1\n    1"
    parts = docstrings.sections(text)
    assert [title for title, _ in parts] == ["", "Args", "Example"]
    assert docstrings.entries(parts[1][1]) == [("x", "an array of numbers."), ("*rest", "more.")]
    block = docstrings.blocks("One.\n- a `b`\n- c\n  d\n\n    x = 1", lambda code: docstrings.nodes.literal(code, code))
    assert [type(b).__name__ for b in block] == ["paragraph", "bullet_list", "literal_block"]
    assert block[1].astext() == "a b\n\nc d"


def test_code_leads_to_what_it_names():
    reference = module("reference")
    assert reference.page_of("jnp.where") == reference.page_of("jax.numpy.where") == "reference/gradix.numpy.where"
    assert reference.page_of("vmap(f, in_axes=1)") == "reference/gradix.vmap"
    assert reference.page_of("symbolic_shape", "gradix.export") == "reference/gradix.export.symbolic_shape"
    assert reference.page_of("gradix.lax") == "reference/gradix.lax"
    assert reference.page_of("x + 1") is None and reference.page_of("nothing.such") is None


def test_signatures_are_in_words_that_readers_know():
    reference = module("reference")
    shown = reference._call(NAMES["gradix.numpy.sum"].value) + reference._call(NAMES["gradix.random.normal"].value)
    assert "axis: int | Sequence[int] | None = None" in shown and "key: Array | ndarray" in shown
    listed = {n for n in vars(annotations) if n[0].isupper()} - {
        "Any",
        "Protocol",
        "Sequence",
        "SupportsIndex",
        "TypeAlias",
        "TYPE_CHECKING",
    }
    with_page = {n for n in listed if any(p.endswith("." + n) for p in NAMES)}
    assert listed - with_page - {"SupportsDType"} == set(reference.IN_PLAIN_WORDS)


def test_support_is_what_a_call_shows():
    support = module("support")
    sine = support.support_of(NAMES["gradix.numpy.sin"])
    assert sine.dtypes["int32"] == "float32" and sine.dtypes["complex64"] == "complex64" and sine.primitives == ("sin",)
    assert sine.transformations == {"jit": True, "vmap": True, "jvp": True, "grad": True}
    assert "float32" not in support.support_of(NAMES["gradix.lax.population_count"]).dtypes
    assert not support.support_of(NAMES["gradix.numpy.nextafter"]).transformations["grad"]
    assert support.support_of(NAMES["gradix.numpy.argmax"]).transformations["grad"]  # a gradient of zero
    assert support.support_of(NAMES["gradix.numpy.shape"]) is support.support_of(NAMES["gradix.lax.scan"]) is None
    assert support.rules_of(NAMES["gradix.lax.scan"])[0][0] == "scan"


def test_pages_are_laid_out_with_tables_of_contents(tmp_path):
    stage = module("stage")
    stage.stage(tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert (
        ":caption: How to" in index and index.count("\n/getting-started\n") == 1 and "pictures/speed-dark.svg" in index
    )
    assert "](../" not in index and "(repository/CONTRIBUTING.md)" in index
    assert (tmp_path / "reference/gradix.vmap.rst").exists() and (tmp_path / "pictures/speed-light.svg").exists()
    assert "gradix/_core/primitive.py" in (tmp_path / "sources.txt").read_text(encoding="utf-8")
    assert "../source/gradix/_core/primitive.py.html" in (tmp_path / "design/architecture.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_the_site_is_made_without_a_warning(tmp_path):
    for needed in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(needed)
    done = subprocess.run([sys.executable, SITE, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 problems" in done.stdout
