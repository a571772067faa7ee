"""Loops of programs that add up products of blocks: they are one product of whole arrays where parts adjoin."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype


def added(x, y, o):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o[...] = jnp.zeros(o.shape, o.dtype)

    o[...] += x[...] @ y[...]


def in_scratch(x, y, o, acc):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)

    acc[...] += x[...] @ y[...]

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o[...] = 2 * acc[...]


def weighted(x, y, o):
    """The product so far is scaled, so the parts cannot be joined."""

    @pl.when(pl.program_id(2) == 0)
    def _():
        o[...] = jnp.zeros(o.shape, o.dtype)

    o[...] = o[...] * 0.5 + x[...] @ y[...]


def product(kernel, n, k, m, b, order=lambda k, n: k, dtype=jnp.float32, scratch=()):
    """The product of an n × k and a k × m array by blocks of b × b."""
    steps = k // b
    return pl.pallas_call(
        kernel,
        S((n, m), dtype),
        grid=(n // b, m // b, steps),
        in_specs=[
            pl.BlockSpec((b, b), lambda i, j, k: (i, order(k, steps))),
            pl.BlockSpec((b, b), lambda i, j, k: (order(k, steps), j)),
        ],
        out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
        scratch_shapes=scratch,
    )


def operations(call, *args):
    """How many products and slices the program of a call has."""
    text = str(gradix.make_jaxpr(lambda *xs: call(*xs))(*args).eqns[-1].params["jaxpr"])
    return text.count("dot_general["), text.count("dynamic_slice[")


def arrays(n, k, m, dtype="float32"):
    r = np.random.default_rng(0)
    return [(10 * r.normal(size=s)).astype(dtype) for s in ((n, k), (k, m))]


@pytest.mark.parametrize("steps", [2, 3, 4, 9])
@pytest.mark.parametrize("order", [lambda k, n: k, lambda k, n: n - 1 - k], ids=["forwards", "backwards"])
def test_a_sum_of_products_is_one_product(steps, order):
    x, y = arrays(4, 2 * steps, 6)
    call = product(added, 4, 2 * steps, 6, 2, order)
    assert operations(call, x, y) == (1, 0)
    np.testing.assert_allclose(call(x, y), x @ y, rtol=1e-4)
    dx, dy = gradix.grad(lambda x, y: (call(x, y) ** 2).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(dx, 2 * (x @ y) @ y.T, rtol=1e-3)
    np.testing.assert_allclose(dy, 2 * x.T @ (x @ y), rtol=1e-3)


def test_sums_in_scratch_memory_and_of_integers():
    x, y = arrays(4, 8, 4)
    call = product(in_scratch, 4, 8, 4, 2, scratch=[pltpu.VMEM((2, 2), jnp.float32)])
    assert operations(call, x, y) == (1, 0)
    np.testing.assert_allclose(call(x, y), 2 * x @ y, rtol=1e-4)
    x, y = arrays(4, 6, 2, np.int32)
    np.testing.assert_array_equal(product(added, 4, 6, 2, 2, dtype=jnp.int32)(x, y), x @ y)


def test_a_part_of_the_sum_is_a_product_of_parts():
    x, y = arrays(4, 12, 4)

    call = pl.pallas_call(
        added,
        S((4, 4), jnp.float32),
        grid=(2, 2, 3),
        in_specs=[pl.BlockSpec((2, 2), lambda i, j, k: (i, k + 1)), pl.BlockSpec((2, 2), lambda i, j, k: (k + 1, j))],
        out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
    )
    assert operations(call, x, y) == (1, 2)
    np.testing.assert_allclose(call(x, y), x[:, 2:8] @ y[2:8], rtol=1e-4)


def test_parts_that_do_not_adjoin_and_sums_that_are_scaled_stay():
    x, y = arrays(2, 8, 2)
    apart = pl.pallas_call(
        added,
        S((2, 2), jnp.float32),
        grid=(1, 1, 2),
        in_specs=[pl.BlockSpec((2, 2), lambda i, j, k: (i, 2 * k)), pl.BlockSpec((2, 2), lambda i, j, k: (2 * k, j))],
        out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
    )
    assert operations(apart, x, y)[0] == 2
    np.testing.assert_allclose(apart(x, y), x[:, :2] @ y[:2] + x[:, 4:6] @ y[4:6], rtol=1e-4)
    crossed = pl.pallas_call(
        added,
        S((2, 2), jnp.float32),
        grid=(1, 1, 4),
        in_specs=[pl.BlockSpec((2, 2), lambda i, j, k: (i, k)), pl.BlockSpec((2, 2), lambda i, j, k: (3 - k, j))],
        out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
    )
    assert operations(crossed, x, y)[0] == 4
    want = sum(x[:, 2 * k : 2 * k + 2] @ y[6 - 2 * k : 8 - 2 * k] for k in range(4))
    np.testing.assert_allclose(crossed(x, y), want, rtol=1e-4)
    scaled = product(weighted, 2, 8, 2, 2)
    want = sum(0.5 ** (3 - k) * x[:, 2 * k : 2 * k + 2] @ y[2 * k : 2 * k + 2] for k in range(4))
    np.testing.assert_allclose(scaled(x, y), want, rtol=1e-4)


def test_a_sum_that_is_looked_at_in_between_stays():
    def kernel(x, y, o, before):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros(o.shape)

        before[...] = o[...]
        o[...] += x[...] @ y[...]

    x, y = arrays(2, 6, 2)
    whole = pl.BlockSpec((2, 2), lambda k: (0, 0))
    o, before = pl.pallas_call(
        kernel,
        [S((2, 2), jnp.float32), S((3, 2, 2), jnp.float32)],
        grid=3,
        in_specs=[pl.BlockSpec((2, 2), lambda k: (0, k)), pl.BlockSpec((2, 2), lambda k: (k, 0))],
        out_specs=[whole, pl.BlockSpec((None, 2, 2), lambda k: (k, 0, 0))],
    )(x, y)
    np.testing.assert_allclose(o, x @ y, rtol=1e-4)
    np.testing.assert_allclose(before, [x[:, :n] @ y[:n] for n in (0, 2, 4)], rtol=1e-4)
