"""make_jaxpr, eval_shape, ShapeDtypeStruct, closure_convert, typeof and names of scopes."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.core import ShapedArray


def test_make_jaxpr_of_values_and_of_types():
    def f(x, y):
        return x * y

    by_value = gradix.make_jaxpr(f)(np.ones(3, np.float32), 2.0)
    by_type = gradix.make_jaxpr(f)(gradix.ShapeDtypeStruct((3,), "float32"), y=2.0)
    assert str(by_value) == str(by_type)
    assert [a.str_short() for a in by_value.out_avals] == ["float32[3]"]


def test_make_jaxpr_names():
    def f(x):
        return x

    assert gradix.make_jaxpr(f).__name__ == "make_jaxpr(f)"
    assert gradix.make_jaxpr(f)(1.0).jaxpr.debug_info.arg_names == ("x",)


@pytest.mark.x32
def test_make_jaxpr_static_arguments():
    text = str(gradix.make_jaxpr(lambda n, x: x * n, static_argnums=0)(3, 2.0))
    assert text == "{ lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }"
    assert str(gradix.make_jaxpr(lambda x, xs: x * len(xs), static_argnums=-1)(2.0, [1, 2])).count("2.0") == 1
    with pytest.raises(ValueError, match="only accepts 1 positional"):
        gradix.make_jaxpr(lambda x: x, static_argnums=3)


def test_make_jaxpr_named_axes():
    jaxpr = gradix.make_jaxpr(lambda x: gradix.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert jaxpr.eqns[0].primitive.name == "psum"
    with pytest.raises(NameError, match="unbound axis name: i"):
        gradix.make_jaxpr(lambda x: gradix.lax.psum(x, "i"))(1.0)


@pytest.mark.x32
def test_make_jaxpr_return_shape():
    closed, shape = gradix.make_jaxpr(lambda x: {"y": x + 1}, return_shape=True)(1)
    assert shape == {"y": gradix.ShapeDtypeStruct((), "int32", weak_type=True)}
    assert len(closed.eqns) == 1


def test_make_jaxpr_constants():
    table = np.arange(3, dtype=np.float32)
    closed = gradix.make_jaxpr(lambda x: x + table)(1.0)
    np.testing.assert_array_equal(closed.consts[0], table)


@pytest.mark.x32
def test_scalars_that_are_captured_are_constants_and_numbers_are_literals():
    scalar, index = jnp.float32(3), jnp.array(0)

    def f(x):
        made = jnp.array(1.5) + jnp.zeros(())  # of the program itself, so that it needs no constant
        return (x * scalar + scalar**2 + np.float32(4) + 5.0 + made + np.array(6.0), index)

    closed = gradix.make_jaxpr(f)(1.0)
    assert [int(c) for c in closed.consts] == [3, 0]
    assert [float(y) for y in gradix.core.eval_jaxpr(closed.jaxpr, [2.0, 7], 1.0)] == [22.5, 7.0]


@pytest.mark.x32
@pytest.mark.parametrize(
    "inside",
    [
        lambda f: f,
        gradix.jit,
        lambda f: lambda x: gradix.lax.cond(x > 0, f, lambda x: x, x),
        lambda f: lambda x: gradix.lax.scan(lambda c, _: (f(c), None), x, length=2)[0],
        lambda f: lambda x: gradix.grad(f)(x),
        lambda f: lambda x: gradix.vmap(f)(x[None])[0],
    ],
    ids=["plain", "jit", "cond", "scan", "grad", "vmap"],
)
def test_known_and_traced_scalars_give_programs_with_as_many_constants(inside):
    counts = []

    def count(scalar, index):
        def f(x):
            return x * scalar * 2 + jnp.sin(x) * scalar.astype("float16") + index

        counts.append(len(gradix.make_jaxpr(inside(f))(1.0 * jnp.ones(())).consts))
        return scalar

    count(jnp.float32(3), jnp.array(0))  # known outside of all programs
    gradix.jit(lambda: count(jnp.float32(3), jnp.array(0)))()  # known, and made in the program around
    gradix.jit(count)(3.0, 0)  # traced
    assert counts[0] == counts[1] == counts[2] >= 2


@pytest.mark.x32
def test_a_body_that_compiled_programs_share_has_its_constants_where_it_is_shown():
    scalar = jnp.float32(3)

    def body(carry, _):
        return carry * scalar, None

    def f(x):
        return gradix.lax.scan(body, x, length=2)[0]

    before = len(gradix.make_jaxpr(f)(1.0).consts)
    assert gradix.jit(f)(1.0) == 9
    assert len(gradix.make_jaxpr(f)(1.0).consts) == before == 1


def test_scalars_that_compiled_programs_capture_are_literals():
    scalar = jnp.float32(3)
    assert "3.0" in str(gradix.jit(lambda x: x * scalar).trace(1.0).jaxpr)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: gradix.make_jaxpr(3), "must be callable"),
        (lambda: gradix.make_jaxpr(lambda x: x)("text"), "argument x .*<class 'str'>"),
        (lambda: gradix.make_jaxpr(lambda x: {"a": "text"})(1.0), r"result\['a'\]"),
        (lambda: gradix.eval_shape(lambda x: "text", 1.0), "must return arrays"),
        (lambda: gradix.eval_shape(3), "expects a function"),
    ],
)
def test_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.x32
def test_eval_shape():
    out = gradix.eval_shape(lambda p, x: (p["w"] * x).sum(), {"w": np.ones((2, 3))}, x=np.ones(3, np.int32))
    assert out == gradix.ShapeDtypeStruct((), "float32")
    assert gradix.jit(lambda x: [x]).eval_shape(1.0) == [gradix.ShapeDtypeStruct((), "float32", weak_type=True)]


def test_eval_shape_computes_nothing():
    huge = gradix.ShapeDtypeStruct((1 << 20, 1 << 20), "float32")
    assert gradix.eval_shape(lambda x: jnp.sin(x) + 1, huge).shape == huge.shape


class TestShapeDtypeStruct:
    def test_members(self):
        s = gradix.ShapeDtypeStruct([2, 3], "float32")
        assert (s.shape, s.dtype, s.size, s.ndim, len(s)) == ((2, 3), np.dtype("float32"), 6, 2, 2)
        assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
        assert s.update(shape=(4,)) == gradix.ShapeDtypeStruct((4,), jnp.float32) != s
        assert hash(s) == hash(gradix.ShapeDtypeStruct((2, 3), np.float32))
        assert gradix.ShapeDtypeStruct.like(jnp.ones(3)).shape == (3,)

    @pytest.mark.parametrize(
        "call, error",
        [
            (lambda: gradix.ShapeDtypeStruct((3,), None), ValueError),
            (lambda: gradix.ShapeDtypeStruct(3, "float32"), TypeError),
            (lambda: gradix.ShapeDtypeStruct((), "float32").update(size=3), ValueError),
            (lambda: len(gradix.ShapeDtypeStruct((), "float32")), TypeError),
        ],
    )
    def test_errors(self, call, error):
        with pytest.raises(error):
            call()


@pytest.mark.x32
def test_typeof():
    assert gradix.typeof(1.5) == ShapedArray((), np.dtype("float32"), True)
    assert gradix.typeof(np.ones(3)).str_short() == "float32[3]"
    with pytest.raises(TypeError, match="'a' of type <class 'str'>"):
        gradix.typeof("a")


def test_types_do_not_tell_devices():
    x = jnp.ones(3)
    there = gradix.device_put(x, gradix.devices()[0])
    assert gradix.typeof(there) == gradix.typeof(x) == gradix.typeof(gradix.jit(lambda v: v + 1)(there))
    mesh = gradix.make_mesh((1,), ("one",), axis_types=(gradix.sharding.AxisType.Explicit,))
    with gradix.set_mesh(mesh):
        assert gradix.typeof(jnp.zeros(())) == gradix.typeof(jnp.zeros(()) + 1)
        assert gradix.typeof(jnp.asarray(1.0)) == gradix.typeof(jnp.asarray(1.0) * 2)
        divided = gradix.device_put(x, gradix.sharding.PartitionSpec("one"))
        assert tuple(gradix.typeof(divided).sharding.spec) == ("one",)
        assert gradix.typeof(divided) != gradix.typeof(x)
    whole = gradix.device_put(x, gradix.sharding.NamedSharding(mesh, gradix.sharding.PartitionSpec()))
    assert gradix.typeof(whole).sharding.mesh.axis_names == ("one",)


def test_an_empty_mesh_has_no_axes_of_a_type():
    mesh = gradix.typeof(jnp.ones(3)).sharding.mesh
    assert mesh.empty and not (mesh.are_all_axes_auto or mesh.are_all_axes_explicit or mesh.are_all_axes_manual)


def test_closure_convert():
    def line(w, b):
        g, captured = gradix.closure_convert(lambda x: w * x + b + jnp.ones(2), 1.0)
        assert len(captured) == 2
        return g(2.0, *captured).sum()

    assert [float(g) for g in gradix.grad(line, (0, 1))(3.0, 4.0)] == [4.0, 2.0]
    g, captured = gradix.closure_convert(lambda x: x + 1, 1.0)
    assert captured == [] and float(g(2.0)) == 3.0
    with pytest.raises(TypeError, match="structure"):
        g((2.0, 3.0))


def test_named_scope_and_call():
    from gradix.extend.source_info_util import current_name_stack

    seen = []

    @gradix.named_scope("inner")
    def f(x):
        seen.append(str(current_name_stack()))
        return x

    with gradix.named_scope("outer"):
        gradix.named_call(f, name="call")(1.0)
    assert seen == ["outer/call/inner"] and str(current_name_stack()) == ""
    with pytest.raises(TypeError, match="must be a string"):
        gradix.named_scope(3)


def test_ensure_compile_time_eval():
    @gradix.jit
    def f(x):
        with gradix.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.arange(4)))
        return x * n

    assert int(f(1)) == 6


def test_eval_jaxpr():
    closed = gradix.make_jaxpr(lambda x: x + jnp.arange(2.0))(1.0)
    np.testing.assert_array_equal(gradix.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0], [2.0, 3.0])


def test_clear_caches():
    f = gradix.jit(lambda x: x + 1)
    f(1.0)
    gradix.clear_caches()
    assert f._cache_size() == 0 and float(f(1.0)) == 2.0


class TestForwardAndBackward:
    def test_residuals_pass_through_jit_and_nothing_is_traced_again(self):
        count = []

        def f(x, y):
            count.append(1)
            return (x * jnp.sin(y)).sum()

        fwd, bwd = gradix.fwd_and_bwd(f, 0)
        for i in range(3):
            value, residuals = fwd(jnp.full(2, float(i)), 3.0)
            np.testing.assert_allclose(bwd(residuals, 1.0), np.full(2, np.sin(3.0)), rtol=1e-6)
        assert len(count) == 1 and bwd._cache_size() == 1

    def test_auxiliary_output(self):
        fwd, bwd = gradix.fwd_and_bwd(lambda x, y: (x * y, y), (0, 1), has_aux=True, jitted=False)
        value, residuals, aux = fwd(2.0, 3.0)
        assert (float(value), float(aux)) == (6.0, 3.0)
        assert [float(g) for g in bwd(residuals, 1.0)] == [3.0, 2.0]

    def test_a_pullback_is_a_tree(self):
        pull = gradix.jit(lambda x: gradix.vjp(jnp.sin, x)[1])(1.0)
        assert float(pull(1.0)[0]) == pytest.approx(np.cos(1.0))
        twice = gradix.tree.map(lambda r: 2 * r, pull)
        assert float(twice(1.0)[0]) == pytest.approx(2 * np.cos(1.0))


def test_names_of_arguments_after_static_ones():
    jaxpr = gradix.make_jaxpr(lambda n, x, *, key: x["a"] * key, static_argnums=0)(3, {"a": 1.0}, key=2.0).jaxpr
    assert jaxpr.debug_info.arg_names == ("x['a']", "key")
    with pytest.raises(TypeError, match=r"argument x\['a'\] of"):
        gradix.make_jaxpr(lambda n, x: x, static_argnums=0)(3, {"a": "text"})


def scoped(x):
    with gradix.named_scope("outer"), gradix.named_scope("inner"):
        y = gradix.numpy.sin(x)
    return y * 2


def test_compiled_programs_and_listings_name_the_scopes_of_operations():
    lowered = gradix.jit(scoped).lower(1.0)
    assert " loc(" not in lowered.as_text()
    assert '"jit(scoped)/outer/inner/sin"(' in lowered.as_text(debug_info=True)
    assert 'op_name="jit(scoped)/outer/inner/sin"' in lowered.compile().as_text()
    assert 'op_name="jit(scoped)/outer/inner/sin"' in lowered.as_text("hlo", debug_info=True)
    assert "op_name" not in lowered.as_text("hlo")
    listing = gradix.make_jaxpr(scoped)(1.0).pretty_print(name_stack=True)
    assert "[outer/inner]" in listing and "[]" in listing


def test_derivatives_and_mapped_functions_keep_the_scopes():
    text = gradix.jit(gradix.vmap(gradix.grad(scoped))).lower(gradix.numpy.ones(3)).as_text(debug_info=True)
    assert '"jit(scoped)/vmap(jvp(outer))/inner/cos"(' in text


def test_scopes_of_one_thread_are_not_those_of_another():
    import threading

    listings = []
    with gradix.named_scope("here"):
        other = threading.Thread(
            target=lambda: listings.append(gradix.make_jaxpr(scoped)(1.0).pretty_print(name_stack=True))
        )
        other.start()
        other.join()
    assert "[outer/inner]" in listings[0] and "here" not in listings[0]


@pytest.mark.x32
@pytest.mark.parity
def test_typeof_takes_descriptions_of_arrays():
    jax = pytest.importorskip("jax")
    for lib in (gradix, jax):
        assert lib.typeof(lib.ShapeDtypeStruct((1, 2), "float32")) == lib.typeof(lib.numpy.zeros((1, 2)))
        key = lib.random.key(0)
        assert lib.typeof(lib.ShapeDtypeStruct((), key.dtype)) == lib.typeof(key)
        with pytest.raises(TypeError):
            lib.typeof("float32")
