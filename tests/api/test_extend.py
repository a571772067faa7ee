"""Primitives made by libraries: gradix.extend.core and gradix.interpreters."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, lax
from gradix.extend import linear_util
from gradix.extend.core import Primitive, check_jaxpr, jaxpr_as_fun, primitives
from gradix.extend.mlir import ir
from gradix.extend.mlir.dialects import stablehlo as hlo
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
    assert gradix.jit(p.bind)(1.0) == 1


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
    p.def_impl(lambda x, n: x**n)
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


# -- lowerings that build MLIR ----------------------------------------------------------------------------------------


def mlir_primitive(rule, multiple_results=False, abstract=lambda x: x):
    p = Primitive("built")
    p.multiple_results = multiple_results
    p.def_abstract_eval(abstract)
    mlir.register_lowering(p, rule)
    return p


def test_a_lowering_of_operations():
    p = mlir_primitive(lambda ctx, x: [hlo.add(hlo.sine(x), mlir.ir_constant(np.float32(1)))])
    x = jnp.float32(0.5)
    np.testing.assert_allclose(p.bind(x), np.sin(0.5) + 1, rtol=1e-6)
    np.testing.assert_allclose(gradix.jit(lambda x: p.bind(p.bind(x)))(x), np.sin(np.sin(0.5) + 1) + 1, rtol=1e-6)
    looped = gradix.jit(lambda x: lax.scan(lambda c, _: (p.bind(c), None), x, None, length=2)[0])
    np.testing.assert_allclose(looped(x), np.sin(np.sin(0.5) + 1) + 1, rtol=1e-6)
    batching.defvectorized(p)
    q = mlir_primitive(lambda ctx, x: [hlo.sine(x)])
    batching.defvectorized(q)
    ad.defjvp(q, lambda t, x: t * jnp.cos(x))
    np.testing.assert_allclose(gradix.vmap(gradix.grad(q.bind))(jnp.arange(3.0)), np.cos(np.arange(3.0)), rtol=1e-6)


@pytest.mark.x32
def test_what_the_context_tells():
    seen = []

    def rule(ctx, x, *, factor):
        seen.append((ctx.avals_in, ctx.avals_out, ctx.primitive, ctx.module_context.platforms, isinstance(x, ir.Value)))
        assert ctx.replace(avals_in=[]).avals_in == [] and str(x.type) == "tensor<3xf32>"
        assert (
            mlir.aval_to_ir_type(ctx.module_context, ctx.avals_in[0]) == x.type == mlir.aval_to_ir_type(ctx.avals_in[0])
        )
        return [x, hlo.multiply(x, mlir.ir_constant(np.full(3, factor, np.float32)))]

    p = mlir_primitive(rule, True, lambda x, factor: [x, x])
    got = gradix.jit(lambda x: p.bind(x, factor=2.0))(jnp.arange(3.0))
    np.testing.assert_array_equal(got, [[0, 1, 2], [0, 2, 4]])
    aval = core.ShapedArray((3,), np.dtype("float32"))
    assert seen == [([aval], [aval, aval], p, ("cpu",), True)]


def test_functions_of_arrays_and_callbacks_inside_a_lowering():
    def rule(ctx, x):
        (y,) = mlir.lower_fun(lambda x: jnp.sort(jnp.cumsum(x)), multiple_results=False)(ctx, x)
        (z,), token, _ = mlir.emit_python_callback(
            ctx, lambda v: (v * 10,), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        assert token is None
        return [hlo.add(y, z)]

    p = mlir_primitive(rule)
    x = jnp.array([3.0, -5.0, 1.0])
    want = np.sort(np.cumsum(x)) + 10 * np.asarray(x)
    np.testing.assert_allclose(gradix.jit(lambda x: p.bind(x) + p.bind(x))(x), 2 * want)


def test_attributes_and_constants():
    with mlir.make_ir_context(), ir.Location.unknown():
        texts = {
            str(mlir.ir_attribute(v)) for v in (True, 3, "s", [1, "x"], {"k": 1}, np.float32(1.5), np.int32(4))
        } | {
            str(a)
            for a in (mlir.dense_int_elements([1, 2]), mlir.dense_int_array([1, 2]), mlir.i32_attr(3), mlir.i64_attr(3))
        }
    assert texts == {
        "true",
        "3 : i64",
        '"s"',
        '[1, "x"]',
        "{k = 1 : i64}",
        "1.500000e+00 : f32",
        "4 : i32",
        "3 : i32",
        "dense<[1, 2]> : tensor<2xi64>",
        "array<i64: 1, 2>",
    }
    values = [
        np.array([True, False, True]),
        np.array(True),
        np.zeros(2, bool),
        np.array([1, -2], np.int8),
        np.float32(2.5),
        jnp.ones(3, jnp.bfloat16),
        np.array([1 + 2j], np.complex64),
    ]
    for v in values:
        a = jnp.asarray(v)
        p = mlir_primitive(lambda ctx, v=v: [mlir.ir_constant(v)], abstract=lambda a=a: a.aval)
        got = gradix.jit(p.bind)()
        assert got.dtype == a.dtype
        np.testing.assert_array_equal(got, a)


@pytest.mark.x32
def test_a_lowering_of_wrong_types_is_told():
    p = mlir_primitive(lambda ctx, x: [hlo.convert(mlir.aval_to_ir_type(core.ShapedArray((), np.dtype("int32"))), x)])
    with pytest.raises(TypeError, match=r"tensor<i32>.*gives the types \['tensor<f32>'\]"):
        gradix.jit(p.bind)(1.0)


# -- names libraries use ----------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_partial_evaluation():
    aval = core.ShapedArray((3,), np.dtype("float32"))
    known, unknown = partial_eval.PartialVal.known(jnp.ones(3)), partial_eval.PartialVal.unknown(aval)
    f = linear_util.wrap_init(lambda x, y: [x * 2, y * 3, x + y])
    jaxpr, (a, b, c), consts = partial_eval.trace_to_jaxpr_nounits(f, [known, unknown])
    assert (a.is_known(), b.is_known(), c.is_known()) == (True, False, False)
    np.testing.assert_array_equal(a.get_known(), [2, 2, 2])
    assert b.get_aval() == aval and b.get_known() is None and len(jaxpr.invars) == 1
    for got, want in zip(core.eval_jaxpr(jaxpr, consts, jnp.arange(3.0)), ([0, 3, 6], [1, 2, 3])):
        np.testing.assert_array_equal(got, want)
    whole, outs, _ = partial_eval.trace_to_jaxpr_nounits(f, [known, unknown], instantiate=True)
    assert len(whole.outvars) == 3 and not any(o.is_known() for o in outs)
    small, const_left, left = partial_eval.dce_jaxpr_consts(jaxpr, [True, False])
    assert len(small.eqns) == 1 and left == [True] and not any(const_left)


def test_functions_transformed_by_generators():
    @linear_util.transformation
    def scaled(factor, *args):
        out = yield [a + 1 for a in args], {}
        yield out * factor

    @linear_util.transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    f = linear_util.wrap_init(lambda x, y: x + y)
    assert scaled(f, 10).call_wrapped(1, 2) == 50
    g, count = counted(f)
    with pytest.raises(linear_util.StoreException, match="first"):
        count()
    assert (g.call_wrapped(1, 2), count()) == (3, 2)
    with pytest.raises(linear_util.StoreException, match="twice"):
        g.call_wrapped(1, 2)
    assert linear_util.merge_linear_aux(count, lambda: None) == (True, 2)
    h, stored = linear_util.transformation_with_aux2(lambda f, store, *args: (store.store("s"), f(*args))[1])(f)
    assert (h.call_wrapped(1, 2), stored()) == (3, "s")


def test_forward_mode_of_lists():
    ys, ts = ad.jvp(
        linear_util.wrap_init(lambda x, y: [x * y, y]),
        [jnp.float32(2), jnp.float32(3)],
        [jnp.float32(1), ad.Zero(core.ShapedArray((), np.dtype("float32")))],
    )
    assert (ys, ts) == ([6, 3], [3, 0])
    assert type(ad.jvp(lambda x: [jnp.ones(2)], [1.0], [1.0], instantiate=False)[1][0]) is ad.Zero
    assert ad.jvp(lambda x: ([x], "aux"), [1.0], [1.0], has_aux=True)[2] == "aux"


def test_rules_that_know_the_axis():
    p, seen = Primitive("axis_aware"), []
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)

    def rule(axis_size, axis_name, trace_type, args, dims):
        seen.append((axis_size, axis_name))
        return args[0], dims[0]

    batching.axis_primitive_batchers[p] = rule
    gradix.vmap(p.bind, axis_name="i")(jnp.ones(3))
    assert seen == [(3, "i")]
    np.testing.assert_array_equal(batching.moveaxis(jnp.ones((2, 3)), 0, 1), np.ones((3, 2)))
    assert batching.bdim_at_front(jnp.ones(2), None, 3, None).shape == (3, 2)
    assert ad.add_jaxvals_p.name == "add_any"


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_bind_params_of_functions_with_rules(kind):
    """An interpreter applies an equation by `bind(*args, **get_bind_params(params))`, or calls its function."""
    jax = pytest.importorskip("jax")

    def run(lib, x):
        f = getattr(lib, kind)(lambda x: lib.numpy.sin(x) * 2)
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (f(*p), t[0] * 7))
        else:
            f.defvjp(lambda x: (f(x), x), lambda r, ct: (ct * 7,))
        eqn = lib.make_jaxpr(f)(1.0).jaxpr.eqns[0]
        params = eqn.primitive.get_bind_params(eqn.params)
        (called,) = params["subfuns"][0].call_wrapped(x)
        (bound,) = eqn.primitive.bind(x, **params)
        return called, bound

    for lib in (gradix, jax):
        for f in (run, lambda lib, x: lib.jit(lambda y: run(lib, y))(x)):
            np.testing.assert_allclose(f(lib, 1.0), [2 * np.sin(1.0)] * 2, rtol=1e-6)
        assert lib.grad(lambda x: run(lib, x)[1])(1.0) == 7
        np.testing.assert_allclose(lib.grad(lambda x: run(lib, x)[0])(1.0), 2 * np.cos(1.0), rtol=1e-6)


def test_forms_of_modules():
    import importlib

    from gradix.extend import mlir as bindings
    from gradix.interpreters import mlir

    with mlir.make_ir_context() as context, mlir.ir.Location.unknown():
        assert str(mlir.token_type()) == "!stablehlo.token"
        module = mlir.ir.Module.parse(gradix.jit(lambda x: x * 2).lower(1.0).as_text())
        code = mlir.module_to_bytecode(module)
        assert str(mlir.ir.Module.parse(code)) == mlir.module_to_string(module)
        artifact = bindings.serialize_portable_artifact(module, "1.0.0")
        assert "multiply" in str(bindings.deserialize_portable_artifact(artifact, context))
    assert "refine_polymorphic_shapes" in dir(bindings) and callable(bindings.hlo_to_stablehlo)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bindings.nothing
    for name in ("builtin", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "vector"):
        assert len(dir(importlib.import_module(f"gradix.extend.mlir.dialects.{name}"))) > 5


@pytest.mark.parity
def test_names_of_traced_functions():
    jax = pytest.importorskip("jax")
    from jax.extend import core as theirs

    for lib, extend in ((gradix, gradix.extend.core), (jax, theirs)):

        def double(x):
            return x * 2

        info = lib.make_jaxpr(double)(1.0).jaxpr.debug_info
        assert (info.traced_for, info.func_name, info.arg_names) == ("jit", "double", ("x",))
        assert (
            info.func_src_info == f"double at {info.func_filename}:{info.func_lineno}"
            and info.func_filename == __file__
        )
        info = extend.DebugInfo("mine", "f at y.py:1", ("a",), ("r",))
        assert (info.traced_for, info.func_src_info, info.func_name, info.arg_names, info.result_paths) == (
            "mine",
            "f at y.py:1",
            "f",
            ("a",),
            ("r",),
        )
