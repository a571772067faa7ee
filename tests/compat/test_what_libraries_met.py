"""What programs of libraries came upon, one after the other; none of these libraries is needed."""

import inspect
import subprocess
import sys
from collections.abc import Hashable

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, custom_derivatives, lax, sharding
from gradix._api import callbacks
from gradix.compat import internals
from gradix.experimental import checkify
from gradix.extend import core as jex, linear_util as lu
from gradix.interpreters import ad, mlir


class Model:
    """A callable object that answers every attribute, as modules of parameters may."""

    def __getattr__(self, name):
        if name in ("__annotations__", "__name__", "__qualname__", "__module__", "__doc__"):
            return jnp.ones(2)
        raise AttributeError(name)

    def __call__(self, x):
        return (x * x).sum()


def test_transformations_take_callable_objects_whose_names_are_no_strings():
    model, x = Model(), jnp.arange(3.0)
    np.testing.assert_array_equal(gradix.grad(model)(x), 2 * x)
    np.testing.assert_array_equal(gradix.vmap(model)(x), x * x)
    assert gradix.jit(model)(x) == 5 and gradix.value_and_grad(model).__wrapped__ is model


def test_zeros_of_trees():
    tree = (1.0, {"a": jnp.ones(2), "n": 3})
    zeros = custom_derivatives.zero_from_primal(tree)
    assert zeros[0] == 0 and zeros[1]["a"].tolist() == [0, 0] and zeros[1]["n"].dtype == gradix.dtypes.float0
    symbolic = custom_derivatives.zero_from_primal(tree, symbolic_zeros=True)
    assert type(symbolic[1]["a"]) is custom_derivatives.SymbolicZero and symbolic[1]["a"].shape == (2,)


def test_axes_are_any_sequence():
    assert jnp.expand_dims(jnp.ones(3), range(2)).shape == (1, 1, 3)
    assert jnp.expand_dims(jnp.ones(3), range(0)).shape == (3,)


def test_the_top_trace_is_that_of_the_operands():
    found = []

    def f(x):
        top = jex.find_top_trace([x, 1.0])
        found.append(isinstance(x, ad.JVPTracer) and top is x._trace and x._trace.main is top.main)
        return x * 2

    gradix.jvp(f, (1.0,), (1.0,))
    gradix.jit(lambda x: gradix.jvp(f, (x,), (x,)))(1.0)
    assert found == [True, True]


def test_whether_a_transformation_is_at_work():
    clean = internals.lookup("core", "trace_state_clean")
    seen = []
    for transformed in (gradix.jit, gradix.grad, gradix.vmap):
        transformed(lambda x: (seen.append(clean()), x * 1.0)[1])(jnp.ones(2) if transformed is gradix.vmap else 1.0)
    assert clean() and seen == [False, False, False]


def test_one_process_is_the_first_of_one():
    state = internals.lookup("distributed", "global_state")
    assert (state.process_id, state.num_processes, state.client) == (0, 1, None)


def test_devices_in_the_order_of_programs():
    one, *_ = gradix.devices()
    assert sharding.SingleDeviceSharding(one)._addressable_device_assignment == (one,)
    mesh = gradix.make_mesh((len(gradix.devices()),), ("x",))
    assert sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))._addressable_device_assignment == tuple(
        mesh.devices.flat
    )


def test_a_checked_jitted_function_is_compiled_once():
    @gradix.jit
    def root(x):
        checkify.check(x.min() >= 0, "negative: {x}", x=x.min())
        return jnp.sqrt(jnp.abs(x))

    compiled = []
    checked = checkify.checkify(root)
    gradix.monitoring.register_event_duration_secs_listener(listener := lambda name, *_, **__: compiled.append(name))
    try:
        counts = []
        for x in ([1.0, 4.0], [4.0, 9.0], [-1.0, 1.0], [1.0, 1.0]):
            error, y = checked(jnp.array(x))
            counts.append(len([n for n in compiled if "backend_compile" in n]))
            assert (error.get() is None) == (min(x) >= 0)
            np.testing.assert_array_equal(y, np.sqrt(np.abs(np.array(x, "f4"))))
    finally:
        gradix.monitoring.unregister_event_duration_listener(listener)
    assert counts[0] == counts[-1]


def test_an_error_of_host_arrays_is_passed_on():
    error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "got {x}", x=x))(jnp.float32(-1))
    fetched = gradix.tree.map(np.asarray, error)
    again, _ = checkify.checkify(gradix.jit(lambda e: checkify.check_error(e)))(fetched)
    assert again.get().startswith("got -1.0")
    with pytest.raises(ValueError, match="got -1.0"):
        checkify.check_error(fetched)


