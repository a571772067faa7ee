"""Kernels against JAX's interpreter of kernels: values, NaN where nothing is defined, and clamped blocks."""

import importlib

import numpy as np
import pytest

pytestmark = [pytest.mark.parity, pytest.mark.x32]
X = np.arange(10, dtype=np.float32)


def pieces(api, np_, pl):
    """Results of small kernels, by name."""
    shape = api.ShapeDtypeStruct

    def copy(x, o):
        o[...] = x[...] * 2

    def add_up(x, o):
        @pl.when(pl.program_id(0) == 1)
        def _():
            o[...] = np_.zeros(o.shape)

        o[...] += x[...]

    def place(x, o):
        o[pl.program_id(1), pl.ds(pl.program_id(0), 2)] = x[pl.ds(2 * pl.program_id(0), 2)]

    def call(kernel, n, grid, i, o, b=4):
        return pl.pallas_call(
            kernel,
            shape((n,), "float32"),
            grid=grid,
            in_specs=[pl.BlockSpec((b,), i)],
            out_specs=pl.BlockSpec((b,), o),
            interpret=True,
        )(X)

    yield call(copy, 10, (3,), lambda i: i, lambda i: i)
    yield call(copy, 7, (2,), lambda i: i + 1, lambda i: 1 - i)
    yield call(copy, 12, (5,), lambda i: i, lambda i: i // 2)
    yield call(copy, 8, (4,), lambda i: 7 * i, lambda i: i)
    yield call(add_up, 4, (3,), lambda i: i, lambda i: 0)
    yield pl.pallas_call(place, shape((3, 4), "float32"), grid=(3, 2), interpret=True)(X)
    yield pl.pallas_call(
        copy,
        shape((4, 3), "float32"),
        grid=(4,),
        in_specs=[pl.BlockSpec((pl.Element(3, (1, 0)),), lambda i: 2 * i)],
        out_specs=pl.BlockSpec((None, 3), lambda i: (i, 0)),
        interpret=True,
    )(X)


def test_kernels_equal_those_of_the_reference(peer):
    both = [
        list(
            pieces(
                importlib.import_module(n),
                importlib.import_module(n + ".numpy"),
                importlib.import_module(n + ".experimental.pallas"),
            )
        )
        for n in ("gradix", "jax")
    ]
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
