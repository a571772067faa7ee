"""Kernels on arrays, blocks and grids whose sizes are symbolic."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix.experimental import pallas as pl

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
same = np.testing.assert_allclose


def test_sizes_that_are_symbolic():
    def kernel(x, o):
        o[...] = x[...] * 2 + pl.program_id(0)

    block = pl.BlockSpec((4,), lambda i: (i,))

    def call(x):
        return pl.pallas_call(
            kernel, S(x.shape, x.dtype), grid=pl.cdiv(x.shape[0], 4), in_specs=[block], out_specs=block
        )(x)

    shape = export.symbolic_shape("n")
    sent = export.export(gradix.jit(call))(S(shape, jnp.float32))
    for n in (3, 8, 10):
        same(sent.call(np.ones(n, np.float32)), 2 + np.arange(n) // 4)
    back = export.export(gradix.jit(gradix.grad(lambda x: (call(x) ** 2).sum())))(S(shape, jnp.float32))
    same(back.call(np.ones(6, np.float32)), [8] * 4 + [12] * 2)


def test_sizes_of_blocks_that_are_symbolic():
    def product(x, y, counted):
        n = counted.shape[0]
        a, b = x.shape[0] // n, y.shape[1] // n
        return pl.pallas_call(
            lambda x, y, o: o.__setitem__(..., x[...] @ y[...]),
            S((x.shape[0], y.shape[1]), x.dtype),
            grid=(n, n),
            in_specs=[
                pl.BlockSpec((a, x.shape[1]), lambda i, j: (i, 0)),
                pl.BlockSpec((y.shape[0], pl.Blocked(b)), lambda i, j: (0, j)),
            ],
            out_specs=pl.BlockSpec((a, b), lambda i, j: (i, j)),
        )(x, y)

    m, k, n, g = export.symbolic_shape("m, k, n, g")
    types = [S(shape, jnp.float32) for shape in ((m, k), (k, n), (g,))]
    sent = export.export(gradix.jit(product))(*types)
    x, y = np.arange(30, dtype=np.float32).reshape(6, 5), np.arange(45, dtype=np.float32).reshape(5, 9)
    same(sent.call(x, y, np.zeros(3, np.float32)), x @ y)
    same(sent.call(x[:4], y[:, :2], np.zeros(2, np.float32)), x[:4] @ y[:, :2])


def test_halves_of_a_symbolic_size():
    def call(x):
        half = pl.BlockSpec((x.shape[0] // 2,), lambda i: (i,))
        return pl.pallas_call(
            lambda x, o: o.__setitem__(..., x[...] * 2 + pl.program_id(0)),
            S(x.shape, x.dtype),
            grid=2,
            in_specs=[half],
            out_specs=half,
        )(x)

    x = np.arange(6, dtype=np.float32)
    for rules in ([], ["mod(n, 2) == 0"]):
        shape = export.symbolic_shape("n", constraints=rules)
        same(export.export(gradix.jit(call))(S(shape, x.dtype)).call(x), [0, 2, 4, 7, 9, 11])
        slope = export.export(gradix.jit(gradix.grad(lambda x: (call(x) ** 2).sum())))(S(shape, x.dtype))
        same(slope.call(x), [0, 8, 16, 28, 36, 44])


def test_texts_of_kernels_with_symbolic_sizes():
    def kernel(x, o):
        assert pl.cdiv(x.shape[0], 2) == o.shape[0]
        o[:] = x[: o.shape[0]]

    (m,) = export.symbolic_shape("m")
    call = pl.pallas_call(kernel, S(((m + 1) // 2, 128), jnp.float32))
    text = pl.lower_as_mlir(gradix.jit(call), S((m, 128), jnp.float32), dynamic_shapes=True)
    assert "tensor<?x128xf32>" in text