def test_texts_show_arrays_and_keys():
    def f(tree, key):
        checkify.check(jnp.all(tree["b"] > 0), "{tree} {key}", tree=tree, key=key)

    error, _ = checkify.checkify(f)({"b": jnp.float32(-1)}, gradix.random.key(7))
    assert "'b': Array(-1., dtype=float32" in error.get() and "key<fry>" in error.get()


def test_signatures_of_jitted_functions_are_those_of_the_functions():
    def f(x, *, scale=2):
        return x * scale

    assert "PjitFunction" in str(type(gradix.jit(f)))
    for follow in (True, False):
        assert str(inspect.signature(gradix.jit(f), follow_wrapped=follow)) == "(x, *, scale=2)"


@pytest.mark.parametrize("shape, name", [((), True), ((4,), True), ((1000,), False)])
def test_few_random_numbers_are_drawn_before_what_is_computed_from_them(shape, name):
    def f(key):
        return gradix.random.bits(key, shape)

    lowered = gradix.jit(f).lower(gradix.random.key(0))
    assert ("few_draws_apart" in lowered._module.facts.rewrites) is name
    np.testing.assert_array_equal(lowered.compile()(gradix.random.key(0)), f(gradix.random.key(0)))


def test_only_bare_calls_say_that_their_program_is_call_jaxpr():
    f = gradix.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda xs, ts: (f(*xs), 2 * ts[0]))
    eqns = gradix.make_jaxpr(lambda x: gradix.jit(jnp.sin)(f(gradix.checkpoint(jnp.cos)(x))))(1.0).eqns
    assert len(eqns) == 3 and not any(e.primitive.call_primitive for e in eqns)
    assert gradix.extend.core.primitives.call_p.call_primitive


def test_types_of_tangents_by_their_other_name():
    assert gradix.typeof(jnp.ones(3)).at_least_vspace() == gradix.typeof(jnp.ones(3))
    assert gradix.typeof(jnp.arange(3)).at_least_vspace().dtype == gradix.dtypes.float0


def test_arrays_do_not_say_that_they_can_be_hashed():
    seen = []
    gradix.jit(lambda x: seen.append(x) or x)(1.0)
    gradix.grad(lambda x: seen.append(x) or x)(1.0)
    for x in (jnp.ones(2), gradix.random.key(0), *seen):
        assert not isinstance(x, Hashable)
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)


@pytest.mark.parametrize("dtype, lowest", [("int32", -(2**31)), ("uint8", 0), ("float32", -np.inf)])
def test_the_start_of_a_maximum_is_minus_infinity_for_integers_too(dtype, lowest):
    x = np.arange(4).astype(dtype)
    assert lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME").tolist() == [1, 2, 3, 3]
    assert lax.reduce(x[:0], -jnp.inf, lax.max, (0,)) == lowest
    if dtype == "int32":
        for start in (0.5, jnp.nan):
            with pytest.raises(TypeError, match="not a number of dtype int32"):
                lax.reduce(x, start, lax.add, (0,))
    assert lax.reduce(x, 2.0, lax.add, (0,)) == 8


def test_constraints_pass_over_what_is_no_leaf():
    here = sharding.SingleDeviceSharding(gradix.devices()[0])
    tree = {"a": None, "b": jnp.ones(2), "c": (jnp.ones(3), None)}
    for given in (here, {"a": here, "b": here, "c": here}, {"a": None, "b": here, "c": here}):
        found = lax.with_sharding_constraint(tree, given)
        assert gradix.tree.map(jnp.shape, found) == {"a": None, "b": (2,), "c": ((3,), None)}
    with pytest.raises(ValueError, match="sharding None which is not allowed"):
        lax.with_sharding_constraint(tree, {"a": None, "b": None, "c": here})


def test_calls_take_their_function_by_name():
    f = lu.wrap_init(lambda x, y: [x * y])
    assert jex.primitives.call_p.bind(2.0, 3.0, subfuns=(f,)) == jex.primitives.call_p.bind(f, 2.0, 3.0) == [6.0]


def test_undefined_operands_pass_through_functions_of_trees():
    undefined = ad.UndefinedPrimal(gradix.core.ShapedArray((2,), np.dtype("float32")))
    leaves, tree = gradix.tree.flatten((undefined, 1.0))
    assert leaves == [1.0]
    again, two = tree.unflatten([2.0])
    assert ad.is_undefined_primal(again) and again.aval == undefined.aval and two == 2


