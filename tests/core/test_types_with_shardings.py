"""Types made by hand: how they are divided over explicit axes, and over which manual axes they vary."""

import numpy as np
import pytest

import gradix
from gradix.core import ShapedArray
from gradix.sharding import AbstractMesh, AxisType, ManualAxisType, NamedSharding, PartitionSpec as P

MESH = AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))


def typed(spec, **options):
    return ShapedArray((4, 4), np.float32, sharding=NamedSharding(MESH, spec), **options)


def test_only_explicit_axes_are_in_types():
    assert typed(P("x", "y")).sharding.spec == P("x", None)
    assert typed(P(("x", "y"), None)).str_short() == "float32[4@x,4]"
    assert typed(P(None, "y")) is ShapedArray((4, 4), np.float32)
    assert typed(P(unreduced={"x"})).str_short(True) == "f32[4,4]{U:x}"
    assert typed(P("x")) is typed(P("x", None))


def test_update_keeps_or_replaces_what_divides():
    a = typed(P("x"))
    assert a.update(dtype=np.dtype("int32")).str_short() == "int32[4@x,4]"
    assert a.update(shape=(4,)).str_short() == "float32[4]"
    plain = ShapedArray((4, 4), np.float32)
    assert plain.update(sharding=NamedSharding(MESH, P(None, "x"))).str_short() == "float32[4,4@x]"
    assert a.update(weak_type=True).weak_type


def test_manual_axes():
    varying = ManualAxisType(varying={"x"}, reduced={"y"})
    a = ShapedArray((2,), np.float32, manual_axis_type=varying)
    assert a.str_short() == "float32[2]{V:x, R:y}" and a.mat is varying
    assert a.update(shape=(3,)).mat is varying
    unreduced = ManualAxisType(unreduced={"x"}, reduced={"y"})
    b = ShapedArray((2,), np.float32, manual_axis_type=unreduced)
    assert b.str_short() == "float32[2]{U:x, R:y}" and b.mat is unreduced
    assert b is not ShapedArray((2,), np.float32, manual_axis_type=ManualAxisType(unreduced={"y"}, reduced={"x"}))


def test_floats_are_checked_where_a_branch_runs_eagerly():
    with gradix.debug_nans(True):
        for run in (
            lambda: gradix.lax.cond(True, lambda _: np.nan, lambda _: 0.0, 0.0),
            lambda: gradix.lax.switch(0, [lambda x: np.nan, lambda x: x], 0.0),
            lambda: gradix.lax.scan(lambda c, _: (np.nan, None), 0.0, None, length=1)[0],
        ):
            with pytest.raises(FloatingPointError, match="nan"):
                run()
        out = gradix.lax.cond(True, lambda x: (x, gradix.random.key(0)), lambda x: (x, gradix.random.key(1)), 1.0)
        assert out[0] == 1.0


def test_attributes_around_a_jitted_function():
    from gradix.experimental.xla_metadata import set_xla_metadata

    @set_xla_metadata(part="b")
    @gradix.jit
    def f(x):
        return x + 1

    assert f(1.0) == 2.0 and f.__name__ == "f"
    assert 'part = "b"' in f.lower(1.0).as_text()
    with set_xla_metadata(other="c"):
        text = f.trace(1.0).lower().as_text()
    assert 'part = "b"' in text and 'other = "c"' in text
    assert f.eval_shape(1.0).shape == () and gradix.grad(f)(1.0) == 1.0
    assert f.stats().calls


@pytest.mark.x32
def test_composites_are_written_in_their_own_form():
    def lowered(name, **options):
        return gradix.jit(lambda x: gradix.lax.composite(lambda x, **_: x * 2, name, **options)(x)).lower(1.0).as_text()

    assert 'stablehlo.composite "my.twice" %arg0 {decomposition = @my.twice} : (tensor<f32>) -> tensor<f32>' in lowered(
        "my.twice"
    )
    assert "version = 3 : i32" in lowered("my.twice", version=3)


def test_a_call_with_attributes_keeps_them_in_its_derivatives():
    from gradix.experimental.scheduling_groups import scheduling_group, xla_metadata_call

    wave = xla_metadata_call(lambda x, *, scale=1.0: {"y": scale * gradix.numpy.sin(x)}, part="a")
    assert wave(0.5, scale=2.0)["y"] == 2 * np.float32(np.sin(np.float32(0.5)))
    text = gradix.jit(gradix.grad(lambda x: wave(x)["y"])).lower(1.0).as_text()
    assert text.count('mhlo.frontend_attributes = {part = "a"}') == 2
    np.testing.assert_allclose(gradix.jit(gradix.grad(lambda x: wave(x)["y"]))(0.5), np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(gradix.vmap(wave)(np.ones(3, "f4"))["y"], np.sin(np.ones(3)), rtol=1e-6)
    jaxpr = gradix.make_jaxpr(xla_metadata_call(part="b")(lambda x: x + 1))(1.0)
    assert [str(e.primitive) for e in jaxpr.eqns] == ["xla_metadata_call"] and "part=b" in str(jaxpr)
    assert 'scheduling_group = "g"' in gradix.jit(scheduling_group("g")(gradix.numpy.sin)).lower(1.0).as_text()
