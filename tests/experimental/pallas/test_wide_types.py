"""Kernels in both modes of types: indices stay int32, and values keep the dtype of their array."""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl


def test_indices_and_values_of_both_widths(x64):
    def kernel(order, x, o):
        assert pl.program_id(0).dtype == jnp.int32
        o[...] = lax.fori_loop(
            0, 3, lambda i, t: t + x[pl.ds(i, 2)] * order[pl.program_id(0)].astype(x.dtype), jnp.zeros(2, x.dtype)
        )

    x, order = jnp.arange(8.0), jnp.arange(2) + 1

    def call(x):
        return pl.pallas_call(
            kernel,
            gradix.ShapeDtypeStruct((4,), x.dtype),
            grid=2,
            out_specs=pl.BlockSpec((2,), lambda i: i),
            in_specs=[pl.BlockSpec(), pl.BlockSpec((4,), lambda i: i)],
        )(order, x)

    got = call(x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, [3, 6, 30, 36])
    np.testing.assert_allclose(gradix.grad(lambda x: call(x).sum())(x), [1, 2, 2, 1, 2, 4, 4, 2])
