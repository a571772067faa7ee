"""Gradients by values that are reduced over mesh axes are summands: their sum is the gradient of the plain value."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard

REDUCED = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "transpose": lambda v: (v.T * 3).sum(),
    "double": lambda v: (v + v).sum(),
    "broadcast": lambda v: jnp.broadcast_to(v, (3, 4, 2)).sum(),
    "square": lambda v: (v * v).sum(),
    "exp": lambda v: jnp.exp(v).sum(),
    "sin": lambda v: jnp.sin(v).sum(),
    "squeeze": lambda v: v[None].squeeze(0).sum(),
    "slice": lambda v: v[1:3].sum(),
    "element": lambda v: v[0, 1],
    "tanh": lambda v: jnp.tanh(v).sum(),
    "relu": lambda v: gradix.nn.relu(v - 2).sum(),
    "where": lambda v: jnp.where(v > 1, v, 0.0).sum(),
    "one": lambda v: (v * 1).sum(),
    "half": lambda v: (v / 2 - 3).sum(),
    "minus": lambda v: (3.0 - v).sum(),
    "power": lambda v: (v**3).sum(),
    "max": lambda v: v.max(),
    "reshape": lambda v: (v.reshape(8) ** 2).sum(),
    "split": lambda v: (jnp.split(v, 2, axis=1)[0] ** 2).sum(),
    "concatenate": lambda v: jnp.concatenate([v, v]).sum(),
    "cumsum": lambda v: jnp.cumsum(v, 1).sum(),
    "pad": lambda v: (jnp.pad(v, 1, constant_values=2.0) ** 2).sum(),
}


def over_rows(function):
    """The function of rows as a scan that starts with a number of the type of its result."""

    def call(v):
        spec = getattr(gradix.typeof(v).sharding, "spec", P())
        start = reshard(jnp.float32(0), P(reduced=spec.reduced)) if spec.reduced else jnp.float32(0)
        return gradix.lax.scan(lambda c, w: (function(c, w), None), start, v)[0]

    return call


REDUCED["sum of rows"] = over_rows(lambda c, w: c + (w * w).sum())
REDUCED["recurrence"] = over_rows(lambda c, w: c * 2.0 + w.sum())
REDUCED["branch"] = lambda v: gradix.lax.cond(True, lambda w: (w * w).sum(), lambda w: w.sum(), v)
REDUCED["inner jit"] = lambda v: gradix.jit(lambda w: (w * w).sum())(v * 2.0)
REDUCED["checkpoint"] = lambda v: gradix.checkpoint(lambda w: jnp.sin(w).sum())(v)


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_gradients_of_reduced_values_sum_to_those_of_plain_ones(name, shape):
    x = np.arange(1.0, 9.0, dtype=np.float32).reshape(4, 2) / 4
    m = gradix.make_mesh(shape, ("x", "y")[: len(shape)], axis_types=(AxisType.Explicit,) * len(shape))
    with gradix.set_mesh(m):
        given = gradix.device_put(x, P(reduced={"x"}))
        slope = gradix.jit(gradix.grad(REDUCED[name]))(given)
        assert gradix.typeof(slope).sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(reshard(slope, P()), gradix.grad(REDUCED[name])(x), 1e-6)


@pytest.mark.parametrize("value", [3.5, np.inf, -0.0])
def test_a_value_becomes_summands(value):
    m = gradix.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x = np.full((4, 2), value, np.float32)
    with gradix.set_mesh(m):
        for before, after in (
            (P(), P(unreduced={"x"})),
            (P("y"), P("y", unreduced={"x"})),
            (P("x"), P(unreduced={"x"})),
            (P(), P(unreduced={"x", "y"})),
        ):
            parts = gradix.jit(lambda v: reshard(v, after))(gradix.device_put(x, before))
            np.testing.assert_array_equal(reshard(parts, P()), x)


def test_a_carry_keeps_the_sums_of_its_type():
    m = gradix.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    with gradix.set_mesh(m), pytest.raises(TypeError, match=r"(?s)must have equal types.*reshard"):
        gradix.jit(lambda v: gradix.lax.scan(lambda c, w: (c + w.sum(), None), 0.0, v)[0])(
            gradix.device_put(np.ones((4, 2), np.float32), P(reduced={"x"}))
        )


def product():
    """A product that is still to be summed over "x", and its factors."""
    a, b = (
        gradix.device_put(np.arange(4, dtype=np.float32).reshape(2, 2), P(None, "x")),
        gradix.device_put(np.ones((2, 2), np.float32), P("x", None)),
    )
    return lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(unreduced={"x"})), a, b


def test_specs_that_are_inferred_keep_what_is_still_to_be_summed():
    m = gradix.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    with gradix.set_mesh(m):
        parts, a, b = product()
        u = gradix.jit(parts)(a, b)
        scattered = gradix.shard_map(lambda v: gradix.lax.psum_scatter(v, "x", tiled=True), out_specs=P("x"))
        np.testing.assert_array_equal(gradix.jit(scattered)(u), [[1, 1], [5, 5]])
        np.testing.assert_array_equal(
            gradix.shard_map(lambda v: gradix.lax.psum(v, "x"), out_specs=P())(u), [[1, 1], [5, 5]]
        )
        slopes = gradix.jit(gradix.grad(lambda a, b: scattered(parts(a, b)).sum(), (0, 1)))(a, b)
        for slope, want in zip(slopes, ([[2, 2], [2, 2]], [[2, 2], [4, 4]])):
            np.testing.assert_array_equal(reshard(slope, P()), want)


@pytest.mark.parametrize("name", ["segment_max", "segment_min", "segment_prod"])
def test_parts_that_are_not_summands_are_refused(name):
    m = gradix.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    with gradix.set_mesh(m):
        v, i = gradix.device_put(np.ones((4, 2), np.float32), P("x")), gradix.device_put(np.array([0, 1, 0, 1]), P("x"))
        with pytest.raises(NotImplementedError, match=f"unreduced for {name} is not supported"):
            gradix.jit(lambda v, i: getattr(gradix.ops, name)(v, i, 2, out_sharding=P(unreduced={"x"})))(v, i)
        assert gradix.typeof(
            gradix.ops.segment_sum(v, i, 2, out_sharding=P(unreduced={"x"}))
        ).sharding.spec.unreduced == {"x"}


def test_functions_of_summands_are_refused():
    m = gradix.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    d = gradix.device_put(np.ones((4, 2), np.float32), NamedSharding(m, P("x")))
    summands = lambda f: gradix.shard_map(
        lambda v: gradix.lax.psum(f(gradix.lax.pcast(v, "x", to="unreduced")), "x"),
        mesh=m,
        in_specs=P("x"),
        out_specs=P(),
    )
    for name, call in (("sin", jnp.sin), ("mul", lambda v: v * v), ("exp", lambda v: jnp.exp(v + v))):
        with pytest.raises(NotImplementedError, match=f"unreduced rule for {name} is not implemented"):
            gradix.jit(summands(call))(d)
    for call in (lambda v: v, lambda v: v * 2.0, lambda v: -v, lambda v: v.T.T + v):
        np.testing.assert_array_equal(gradix.jit(summands(call))(d), 2 * call(np.ones((2, 2), np.float32)))


def test_copies_are_divided_over_the_axes_along_which_a_value_is_reduced():
    with gradix.set_mesh(gradix.make_mesh((2,), ("x",))) as m:
        weights = jnp.arange(16.0).reshape(2, 8)

        def f(v):
            copies = lax.broadcast_in_dim(v, (2, 8), (1,), out_sharding=P("x", None))
            assert copies.aval.sharding.spec == P("x", None)
            return (copies * weights).sum()

        ct = gradix.jit(gradix.grad(f))(gradix.device_put(np.arange(8.0), P(reduced={"x"})))
        assert ct.sharding == NamedSharding(m, P(None, unreduced={"x"}))
        np.testing.assert_array_equal(reshard(ct, P()), weights.sum(0))
        with pytest.raises(ValueError, match="must be reduced over the same mesh axes as operand"):
            jnp.reshape(reshard(jnp.arange(8.0), P(reduced={"x"})), (4, 2), out_sharding=P("x"))


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 3}, {"unroll": 8}])
def test_rows_that_loops_stack_are_summands_until_they_are_summed(options):
    """Gradients by the rows of a loop, and results of its steps: one sum over the devices, after both loops."""
    mesh = gradix.make_mesh((8,), ("x",))
    steps, batches = 8, 3

    def loss(rows, x):
        step = lambda c, w: (jnp.tanh(jnp.dot(c, w)), None)
        return jnp.sum(lax.scan(step, x, rows, **options)[0])

    def total(rows, xs):
        add = lambda acc, x: (acc + gradix.grad(loss)(rows, x), None)
        start = reshard(jnp.zeros_like(rows), P(unreduced={"x"})) if mesh_in_force() else jnp.zeros_like(rows)
        found = lax.scan(add, start, xs)[0]
        return reshard(found, P()) if mesh_in_force() else found

    mesh_in_force = lambda: not gradix.sharding.get_abstract_mesh().empty
    rows = np.random.RandomState(0).rand(steps, 4, 4).astype("f4") - 0.5
    xs = np.random.RandomState(1).rand(batches, 16, 4).astype("f4")
    want = gradix.jit(total)(rows, xs)
    with gradix.set_mesh(mesh):
        given = gradix.device_put(rows, P(reduced={"x"})), gradix.device_put(xs, P(None, "x", None))
        program = gradix.jit(total).lower(*given).compile()
        np.testing.assert_allclose(program(*given), want, rtol=1e-5, atol=1e-5)
        assert program.as_text().count(" all-reduce(") == 1


def test_rows_of_summands_are_read_and_stacked_as_their_sum():
    mesh = gradix.make_mesh((4, 2), ("x", "y"))
    x = np.random.RandomState(0).rand(5, 8, 3).astype("f4")
    with gradix.set_mesh(mesh):
        given = gradix.device_put(x, P(None, ("x", "y"), None))

        @gradix.jit
        def f(x):
            ones = reshard(jnp.ones(8), P(("x", "y")))
            summands = jnp.einsum("srn,r->sn", x, ones, out_sharding=P(unreduced={"x", "y"}))
            ys = lax.scan(lambda c, row: (c, 2 * row), 0.0, summands)[1]
            assert ys.aval.sharding.spec.unreduced == {"x", "y"}
            return reshard(ys + summands, P())

        np.testing.assert_allclose(f(given), 3 * x.sum(1), rtol=1e-5)
