"""The costs of programs on an accelerator: operations, memory, communication, and rules of users."""

import logging

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import roofline as R
from gradix.sharding import AbstractMesh, PartitionSpec as P

S = gradix.ShapeDtypeStruct
MESH = AbstractMesh((2, 4), ("x", "y"))
X, Y = S((8, 16), jnp.float32), S((16, 32), jnp.float32)
pytestmark = pytest.mark.x32


def cost(f, *args, **kw):
    return R.roofline(f, **kw)(*args)[1]


def four(r):
    return r.flops, r.unfused_flops, r.hbm_bytes, r.unfused_hbm_bytes


@pytest.mark.parametrize(
    "f, args, want",
    [
        (lambda x: x + x, (X,), (0, 128, 0, 3 * 512)),
        (lambda x: x + 1, (X,), (0, 128, 0, 2 * 512 + 4)),
        (jnp.sin, (X,), (0, 128, 0, 2 * 512)),
        (jnp.isfinite, (X,), (0, 128, 0, 512 + 128)),
        (lambda x: x.sum(), (X,), (0, 127, 0, 516)),
        (lambda x: x.sum(0), (X,), (0, 112, 0, 512 + 64)),
        (lambda x: lax.cumsum(x, 1), (X,), (0, 16, 0, 1024)),
        (lambda x: lax.cumlogsumexp(x, 1), (X,), (0, 32, 0, 1024)),
        (lambda x: x.reshape(16, 8).T, (X,), (0, 0, 0, 0)),
        (lambda x, y: x @ y, (X, Y), (8192, 8192, 512 + 2048 + 1024, 512 + 2048 + 1024)),
        (lambda x, y: jnp.sin(x @ y), (X, Y), (8192, 8448, 3584, 3584 + 2048)),
        (lambda p, x: lax.select(p, x, x), (S((8, 16), bool), X), (0, 128, 0, 128 + 512)),
        (gradix.jit(jnp.sin), (X,), (0, 128, 0, 1024)),
        (lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c), x), (X,), (0, 128, 0, 1024)),
        (gradix.checkpoint(jnp.sin), (X,), (0, 128, 0, 1024)),
        (
            lambda x, i, u: x.at[i].add(u, mode="promise_in_bounds", wrap_negative_indices=False),
            (X, S((3,), jnp.int32), S((3, 16), jnp.float32)),
            (0, 48, 0, 3 * 192 + 12),
        ),
        (
            lambda x, i: x.at[i].get(mode="promise_in_bounds", wrap_negative_indices=False),
            (X, S((3,), jnp.int32)),
            (0, 0, 0, 2 * 192 + 12),
        ),
        (lambda x: gradix.pure_callback(np.sin, X, x), (X,), (0, 0, 0, 1024)),
    ],
)
def test_operations_and_bytes(f, args, want):
    assert four(cost(f, *args)) == want


@pytest.mark.parametrize(
    "n, k, stride, pads, base, window",
    [
        (8, 3, 1, (0, 0), 1, 1),
        (8, 3, 2, (1, 1), 1, 1),
        (9, 4, 3, (2, 5), 1, 2),
        (5, 3, 2, (3, 1), 3, 1),
        (6, 4, 3, (2, 2), 4, 2),
        (1, 7, 1, (6, 6), 1, 1),
        (7, 2, 4, (0, 3), 6, 3),
    ],
)
def test_convolutions_count_pairs_that_meet(n, k, stride, pads, base, window):
    x, w = S((2, 3, n), jnp.float32), S((5, 3, k), jnp.float32)

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (stride,), [pads], (base,), (window,))

    outs = gradix.eval_shape(conv, x, w).shape[2]
    pairs = sum(
        0 <= p <= (n - 1) * base and p % base == 0
        for o in range(outs)
        for t in range(k)
        for p in [o * stride + t * window - pads[0]]
    )
    assert cost(conv, x, w).unfused_flops == 2 * 2 * 3 * 5 * pairs
    big = 10**6
    long = cost(
        lambda x, w: lax.conv_general_dilated(x, w, (1,), [(big - 1, big - 1)]),
        S((1, 1, 1), jnp.float32),
        S((1, 1, big), jnp.float32),
    )
    assert long.unfused_flops == 2 * big


def test_the_peak_is_that_of_values_still_needed():
    assert cost(lambda x, y: x @ y, X, Y).peak_hbm_bytes == 512 + 2048
    assert cost(lambda x, unused: x, X, Y).peak_hbm_bytes == 512
    assert cost(lambda x: jnp.sin(x) + jnp.cos(x), X).peak_hbm_bytes == 1024
    assert cost(lambda x: (jnp.sin(x), jnp.cos(x))[0], X).unfused_flops == 128

    def chain(x):
        a = x @ x
        b = a @ a
        return b @ b + a

    assert cost(chain, S((8, 8), jnp.float32)).peak_hbm_bytes == 2 * 256


