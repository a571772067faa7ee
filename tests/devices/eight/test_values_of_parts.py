"""`debug.values()` around shard_map: the numbers of all devices' parts, and the results of compiled programs."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P
from tests.devices.eight.common import mesh, sharded
from tests.devices.eight.test_collectives import LINEAR, MAPS, OTHERS, N, X as OF_MEMBERS, all_of

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def shown(f, ins, outs, *args, **options):
    """What is printed of the values that `f` hands to its first argument, and the result."""
    told = []
    whole = gradix.shard_map(
        lambda *xs: f(lambda x: told.append(f"{x}") or x, *xs), mesh=mesh(), in_specs=ins, out_specs=outs, **options
    )
    with gradix.debug.values():
        result = whole(*args)
    return told, result


def test_numbers_of_all_parts_are_shown():
    def f(see, x, w):
        see(x)
        see(w)
        see(lax.axis_index("y"))
        return see(lax.psum(x * w, "x"))

    told, result = shown(f, (P("x"), P()), P(), np.arange(4.0, dtype="f"), np.float32(2))
    assert told == [
        "Array([[0.],\n       [1.],\n       [2.],\n       [3.]], dtype=float32) with the parts of 'x' on axis 0",
        "Array(2., dtype=float32) on each device",
        "Array([0, 1], dtype=int32) with the parts of 'y' on axis 0",
        "Array([12.], dtype=float32) on each device",
    ]
    assert result.tolist() == [12.0] and result.sharding.num_devices == 8


def test_parts_along_several_axes_and_gradients_are_shown():
    told, _ = shown(lambda see, x: see(x), P("x", "y"), P("x", "y"), X)
    assert told[0].endswith("with the parts of 'x' on axis 0 and of 'y' on axis 1")
    f = gradix.shard_map(
        lambda x: lax.psum((told.append(repr(x)) or x).sum(), ("x", "y")), mesh=mesh(), in_specs=P("x"), out_specs=P()
    )
    with gradix.debug.values():
        gradix.grad(f)(np.ones(4, np.float32))
    assert told[-1].endswith("dtype=float32) with a gradient with the parts of 'x' on axis 0")


@pytest.mark.parametrize("mapping", ["shard_map", "shard_map unchecked"])
def test_collectives_are_the_definitions(mapping):
    table = {**LINEAR, **OTHERS}
    with gradix.debug.values():
        got = MAPS[mapping](all_of(table))(OF_MEMBERS)
    assert N == 8
    for k, (_, definition) in table.items():
        np.testing.assert_allclose(got[k], definition(OF_MEMBERS), rtol=1e-5, atol=1e-6, err_msg=k)


def scaled(w, x):
    """Loss with a derivative inside of the parts, by a value that all share."""
    h = gradix.grad(lambda v: lax.psum((v * x).sum(), "x"))(w)
    return lax.psum(jnp.sin(x * w).sum() * h, ("x", "y"))


def loops(x):
    def more(c):
        return c + x.sum(), c

    (total, last) = lax.while_loop(lambda c: lax.pmin(c[0], "x") < 30, lambda c: more(c[0]), (jnp.float32(0), 0.0))
    steps, ys = lax.scan(lambda c, r: (c + r.sum(), lax.ppermute(r, "x", [(0, 1), (1, 0)])), total, x)
    own = lax.while_loop(lambda c: c < 5 + lax.axis_index("x"), lambda c: c + 1, lax.axis_index("y"))
    return lax.cond(lax.axis_index("x") > 1, lambda: ys + last, lambda: ys * 2 + steps), own[None]


@gradix.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) * 3,))


def nested(x):
    inner = gradix.shard_map(
        lambda v: lax.psum(v, "y") + lax.axis_index("x"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
    )
    return inner(x)


PROGRAMS = {
    "gradient of a shared value": (
        lambda a: gradix.value_and_grad(
            lambda w: gradix.shard_map(lambda x: scaled(w, x), mesh=mesh(), in_specs=P("x", "y"), out_specs=P())(a)
        )(jnp.float32(0.5)),
        [X],
    ),
    "gradient of parts": (
        lambda w, a: gradix.grad(
            lambda w, a: gradix.shard_map(scaled, mesh=mesh(), in_specs=(P(), P("x", "y")), out_specs=P())(w, a), (0, 1)
        )(w, a),
        [np.float32(0.5), X],
    ),
    "loops": (
        lambda a: gradix.shard_map(loops, mesh=mesh(), in_specs=P("x"), out_specs=(P("x"), P(("x", "y"))))(a),
        [np.abs(X) + 1],
    ),
    "rules": (
        lambda a: gradix.grad(
            lambda a: gradix.shard_map(gradix.jit(clipped), mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(a).sum()
        )(a),
        [X],
    ),
    "nested": (
        lambda a: gradix.shard_map(nested, mesh=mesh(), in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(a),
        [X],
    ),
    "vmap around it": (
        lambda a: gradix.vmap(
            gradix.shard_map(lambda x: x - lax.pmean(x, "x"), mesh=mesh(), in_specs=P("x"), out_specs=P("x"))
        )(a),
        [X],
    ),
    "callbacks": (
        lambda a: gradix.shard_map(
            lambda x: gradix.pure_callback(lambda v: np.asarray(v) * 2, gradix.ShapeDtypeStruct(x.shape, x.dtype), x),
            mesh=mesh(),
            in_specs=P("x"),
            out_specs=P("x"),
            check_vma=False,
        )(a),
        [X],
    ),
    "keys": (
        lambda key: gradix.shard_map(
            lambda k: gradix.random.normal(k[0], (2,)), mesh=mesh(), in_specs=P(("x", "y")), out_specs=P(("x", "y"))
        )(gradix.random.split(key, 8)),
        [gradix.random.key(0)],
    ),
    "masks": (
        lambda a: gradix.shard_map(
            lambda x: lax.psum(x[x > 3].sum(), "x"), mesh=mesh(), in_specs=P("x"), out_specs=P(), check_vma=False
        )(a),
        [X],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_compiled_programs(name):
    f, args = PROGRAMS[name]
    with gradix.debug.values():
        got = f(*args)
    for a, b in zip(gradix.tree.leaves(got), gradix.tree.leaves(f(*args))):
        assert a.aval.dtype == b.aval.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_arrays_on_an_explicit_mesh_keep_their_division():
    m = gradix.make_mesh((4, 2), ("x", "y"))
    with gradix.set_mesh(m):
        a = sharded(X, m, "x", "y")
        f = gradix.shard_map(lambda x: x * 2, out_specs=P("x", "y"))
        g = gradix.grad(lambda a: f(jnp.sin(a)).sum())
        with gradix.debug.values():
            got, slope = f(a), g(a)
        assert gradix.typeof(got) == gradix.typeof(f(a)) and got.sharding.spec == P("x", "y")
        np.testing.assert_allclose(slope, g(a), rtol=1e-6)


@pytest.mark.parametrize("name", ["ragged", "ragged groups"])
def test_rows_that_are_sent_twice_get_all_cotangents_without_jit(name):
    f, definition = LINEAR[name]
    ct = jnp.ones(definition(OF_MEMBERS).shape, np.float32)

    def back(x):
        return gradix.vjp(gradix.vmap(f, axis_name="i"), x)[1](ct)[0]

    np.testing.assert_allclose(back(OF_MEMBERS), gradix.jit(back)(OF_MEMBERS), rtol=1e-6)


@pytest.mark.parametrize("tiled", [True, False])
def test_gradients_of_exchanges_where_types_divide_arrays(tiled):
    explicit = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(gradix.sharding.AxisType.Explicit,) * 2)
    f = gradix.shard_map(
        lambda x: lax.all_to_all(x, "x", 1, 0, tiled=tiled) ** 2, mesh=explicit, in_specs=P("x"), out_specs=P("x")
    )
    x = gradix.device_put(np.arange(64, dtype=np.float32).reshape(16, 4), gradix.NamedSharding(explicit, P("x")))
    slope = gradix.jit(gradix.grad(lambda x: (f(x) * jnp.sin(f(x))).sum()))
    expected = slope(x)
    with gradix.debug.values():
        got = slope(x)
    np.testing.assert_allclose(got, expected, rtol=1e-4)
