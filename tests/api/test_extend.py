"""Primitives made by libraries: gradix.extend.core and gradix.interpreters."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, lax
from gradix.extend import linear_util
from gradix.extend.core import Primitive, check_jaxpr, jaxpr_as_fun, primitives
from gradix.interpreters import ad, batching, mlir, partial_eval, xla


def multiply_add_primitive():
    """x * y + z with every rule, as a library writes it."""
    p = Primitive("multiply_add")
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    p.def_abstract_eval(lambda x, y, z: core.ShapedArray(x.shape, x.dtype))

    def jvp(primals, tangents):
        x, y, z = primals
        xt, yt, zt = [jnp.zeros_like(x) if type(t) is ad.Zero else t for t in tangents]
        return p.bind(x, y, z), p.bind(xt, y, p.bind(x, yt, zt))

    def transpose(ct, x, y, z):
        assert ad.is_undefined_primal(x) != ad.is_undefined_primal(y)
        zero = jnp.zeros_like(ct)
        ct_z = ct if ad.is_undefined_primal(z) else None
        if ad.is_undefined_primal(y):
            return None, p.bind(x, ct, zero), ct_z
        return p.bind(ct, y, zero), None, ct_z

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = lambda args, dims: (p.bind(*args), dims[0])
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))
    return p


@pytest.fixture(scope="module")
def square_add():
    p = multiply_add_primitive()
    return lambda a, b: p.bind(a, a, p.bind(a, b, b))


@pytest.mark.parametrize("run", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_every_transform(square_add, run):
    assert float(run(square_add)(2.0, 10.0)) == 34.0
    y, t = run(lambda a, b: gradix.jvp(square_add, (a, b), (1.0, 1.0)))(2.0, 10.0)
    assert (float(y), float(t)) == (34.0, 17.0)
    assert float(run(gradix.grad(square_add))(2.0, 10.0)) == 14.0
    np.testing.assert_array_equal(run(gradix.vmap(square_add))(np.arange(3.0), np.ones(3)), [1.0, 3.0, 7.0])


def test_a_user_primitive_prints(square_add):
    assert [e.primitive.name for e in gradix.make_jaxpr(square_add)(1.0, 1.0).eqns] == ["multiply_add"] * 2


def test_missing_rules_say_what_to_register():
    p = Primitive("foo")
    with pytest.raises(NotImplementedError, match="def_impl"):
        p.bind(1.0)
    with pytest.raises(NotImplementedError, match="def_abstract_eval"):
        gradix.jit(p.bind)(1.0)
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="foo.*cannot be compiled"):
        gradix.jit(p.bind)(1.0)
    with pytest.raises(NotImplementedError, match=r"ad\.primitive_jvps\[foo_p\]"):
        gradix.grad(p.bind)(1.0)
    with pytest.raises(NotImplementedError, match=r"batching\.primitive_batchers\[foo_p\]"):
        gradix.vmap(p.bind)(jnp.ones(2))
    mlir.register_lowering(p, lambda ctx, x: [x])
    with pytest.raises(NotImplementedError, match="mlir.lower_fun"):
        gradix.jit(p.bind)(1.0)


def test_several_results_and_linearity():
    p = Primitive("twice")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x, x])
    ad.deflinear2(p, lambda cts, x: [ad.instantiate_zeros(cts[0]) + 2 * ad.instantiate_zeros(cts[1])])
    mlir.register_lowering(p, mlir.lower_fun(lambda x: [x, 2 * x]))
    assert [float(y) for y in p.bind(3.0)] == [3.0, 6.0]
    assert float(gradix.grad(lambda x: p.bind(x)[0])(3.0)) == 1.0
    assert float(gradix.jit(gradix.grad(lambda x: 5 * p.bind(x)[1]))(3.0)) == 10.0


def test_bilinear_and_broadcasting():
    p = Primitive("times")
    p.def_impl(lambda x, y: x * y)
    p.def_abstract_eval(lambda x, y: core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))
    ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    batching.defbroadcasting(p)
    assert [float(g) for g in gradix.grad(p.bind, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
    np.testing.assert_array_equal(gradix.vmap(p.bind, (0, None))(np.arange(3.0), 2.0), [0.0, 2.0, 4.0])
    got = gradix.vmap(p.bind, (1, 0))(np.ones((2, 3)), np.full((3, 2), 2.0))
    np.testing.assert_array_equal(got, np.full((3, 2), 2))


def test_partial_derivatives():
    p = Primitive("power")
    p.def_impl(lambda x, n: x ** n)
    p.def_abstract_eval(lambda x, n: x)
    ad.defjvp(p, lambda t, x, n: t * n * p.bind(x, n - 1), None)
    assert float(gradix.grad(p.bind)(2.0, 3.0)) == 12.0
    q = Primitive("exponential")
    q.def_impl(np.exp)
    q.def_abstract_eval(lambda x: x)
    ad.defjvp2(q, lambda t, y, x: t * y)
    assert float(gradix.grad(q.bind)(1.0)) == pytest.approx(np.e)


def test_rules_of_built_in_primitives_can_be_read():
    y, t = ad.primitive_jvps[lax.sin_p]((1.0,), (1.0,))
    assert float(t) == pytest.approx(np.cos(1.0))
    out, axis = batching.primitive_batchers[lax.neg_p]((jnp.ones((2, 3)),), (1,))
    assert (out.shape, axis) == ((2, 3), 1)
    x = ad.UndefinedPrimal(core.ShapedArray((), jnp.float32))
    assert [c if c is None else float(c) for c in ad.get_primitive_transpose(lax.mul_p)(1.0, x, 3.0)] == [3.0, None]
    assert lax.sin_p in ad.primitive_jvps and Primitive("new") not in ad.primitive_jvps
    with pytest.raises(NotImplementedError, match="Transpose rule"):
        ad.get_primitive_transpose(Primitive("new"))


def test_kinds():
    assert isinstance(lax.sin_p, Primitive) and primitives.sin_p is lax.sin_p and not isinstance(1, Primitive)
    assert isinstance(core.ShapedArray((), jnp.float32), core.AbstractValue)
    assert repr(ad.Zero(core.ShapedArray((2,), jnp.float32))) == "Zero(float32[2])"
    assert float(ad.add_tangents(ad.Zero(core.ShapedArray((), jnp.float32)), jnp.float32(2.0))) == 2.0


def test_programs_as_data():
    closed = gradix.make_jaxpr(lambda x, y: (jnp.sin(x), y * 2))(1.0, 1.0)
    check_jaxpr(closed.jaxpr)
    assert [float(y) for y in jaxpr_as_fun(closed)(0.0, 2.0)] == [0.0, 4.0]
    small, used = partial_eval.dce_jaxpr(closed.jaxpr, [False, True])
    assert used == [False, True] and len(small.eqns) == 1
    _, used = partial_eval.dce_jaxpr(closed.jaxpr, [False, True], instantiate=True)
    assert used == [True, True]
    wrapped = linear_util.wrap_init(lambda x, y: [x + y])
    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(wrapped, [core.ShapedArray((), jnp.float32)] * 2)
    assert len(jaxpr.eqns) == 1 and avals[0].shape == () and consts == []
    assert float(xla.apply_primitive(lax.sin_p, 0.0)) == 0.0


def test_a_wrong_program_is_found():
    closed = gradix.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
    broken = closed.jaxpr.replace(eqns=closed.jaxpr.eqns[1:])
    with pytest.raises(core.JaxprTypeError, match="not defined"):
        check_jaxpr(broken)


def test_questions():
    assert core.is_concrete(1.0) and core.concrete_or_error(int, 3.5) == 3
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="the size"):
        gradix.jit(lambda x: core.concrete_or_error(int, x, "the size"))(3)
    assert core.valid_jaxtype(1) and not core.valid_jaxtype("a")
    assert gradix.jit(lambda x: x + core.unsafe_am_i_under_a_jit_DO_NOT_USE())(0) == 1
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == gradix.float0
    assert core.get_opaque_trace_state() == core.get_opaque_trace_state()
    assert (core.max_dim(2, 3), core.min_dim(2, 3)) == (3, 2) and core.is_constant_shape((1, 2))