def test_lowering_rules_keep_objects_as_long_as_the_module():
    double_p = jex.Primitive("double_by_callback")
    double_p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        results, _, kept = mlir.emit_python_callback(
            ctx, lambda a: (2 * a,), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        ctx.module_context.add_keepalive(kept)
        return results

    mlir.register_lowering(double_p, rule)
    assert gradix.jit(double_p.bind)(jnp.arange(3.0)).tolist() == [0, 2, 4]


class Own(Exception):
    pass


def test_exceptions_of_callbacks_are_runtime_errors_for_programs_written_for_jax(monkeypatch):
    def fails(x):
        raise Own("no such value")

    struct = gradix.ShapeDtypeStruct((), "float32")
    calls = [
        lambda: gradix.pure_callback(fails, struct, 1.0),
        lambda: gradix.jit(lambda x: gradix.pure_callback(fails, struct, x))(1.0),
        lambda: gradix.jit(lambda x: gradix.experimental.io_callback(fails, struct, x, ordered=True))(1.0),
    ]
    for call in calls:
        with pytest.raises(Own):
            call()
    monkeypatch.setattr(callbacks.told, "as_runtime_errors", True)
    for call in calls:
        with pytest.raises(gradix.errors.JaxRuntimeError, match="Own: no such value") as caught:
            call()
        assert type(caught.value.__cause__) is Own


def test_cotangents_may_be_a_prefix_of_the_arguments():
    f = gradix.custom_vjp(lambda tree: tree["x"][0] * tree["x"][1])

    def bwd(tree, ct):
        return ({"x": 2 * ct, "y": None},)

    f.defvjp(lambda tree: (f(tree), tree), bwd)
    tree = {"x": (3.0, jnp.float32(4)), "y": 1.0}
    assert gradix.grad(f)(tree) == {"x": (2, 2), "y": 0}
    f.defvjp(lambda tree: (f(tree), tree), lambda tree, ct: ({"x": (ct, (ct,)), "y": ct},))
    with pytest.raises(TypeError, match=r"same container .pytree. structure as the args tuple"):
        gradix.grad(f)(tree)


def test_values_of_numpy_arrays_stay_known_where_they_are_reshaped_in_traces():
    mask, seen = np.array([[True, True], [True, False]]), []

    @gradix.jit
    def f(x):
        flat = jnp.reshape(mask, (-1,))
        seen.append((type(flat), bool(flat.all()), jnp.reshape(mask, 4, order="F").tolist()))
        return x + flat.sum()

    assert f(1.0) == 4 and seen == [(np.ndarray, False, [True, True, True, False])]
    assert isinstance(jnp.reshape(mask, (-1,)), gradix.Array)
    with pytest.raises(TypeError, match="cannot reshape"):
        gradix.jit(lambda: jnp.reshape(mask, (3,)))()


def test_rules_may_map_derivatives_whose_zeros_are_symbolic():
    p = jex.Primitive("counted")
    p.multiple_results = True
    p.def_impl(lambda x: [x * 2, jnp.int32(3)])
    p.def_abstract_eval(lambda x: [x, core.ShapedArray((), jnp.int32)])

    def rule(xs, ts):
        zero = ad.Zero(core.ShapedArray((), gradix.dtypes.float0))
        return gradix.vmap(
            lambda x, t: ([x * 2, jnp.int32(3)], [t * 2, zero]), axis_size=1, in_axes=None, out_axes=None
        )(xs[0], ts[0])

    ad.primitive_jvps[p] = rule
    ys, ts = gradix.jvp(p.bind, (1.0,), (5.0,))
    assert ys == [2, 3] and ts[0] == 10 and ts[1].dtype == gradix.dtypes.float0
    with pytest.raises(TypeError, match="is not an array"):
        gradix.vmap(lambda x: object())(jnp.ones(3))


def test_leak_checks_under_the_other_name():
    program = (
        "import gradix; gradix.install_as_jax()\n"
        "import jax, jax.numpy as jnp\n"
        "from jax.experimental import checkify\n"
        "jax.config.update('jax_check_tracer_leaks', True)\n"
        "f = lambda x: (checkify.debug_check(jnp.all(x != x), '{x}', x=x), x)[1]\n"
        "print(jax.grad(f)(jnp.ones(())))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["1.0"], done.stderr[-2000:]