@pytest.mark.parametrize(
    "f, specs, moved, steps",
    [
        (lambda x: lax.psum(x, "y"), (P("x", "y"), P("x")), {"y": 96}, {"y": 8}),
        (lambda x: lax.psum(x, ("x", "y")), (P("x", "y"), P()), {"x": 56, "y": 56}, {"x": 16, "y": 16}),
        (lambda x: lax.pmax(x, "y"), (P("x", "y"), P("x")), {"y": 96}, {"y": 8}),
        (lambda x: lax.all_gather(x, "y", axis=1, tiled=True), (P("x", "y"), P("x", "y")), {"y": 192}, {"y": 4}),
        (
            lambda x: lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True),
            (P("x", "y"), P("x", "y")),
            {"y": 48},
            {"y": 4},
        ),
        (
            lambda x: lax.all_to_all(x, "y", split_axis=1, concat_axis=0, tiled=True),
            (P("x", "y"), P("x", "y")),
            {"y": 64},
            {"y": 2},
        ),
        (
            lambda x: lax.ppermute(x, "y", [(i, (i + 1) % 4) for i in range(4)]),
            (P("x", "y"), P("x", "y")),
            {"y": 64},
            {"y": 1},
        ),
        (
            lambda x: lax.ppermute(x, "y", [(i, (i + 2) % 4) for i in range(4)]),
            (P("x", "y"), P("x", "y")),
            {"y": 128},
            {"y": 2},
        ),
        (lambda x: lax.ppermute(x, "y", [(0, 3), (3, 0)]), (P("x", "y"), P("x", "y")), {"y": 128}, {"y": 1}),
        (lambda x: lax.ppermute(x, "y", []), (P("x", "y"), P("x", "y")), {"y": 0}, {"y": 0}),
    ],
)
def test_communication_on_a_torus(f, specs, moved, steps):
    out, r = R.roofline(f, MESH, *specs)(X)
    assert (r.ici_bytes, r.ici_latency) == (moved, steps)
    assert out.sharding.spec == specs[1] and out.sharding.mesh == MESH


def test_axes_of_one_device_cost_nothing():
    r = cost(
        lambda x: lax.all_to_all(lax.psum(x, "i"), "i", 0, 1, tiled=True),
        X,
        mesh=AbstractMesh((1,), ("i",)),
        in_specs=P("i"),
        out_specs=P("i"),
    )
    assert r.ici_bytes == r.ici_latency == {"i": 0}


def test_derivatives_and_pinned_operands():
    specs = (P("x"), P(None, "y")), P("x", "y")
    out, forward, backward = R.roofline_and_grad(lambda x, y: x @ y, MESH, *specs)(X, Y)
    assert out.shape == (8, 32) and four(forward) == (1024, 1024, 896, 896)
    assert (
        four(backward) == (2048, 2048, 896, 896)
        and backward.ici_bytes == {"x": 256, "y": 192}
        and backward.ici_latency == {"x": 4, "y": 8}
    )
    assert backward.peak_hbm_bytes == 576
    both, r = R.roofline(jnp.sin, vjp=True)(X)
    assert r.unfused_flops == 3 * 128 and [b.shape for b in both] == [X.shape]
    pinned = [
        cost(lambda x, y: x @ y, X, Y, **kw).hbm_bytes
        for kw in (
            {"pin_lhs_in_vmem": True},
            {"pin_rhs_in_vmem": True},
            {"pin_lhs_in_vmem": True, "pin_rhs_in_vmem": True},
        )
    ]
    assert pinned == [2048, 512 + 1024, 0]


def test_rules_of_users_and_missing_ones(caplog, capsys):
    prim = gradix.extend.core.Primitive("mine")
    prim.def_abstract_eval(lambda x, scale: x)
    with caplog.at_level(logging.WARNING, "gradix.experimental.roofline"):
        assert four(cost(lambda x: prim.bind(x, scale=2), X)) == (0, 0, 0, 0)
    assert "No roofline rule for mine" in caplog.text
    seen = []

    @R.register_roofline(prim)
    def rule(context, x, *, scale):
        seen.append((context.primitive, context.mesh, context.name_stack, [a.shape for a in context.avals_in], x))
        return R.RooflineResult(flops=scale * x.size, hbm_bytes=x.bytes)

    assert four(cost(lambda x: prim.bind(prim.bind(x, scale=2), scale=3), X, print_jaxpr=True)) == (640, 0, 1024, 0)
    assert "mine" in capsys.readouterr().out
    assert seen[0] == (
        prim,
        None,
        "roofline(<lambda>)",
        [(8, 16)],
        R.RooflineShape(shape=(8, 16), dtype=np.dtype("float32")),
    )
    R.register_standard_roofline(prim)
    assert cost(lambda x: prim.bind(x, scale=2), X) == R.RooflineResult(peak_hbm_bytes=512)


def test_results_add_up():
    a = R.RooflineResult(flops=1, ici_bytes={"x": 1}, peak_hbm_bytes=3)
    b = R.RooflineResult(flops=2, ici_bytes={"x": 2, "y": 4}, peak_hbm_bytes=2, unfused_flops=1)
    assert sum([a, b], R.RooflineResult.zeros()) == R.RooflineResult(
        flops=3, unfused_flops=1, ici_bytes={"x": 3, "y": 4}, peak_hbm_bytes=3
    )
    assert R.RooflineShape.total_bytes([gradix.typeof(jnp.ones((2, 3))), gradix.typeof(jnp.ones(2, bool))]) == 26


def test_communication_in_groups_is_refused():
    with pytest.raises(NotImplementedError, match="psum.*in groups"):
        cost(
            lambda x: lax.psum(x, "y", axis_index_groups=[[0, 1], [2, 3]]),
            X,
            mesh=MESH,
            in_specs=P("x", "y"),
            out_specs=P("x", "y"),
        )
