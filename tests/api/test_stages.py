"""jit(f).trace, .lower and .compile."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import stages


@pytest.fixture(scope="module")
def f():
    return gradix.jit(lambda x, *, y: {"a": x + y})


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


def test_compiled(f):
    compiled = f.lower(jnp.ones(3), y=2.0).compile()
    np.testing.assert_array_equal(compiled(jnp.ones(3), y=2.0)["a"], [3.0] * 3)
    assert compiled.as_text().startswith("HloModule") and compiled.cost_analysis()["flops"] == 3.0
    assert compiled.memory_analysis().output_size_in_bytes == 12
    assert compiled.output_shardings["a"].device_set == {gradix.devices()[0]}
    assert compiled.runtime_executable() is not None


@pytest.mark.parametrize("args, kwargs, message", [
    ((np.ones(4, np.float32),), {"y": 2.0}, r"'x' compiled with float32\[3\] and called with float32\[4\]"),
    ((np.ones(3, np.int32),), {"y": 2}, r"(?s)'x' compiled.*int32\[3\].*'y' compiled with float32\[\].*int32"),
    ((np.ones(3, np.float32), 1), {"y": 2.0}, "at args.*2 children"),
    ((np.ones(3, np.float32),), {}, "at kwargs.*0 children"),
])
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
