"""What arrays, programs, functions, meshes and trees show in notebooks."""

import html
import io
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._core.jaxpr import Jaxpr

VOID = {"br", "rect", "meta", "input"}


class Balanced(HTMLParser):
    """Raises if a tag is not closed; keeps the text and the titles."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.titles = [], "", []

    def handle_starttag(self, tag, attrs):
        self.titles += [v for k, v in attrs if k == "title" and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page(x) -> Balanced:
    parser = Balanced()
    parser.feed(x._repr_html_())
    parser.close()
    assert not parser.open
    return parser


@pytest.mark.x32
@pytest.mark.parametrize(
    ("x", "words"),
    [
        (jnp.arange(6, dtype="float32").reshape(2, 3), ["float32[2,3]", "24 B", "min 0", "mean 2.5", "max 5"]),
        (jnp.array([1, np.nan, np.inf]), ["1 NaN", "1 infinite", "min 1"]),
        (jnp.array([np.nan]), ["1 NaN"]),
        (jnp.array([True, False]), ["1 of 2 true"]),
        (jnp.array([3 + 4j]), ["absolute values", "max 5"]),
        (jnp.ones((0, 2), "float32"), ["float32[0,2]", "0 B"]),
        (jnp.int32(7), ["int32[]", "4 B", "min 7"]),
        (jnp.ones((300, 300), "bfloat16"), ["bfloat16[300,300]", "175.8 KiB", "max 1"]),
        (jnp.full(3, 3e38, "float32"), ["max 3e+38"]),
        (gradix.random.key(0), ["key<fry>[]"]),
        (jnp.zeros((1 << 22) + 7, "int8"), ["of every 2th element"]),
    ],
    ids=lambda v: "",
)
def test_arrays(x, words):
    text = page(x).text
    for word in words:
        assert word in text
    assert "Array" in text


def test_arrays_without_values():
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in page(x).text
    told = []
    gradix.grad(lambda x: told.append(page(x).text) or x)(1.0)
    assert "GradTracer" in told[0]


def test_a_histogram_is_drawn_for_different_numbers():
    assert jnp.arange(100.0)._repr_html_().count("<rect") == 24 and "<rect" not in jnp.ones(100)._repr_html_()


def test_programs_fold_and_have_lines():
    def f(x):
        return lax.scan(lambda c, v: (c * v, lax.cond(c > 0, jnp.sin, jnp.cos, v)), 1.0, x)

    parts = page(gradix.make_jaxpr(f)(jnp.ones(3)))
    assert parts.text.count("scan") and "cond" in parts.text and "sin" in parts.text
    line = f.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in parts.titles
    assert page(gradix.jit(f).trace(jnp.ones(3))).titles
    assert "jaxpr of a function" in page(Jaxpr([], [], [], [])).text


@pytest.mark.x32
def test_functions_and_their_stages():
    f = gradix.jit(lambda x: x @ x)
    f(jnp.ones((2, 2)))
    f(jnp.ones((3, 3)))
    text = page(f).text
    assert "compilations" in text and "argument x: float32[2,2] -> float32[3,3]" in text
    lowered = f.lower(jnp.ones((2, 2)))
    assert "stablehlo.dot_general" in page(lowered).text
    compiled = page(lowered.compile()).text
    assert "temporaries" in compiled and "HloModule" in compiled


def test_meshes_and_shardings():
    mesh = gradix.make_mesh((1,), ("<a>",))
    assert "<a>=1" in page(mesh).text and "<a>" in page(gradix.sharding.NamedSharding(mesh, gradix.P("<a>"))).text
    x = gradix.device_put(jnp.arange(4.0), gradix.sharding.NamedSharding(mesh, gradix.P("<a>")))
    assert "NamedSharding" in page(x).text and "max 3" in page(x).text
    assert "data=2" in page(gradix.sharding.AbstractMesh((2,), ("data",))).text


@pytest.mark.x32
def test_specs_and_exported_functions():
    text = page(gradix.P("<a>", None, ("b", "c"), unreduced={"d"})).text
    assert "axis 0<a>" in text and "axis 1whole" in text and "axis 2b, c" in text and "unreducedd" in text
    f = gradix.jit(jnp.cumsum)
    (b,) = gradix.export.symbolic_shape("b")
    text = page(gradix.export.export(f)(gradix.ShapeDtypeStruct((b,), "float32"))).text
    assert "Exported cumsum" in text and "float32[b]" in text and "cpu" in text
    f(jnp.ones(3)), f(jnp.ones(4))
    text = page(f.stats()).text
    assert "compilations2" in text and "float32[3] -> float32[4]" in text


def test_classes_of_jaxlib_show_themselves_with_the_extension():
    shown = {}
    formatter = SimpleNamespace(for_type=lambda kind, show: shown.setdefault(kind, show))
    shell = SimpleNamespace(
        register_magic_function=lambda function, kind: None,
        display_formatter=SimpleNamespace(formatters={"text/html": formatter}),
    )
    gradix.load_ipython_extension(shell)
    tree, device = gradix.tree.structure({"<w>": 1, "b": [2, None]}), gradix.devices()[0]
    for x, words in ((tree, ["['<w>']", "['b'][0]", "2 leaves"]), (device, ["platform", "cpu", "process"])):
        text = page(SimpleNamespace(_repr_html_=lambda: shown[type(x)](x))).text  # noqa: B023
        assert all(word in text for word in words), text
    assert not hasattr(tree, "_repr_html_")
    many = page(SimpleNamespace(_repr_html_=lambda: shown[type(tree)](gradix.tree.structure([0] * 30)))).text
    assert "30 leaves" in many and "… 10 more" in many


@pytest.mark.x32
def test_summaries_of_trees():
    s = gradix.tree.summary(
        {"w": jnp.ones((1000, 250)), "b": np.zeros(3, "f8"), "n": "x", "s": gradix.ShapeDtypeStruct((2,), "int8")}
    )
    assert s.nbytes == 1_000_000 + 24 + 2 and s.size == 250_000 + 3 + 2
    assert str(s).splitlines()[-1] == "4 leaves, 250,005 elements, 1.000 MB"
    assert "['w']" in page(s).text and repr(s) == str(s)
    assert str(gradix.tree.summary(())).splitlines()[-1] == "0 leaves, 0 elements, 0.000 MB"
    assert "(the leaf)" in str(gradix.tree.summary(jnp.ones(3)))


@pytest.mark.x32
def test_rows_of_different_lengths():
    text = page(gradix.Ragged.of([[1.5, 2.0], [], range(9)], dtype="float32")).text
    assert "Ragged float32[3, at most 9]" in text and "11 elements" in text and "1.5, 2.0" in text and "7.0, …" in text
    assert "5 more rows" in page(gradix.Ragged.of([[i] for i in range(25)])).text
    assert "Ragged float32[0, at most 0]" in page(gradix.Ragged.of([])).text
    seen = []
    gradix.jit(lambda r: (seen.append(page(r).text), r)[1])(gradix.Ragged.of([[1], [2, 3]]))
    assert "Ragged int32[?, at most 2]" in seen[0]


def test_options():
    text = page(gradix.config).text
    assert "jax_debug_nans" in text and "gradix_rewrites" in text and "default" in text


def square(x):
    return (x @ x)[:3].sum()


def shown():
    """What has a table, with texts that it shows."""
    x = jnp.ones((64, 64))
    return [
        (gradix.profile(square)(x), ["ms", "Mflop", "return (x @ x)[:3].sum()"]),
        (gradix.jit(square).memory(x), ["peak", "made by", "argument x"]),
        (gradix.tree.summary({"dense": x, "[b]": 1.0}), ["['dense']", "['[b]']", "float32", "4,096 elements"]),
    ]


@pytest.mark.x32
def test_tables_in_notebooks():
    for table, texts in shown():
        page = table._repr_html_()
        assert all(html.escape(text) in page for text in texts), page


def test_tables_of_rich():
    console = pytest.importorskip("rich.console")
    for table, texts in shown():
        plain, colored = (
            console.Console(width=150, force_terminal=c, record=True, file=io.StringIO()) for c in (False, True)
        )
        plain.print(table), colored.print(table)
        text = plain.file.getvalue()
        assert all(word in text for word in texts), text
        assert "\x1b[" not in text and "\x1b[" in colored.file.getvalue()


def test_rich_is_not_loaded_before_it_prints():
    code = "import sys, gradix, gradix.numpy as jnp; print(gradix.tree.summary({'w': jnp.ones(3)})); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


@pytest.mark.x32
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_treescope_shows_arrays(monkeypatch):
    treescope = pytest.importorskip("treescope")
    from gradix._core.treescope_arrays import Adapter

    drawn, numbers = [], Adapter.get_array_data_with_truncation
    monkeypatch.setattr(
        Adapter,
        "get_array_data_with_truncation",
        lambda self, array, **rest: drawn.append(array) or numbers(self, array, **rest),
    )
    x = jnp.array([[1.0, jnp.nan, -3.0], [4.0, 5.0, 6.0]])
    tree = {"w": x, "half": x.astype(jnp.bfloat16), "k": gradix.random.key(0), "none": jnp.zeros((0, 2))}
    text = treescope.render_to_text(tree)
    assert "'w': <gradix.Array float32[2,3] [≥-3, ≤6] not finite: 1>" in text
    assert "'half': <gradix.Array bfloat16[2,3]" in text and "'k': <gradix.Array key<fry>[]>" in text
    assert "'none': <gradix.Array float32[0,2]>" in text
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        treescope.render_to_html(tree)
    assert {a.dtype.name for a in drawn} == {"float32", "bfloat16"}
    assert treescope.render_array(jnp.arange(10_000.0).reshape(100, 100), truncate=True) is not None
    gone = jnp.ones(3)
    gone.delete()
    assert "<gradix.Array float32[3]>" in treescope.render_to_text(gone)


@pytest.mark.x32
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_treescope_is_given_the_ends_of_long_axes():
    pytest.importorskip("treescope")
    x = jnp.arange(40).reshape(2, 20)
    adapter = x.__treescope_ndarray_adapter__()
    assert [a.size for a in adapter.get_axis_info_for_array_data(x)] == [2, 20]
    data, mask = adapter.get_array_data_with_truncation(x, x[0] != 19, (None, 2))
    assert data[:, [0, 1, 3, 4]].tolist() == [[0, 1, 18, 19], [20, 21, 38, 39]]
    assert mask.tolist() == [[True, True, False, True, False]] * 2
    assert adapter.get_numpy_dtype(x) == np.int32 and adapter.get_numpy_dtype(x.astype(jnp.bfloat16)) == np.float32
    assert adapter.get_numpy_dtype(gradix.random.key(0)) is None
