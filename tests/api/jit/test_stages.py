"""jit(f).trace, .lower and .compile."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import monitoring, stages
from gradix._runtime import xla
from gradix.experimental.layout import Format, Layout


@pytest.fixture(scope="module")
def f():
    return gradix.jit(lambda x, *, y: {"a": x + y})


@pytest.mark.x32
def test_traced(f):
    traced = f.trace(jnp.ones(3), y=2.0)
    assert isinstance(traced, stages.Traced) and isinstance(f, stages.Wrapped)
    assert traced.out_info == {"a": gradix.ShapeDtypeStruct((3,), "float32")}
    assert [e.primitive.name for e in traced.jaxpr.eqns][-1] == "add"
    assert traced.fun_name == "<lambda>" and traced.donate_argnums == ()
    (x,), named = traced.args_info
    assert (x.shape, x.dtype, x.donated, named["y"].shape) == ((3,), np.dtype("float32"), False, ())
    assert traced.in_tree == gradix.tree.structure(((0,), {"y": 0}))
    assert traced.out_tree == gradix.tree.structure({"a": 0})


def test_captured_arrays_are_constants_of_the_jaxpr():
    table = jnp.arange(100.0)
    jaxpr = gradix.jit(lambda x: x + table).trace(1.0).jaxpr
    assert len(jaxpr.consts) == 1 and len(jaxpr.jaxpr.invars) == 1


@pytest.mark.x32
def test_types_in_place_of_arrays(f):
    compiled = f.lower(gradix.ShapeDtypeStruct((2,), "float32"), y=gradix.ShapeDtypeStruct((), "float32")).compile()
    np.testing.assert_array_equal(compiled(np.ones(2, np.float32), y=1.0)["a"], [2.0, 2.0])


def test_lowered(f):
    lowered = f.lower(jnp.ones(3), y=2.0)
    assert "stablehlo.add" in lowered.as_text() and lowered.as_text("hlo").startswith("HloModule")
    assert lowered.cost_analysis()["flops"] == 3.0
    assert "stablehlo.add" in str(lowered.compiler_ir())
    with pytest.raises(ValueError, match="unknown dialect: foo"):
        lowered.as_text("foo")


@pytest.mark.x32
def test_compiled(f):
    compiled = f.lower(jnp.ones(3), y=2.0).compile()
    np.testing.assert_array_equal(compiled(jnp.ones(3), y=2.0)["a"], [3.0] * 3)
    assert compiled.as_text().startswith("HloModule") and compiled.cost_analysis()["flops"] == 3.0
    assert compiled.memory_analysis().output_size_in_bytes == 12
    assert compiled.output_shardings["a"].device_set == {gradix.devices()[0]}
    assert compiled.runtime_executable() is not None


@pytest.mark.x32
@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((np.ones(4, np.float32),), {"y": 2.0}, r"'x' compiled with float32\[3\] and called with float32\[4\]"),
        ((np.ones(3, np.int32),), {"y": 2}, r"(?s)'x' compiled.*int32\[3\].*'y' compiled with float32\[\].*int32"),
        ((np.ones(3, np.float32), 1), {"y": 2.0}, "at args.*2 children"),
        ((np.ones(3, np.float32),), {}, "at kwargs.*0 children"),
    ],
)
def test_other_arguments_are_refused(f, args, kwargs, message):
    compiled = f.lower(jnp.ones(3), y=2.0).compile()
    with pytest.raises(TypeError, match=message):
        compiled(*args, **kwargs)


def test_transforming_a_compiled_program_is_refused(f):
    compiled = f.lower(1.0, y=2.0).compile()
    with pytest.raises(TypeError, match="Transform first, compile after"):
        gradix.vmap(lambda x: compiled(x, y=2.0))(jnp.ones(3))


def test_donated_and_static_arguments():
    f = gradix.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0)
    lowered = f.lower(jnp.ones(100), 3)
    assert lowered.donate_argnums == (0,) and lowered.args_info[0][0].donated
    x = jnp.ones(100) + 0
    np.testing.assert_array_equal(lowered.compile()(x), np.full(100, 3.0))
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_the_compiler_s_own_objects(f):
    lowered = f.lower(jnp.ones(3), y=2.0)
    assert lowered.compiler_ir("hlo").as_hlo_text().startswith("HloModule")
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect: mhlo. There are 'stablehlo' and 'hlo'"):
            ask("mhlo")


def test_formats(f):
    compiled = f.lower(jnp.ones((3, 2)), y=2.0).compile()
    (x,), named = compiled.input_formats
    assert x.layout.major_to_minor == (0, 1) and named["y"].layout.major_to_minor == ()
    assert compiled.output_formats["a"] == x == Format(Layout((0, 1), ()), x.sharding)
    assert x.sharding.device_set == {gradix.devices()[0]}
    with pytest.raises(TypeError, match="expected None, Layout.AUTO or a Layout, got 3 of type int"):
        Format(3)
    with pytest.raises(ValueError, match="Sharding has to be concrete"):
        Format(Layout((0,)))


def test_the_keys_that_differ_are_named():
    compiled = gradix.jit(lambda p, *, flag: p["a"][0] + flag).lower({"a": (1.0,)}, flag=2.0).compile()
    for args, kwargs, message in (
        (({"b": (1.0,)},), {"flag": 1.0}, r"args\[0\].*so the keys differ: missing 'a', unexpected 'b'"),
        (({"a": (1.0,)},), {}, "kwargs.*so the keys differ: missing 'flag'"),
        (({"a": [1.0]},), {"flag": 1.0}, r"args\[0\]\['a'\].*so the types differ"),
        (({"a": (1.0, 2.0)},), {"flag": 1.0}, r"args\[0\]\['a'\].*so the lengths differ"),
    ):
        with pytest.raises(TypeError, match=message):
            compiled(*args, **kwargs)


# -- what the program is made of ------------------------------------------------------------------------------------


@pytest.mark.x32
def test_captured_arrays_are_hidden_arguments_not_text():
    table = jnp.arange(1_000_000.0) + 0
    f = gradix.jit(lambda x: x + table)
    lowered = f.lower(jnp.ones(1_000_000))
    assert len(lowered.as_text()) < 1000
    before = table.unsafe_buffer_pointer()
    compiled = lowered.compile()
    assert compiled.memory_analysis().argument_size_in_bytes == 8_000_000  # an argument, in no program's code
    for run in (f, compiled):
        np.testing.assert_array_equal(run(jnp.ones(1_000_000))[:3], [1, 2, 3])
    assert table.unsafe_buffer_pointer() == before  # no copy was put in its place
    (const,) = f.trace(jnp.ones(1_000_000)).jaxpr.consts
    assert const is table


def test_a_captured_numpy_array_is_copied_once():
    table = np.arange(100_000.0, dtype="f4")
    f = gradix.jit(lambda x: x + table)
    consts = [f.trace(jnp.ones(100_000)).jaxpr.consts[0] for _ in range(2)]
    f(jnp.ones(100_000))
    place = consts[0].unsafe_buffer_pointer()
    f(jnp.ones(100_000))
    assert consts[0] is consts[1] and consts[0].unsafe_buffer_pointer() == place


def test_a_nested_function_is_traced_and_written_once():
    traced = []

    @gradix.jit
    def layer(x):
        traced.append(x)
        return jnp.tanh(x) * 2

    text = gradix.jit(lambda x: layer(layer(layer(x)))).lower(jnp.ones(5)).as_text()
    assert len(traced) == 1 and text.count("func.func private") == 1 and text.count("call @") == 3
    gradix.jit(lambda x: layer(x) + 1).lower(jnp.ones(5))
    assert len(traced) == 1
    text = gradix.jit(lambda x: [gradix.jit(lambda v: jnp.sin(v))(x * i) for i in range(3)]).lower(1.0).as_text()
    assert text.count("func.func private") == 1  # of equal text, though traced apart


def test_options_of_jit_that_the_reference_takes():
    device = gradix.devices()[0]
    assert gradix.jit(lambda x: x + 1, device=device)(1.0) == 2 and gradix.jit(lambda x: x + 1, backend="cpu")(1.0) == 2
    inner = gradix.jit(lambda x: x * 2, inline=True)
    assert "jit" not in str(gradix.make_jaxpr(lambda x: inner(x))(1.0))
    two = jnp.ones(2)
    counts = [
        gradix.jit(lambda x, y: x, keep_unused=keep).lower(two, two).as_text().count("%arg") for keep in (False, True)
    ]
    assert counts == [2, 3]


def test_a_numpy_array_used_often_is_one_constant():
    table = np.arange(1000.0, dtype="f4").reshape(10, 100)
    table[0, 0] = np.nan

    @gradix.jit
    def f(x):
        x = gradix.lax.fori_loop(0, 3, lambda i, c: c + table, x)
        for _ in range(5):
            x = jnp.where(x > 1e9, x, x + table) * gradix.jit(lambda v: v / jnp.maximum(table, 1))(x)
        return x

    assert len(f.trace(table).jaxpr.consts) == 1
    assert len(gradix.make_jaxpr(lambda x: x + table[::2] + table[::2])(table[::2]).consts) == 2  # two objects

    def g(x):
        own = np.zeros(100, "f8")
        first = x + own
        own[-1] = 5
        return first, x + own, x - own

    assert len(gradix.jit(g).trace(0.0).jaxpr.consts) == 2
    outs = gradix.jit(g)(0.0)
    assert [float(o[-1]) for o in outs] == [0, 5, -5]


def places_of(operation: str, text: str) -> list[str]:
    """The places of such operations in a text, in which MLIR gives each place a name like "#loc3"."""
    named = dict(re.findall(r"^(#loc\d*) = (.*)$", text, re.MULTILINE))
    lines = re.findall(rf"^.*stablehlo\.{operation}\b.*$", text, re.MULTILINE)
    if operation == "while":  # its place stands behind its last region
        lines = re.findall(r"^ *\} loc.*$", text, re.MULTILINE)
    found = [place for line in lines for place in re.findall(r"#loc\d*", line)]
    while any("#loc" in place for place in found):
        found = [re.sub(r"#loc\d*", lambda m: named[m[0]], place) for place in found]
    return found


def test_the_text_may_say_where_operations_come_from():
    @gradix.jit
    def inner(x):
        return jnp.sin(x)

    def f(x, w):
        y = inner(x @ w)
        y = gradix.lax.fori_loop(0, 3, lambda i, c: c * 2.0, y)
        return jnp.sort(y).sum() + jnp.linalg.solve(w, w)[0, 0]

    lowered = gradix.jit(f).lower(np.ones((2, 3), "f4"), np.ones((3, 3), "f4"))
    text, line = lowered.as_text(debug_info=True), f.__code__.co_firstlineno
    for name, offset in (("sine", -2), ("dot_general", 1), ("multiply", 2), ("while", 2)):
        assert any(f'test_stages.py":{line + offset}:0' in place for place in places_of(name, text)), name
    assert " loc(" not in lowered.as_text()
    assert re.sub(r" loc\([^()]*\)|^#loc.*\n", "", text, flags=re.MULTILINE) == lowered.as_text()
    xla.parse_module(text)  # it is still a program


def test_what_a_call_has_lowered_is_not_lowered_again():
    seen = []
    monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: seen.append(event.rpartition("/")[2]))
    captured, here = jnp.arange(3), gradix.devices()[0]
    try:
        for f, x in (
            (gradix.jit(lambda x: x * 2), 1.5),
            (gradix.jit(lambda x: x + captured), jnp.ones(3)),
            (gradix.jit(lambda x: x - captured), gradix.device_put(jnp.ones(3), here)),
            (gradix.jit(lambda x: x * 3, donate_argnums=0), gradix.device_put(jnp.ones(3), here)),
        ):
            text = f.lower(x).as_text()
            struct = gradix.ShapeDtypeStruct.like(x) if hasattr(x, "shape") else x
            out = f(x)
            seen.clear()
            lowered = f.lower(struct)
            assert "jaxpr_to_mlir_module_duration" not in seen and lowered.as_text() == text
            assert np.array_equal(lowered.compile()(jnp.ones(3) if hasattr(x, "shape") else x), out)
    finally:
        monitoring.clear_event_listeners()
