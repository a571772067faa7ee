"""What the pages on Pallas show (first kernels, grids and blocks, pipelines, prefetched blocks), as kernels of our own."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import checkify, pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
same = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


def uniform(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


# -- first kernels ---------------------------------------------------------------------------------


def add(x, y, o):
    o[...] = x[...] + y[...]


def test_whole_arrays_without_a_grid():
    n = np.arange(8, dtype=np.int32)
    call = pl.pallas_call(add, out_shape=S.like(n))
    assert (gradix.jit(call)(n, n) == 2 * n).all()


def test_parts_of_references_of_which_parts_are_written():
    def all_sums(x, y, o):
        half = x.shape[0] // 2
        for i, a in enumerate((x.at[:half], x.at[half:])):
            rows = o.at[2 * half * i : 2 * half * (i + 1)]
            rows[:half] = a[...] + y.at[:half][...]
            rows[half:] = a[...] + y.at[half:][...]

    x, y = np.arange(4.0, dtype=np.float32), 10 * np.arange(4.0, dtype=np.float32)
    got = pl.pallas_call(all_sums, S((8,), jnp.float32))(x, y)
    same(got, [0, 11, 20, 31, 2, 13, 22, 33])


@pytest.mark.parametrize("spec", [None, pl.BlockSpec(memory_space=pltpu.SMEM)])
def test_each_program_writes_its_element(spec):
    def count(o):
        o[pl.program_id(0)] = pl.program_id(0)

    kw = {} if spec is None else {"out_specs": spec}
    same(pl.pallas_call(count, S((8,), jnp.int32), grid=(8,), **kw)(), np.arange(8))


def product(x, y, *, activation=lambda z: z):
    """The product in four blocks; `activation` is a parameter of the kernel."""

    def kernel(x, y, z, *, activation):
        z[...] = activation(x[...] @ y[...])

    (n, k), m = x.shape, y.shape[1]
    return pl.pallas_call(
        functools.partial(kernel, activation=activation),
        out_shape=S((n, m), x.dtype),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((n // 2, k), lambda i, j: (i, 0)), pl.BlockSpec((k, m // 2), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((n // 2, m // 2), lambda i, j: (i, j)),
    )(x, y)


def test_products_in_blocks_with_an_activation_and_mapped():
    x, y = uniform(3, 16, 8), uniform(3, 8, 12, seed=1)
    same(product(x[0], y[0]), x[0] @ y[0])
    same(product(x[0], y[0], activation=gradix.nn.relu), np.maximum(x[0] @ y[0], 0))
    rectified = functools.partial(product, activation=gradix.nn.relu)
    same(gradix.vmap(rectified)(x, y), np.maximum(x @ y, 0))
    slope = gradix.grad(lambda x: rectified(x, y[0]).sum())(x[0])
    same(slope, (x[0] @ y[0] > 0) @ y[0].T)


# -- grids and blocks ------------------------------------------------------------------------------


def last_programs(shape, block, grid, index_map=lambda i, j, *_: (i, j)):
    """The program that wrote each element last, its indices as decimal digits."""

    def kernel(o):
        digits = [pl.program_id(a) * 10 ** (len(grid) - 1 - a) for a in range(len(grid))]
        o[...] = jnp.full(o.shape, sum(digits))

    spec = pl.BlockSpec(block, index_map)
    return pl.pallas_call(kernel, S(shape, jnp.int32), grid=grid, in_specs=[], out_specs=spec, interpret=True)()


def tiled(rows, columns, shape):
    return np.add.outer(10 * np.repeat(*rows), np.repeat(*columns))[: shape[0], : shape[1]]


@pytest.mark.parametrize("shape, grid", [((8, 6), (4, 2)), ((7, 5), (4, 2)), ((1, 2), (1, 1))])
def test_blocks_side_by_side_and_beyond_the_end(shape, grid):
    want = tiled((np.arange(grid[0]), 2), (np.arange(grid[1]), 3), shape)
    same(last_programs(shape, (2, 3), grid), want)


def test_an_axis_of_the_grid_that_no_index_uses():
    want = 10 * tiled((np.arange(4), 2), (np.arange(2), 3), (8, 6)) + 9
    same(last_programs((8, 6), (2, 3), (4, 2, 10)), want)


@pytest.mark.parametrize("block", [None, (4, 4)])
def test_the_whole_array_is_the_block(block):
    same(last_programs((4, 4), block, (2, 3), None), np.full((4, 4), 12))


@pytest.mark.parametrize("one", [None, pl.squeezed, pl.Squeezed()])
def test_a_dimension_that_the_kernel_does_not_see(one):
    def kernel(o):
        assert o.shape == (2,)
        o[...] = jnp.full((2,), 10 * pl.program_id(1) + pl.program_id(0))

    spec = pl.BlockSpec((one, 2), lambda i, j: (i, j))
    got = pl.pallas_call(kernel, S((3, 4), jnp.int32), out_specs=spec, grid=(3, 2))()
    same(got, np.arange(3)[:, None] + [0, 0, 10, 10])


def test_elements_and_padding_before_the_array():
    def by_elements(i, j):
        return 2 * i, 3 * j

    same(
        last_programs((8, 6), (pl.Element(2), pl.Element(3)), (4, 2), by_elements),
        tiled((np.arange(4), 2), (np.arange(2), 3), (8, 6)),
    )
    padded = last_programs((7, 7), (pl.Element(2, (1, 0)), pl.Element(3, (2, 0))), (4, 3), by_elements)
    same(padded, tiled((np.arange(4), 2), (np.arange(3), 3), (8, 9))[1:, 2:])


def test_an_index_map_is_a_function_that_tells_slices():
    def slices(spec, ids):
        return [slice(i * b, i * b + b) for i, b in zip(spec.index_map(*ids), spec.block_shape)]

    two, three = pl.BlockSpec((10, 20), lambda i, j: (i, j)), pl.BlockSpec((10, 20), lambda i, j, k: (i, j))
    assert slices(two, (2, 4)) == slices(three, (2, 4, 0)) == [slice(20, 30), slice(80, 100)]


# -- pipelines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8, 16, 32])
def test_a_sum_whose_blocks_have_a_parameter(size):
    x, y = uniform(32, 32), uniform(32, 32, seed=1)
    block = pl.BlockSpec((size, size), lambda i, j: (i, j))
    call = pl.pallas_call(add, x, grid=(32 // size,) * 2, in_specs=[block, block], out_specs=block)
    same(call(x, y), x + y)


def test_a_reduction_over_the_last_axis_of_the_grid():
    def total(x, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    x = uniform(4, 16, 16)
    call = pl.pallas_call(
        total,
        S((16, 16), jnp.float32),
        grid=(2, 2, 4),
        in_specs=[pl.BlockSpec((None, 8, 8), lambda i, j, k: (k, i, j))],
        out_specs=pl.BlockSpec((8, 8), lambda i, j, k: (i, j)),
    )
    same(call(x), x.sum(0))
    same(gradix.grad(lambda x: call(x)[3, 5] ** 2)(x)[:, 3, 5], np.full(4, 2 * x.sum(0)[3, 5]))


def test_a_reduction_that_forgets_its_first_value_is_not_a_number():
    def total(x, o):
        o[...] += x[...]

    call = pl.pallas_call(
        total,
        S((8, 8), jnp.float32),
        grid=(4, 1, 1),
        in_specs=[pl.BlockSpec((None, 8, 8), lambda i, j, k: (i, j, k))],
        out_specs=pl.BlockSpec((8, 8), lambda i, j, k: (j, k)),
    )
    assert np.isnan(call(uniform(4, 8, 8))).all()


def test_a_copy_of_a_part_into_scratch_memory():
    def kernel(x, o, own):
        pltpu.sync_copy(x.at[0:1], own)
        o[...] = own[...] + 1

    x = uniform(8, 128)
    call = pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=S((1, 128), jnp.float32),
        scratch_shapes=(pltpu.VMEM(shape=(1, 128), dtype=jnp.float32),),
    )
    same(call(x), x[:1] + 1)


def test_a_pipeline_over_slices_that_values_choose():
    slices = np.array([[0, 2], [2, 3], [3, 5], [5, 8]], np.int32)

    def kernel(x, bounds, o, own):
        pltpu.sync_copy(bounds, own)

        def copy(x, o):
            o[...] = x[...]

        part = pl.BlockSpec((pl.BoundedSlice(8), 16), lambda i: (pl.ds(own[i, 0], own[i, 1] - own[i, 0]), 0))
        pltpu.emit_pipeline(copy, grid=(len(slices),), in_specs=[part], out_specs=part)(x, o)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    x = uniform(8, 16)
    call = pl.pallas_call(
        kernel,
        in_specs=[anywhere, anywhere],
        out_specs=anywhere,
        out_shape=S.like(x),
        scratch_shapes=(pltpu.SMEM(slices.shape, jnp.int32),),
    )
    same(call(x, slices), x)


def test_cores_share_a_grid_and_its_inner_pipeline():
    x, y = uniform(16, 32), uniform(16, 32, seed=1)
    rows = pl.BlockSpec((8, 32), lambda i: (i, 0), pipeline_mode=pl.Buffered(3, use_lookahead=True))
    params = pltpu.CompilerParams(dimension_semantics=("parallel",))
    call = pl.pallas_call(add, S.like(x), in_specs=[rows] * 2, out_specs=rows, grid=(2,), compiler_params=params)
    same(call(x, y), x + y)

    def outer(x, y, o):
        block = pl.BlockSpec((8, 8), lambda i, j: (i, j))
        pltpu.emit_pipeline(
            add,
            grid=(2, 4),
            in_specs=[block, block],
            out_specs=block,
            core_axis=0,
            dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY),
        )(x, y, o)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    same(pl.pallas_call(outer, S.like(x), grid=(2,), in_specs=[anywhere] * 2, out_specs=anywhere)(x, y), x + y)


# -- blocks that prefetched values choose ----------------------------------------------------------


def test_a_block_at_a_traced_place_with_a_check():
    sizes = (8, 8)

    @checkify.checkify
    @gradix.jit
    def block(x, starts):
        def copy(index, x, o):
            del index
            o[...] = x[...]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1, 1),
            in_specs=[pl.BlockSpec(sizes, lambda i, j, index: (index[0], index[1]))],
            out_specs=pl.BlockSpec(sizes, lambda *_: (0, 0)),
        )
        for start, size in zip(starts, sizes):
            checkify.check(start % size == 0, "a start must be a multiple of the size")
        index = jnp.array([start // size for start, size in zip(starts, sizes)])
        return pl.pallas_call(copy, grid_spec=spec, out_shape=S(sizes, x.dtype))(index, x)

    x = np.arange(32 * 32, dtype=np.int32).reshape(32, 32)
    error, got = block(x, (8, 16))
    error.throw()
    same(got, lax.dynamic_slice(x, (8, 16), sizes))
    assert "multiple of the size" in block(x, (9, 16))[0].get()


def test_a_matrix_of_few_blocks_times_a_dense_one():
    b, n = 4, 16
    full = np.random.default_rng(0).random((n // b, n // b)) < 0.4
    full[2] = False  # rows that no program writes keep what the aliased argument holds
    rows, columns = (a.astype(np.int32) for a in np.nonzero(full))
    blocks = uniform(len(rows), b, b)
    dense = np.zeros((n, n), np.float32)
    for i, j, block in zip(rows, columns, blocks):
        dense[i * b : i * b + b, j * b : j * b + b] = block

    def kernel(rows, columns, x, y, zeros, o, acc):
        t, last = pl.program_id(1), pl.num_programs(1) - 1

        @pl.when((t == 0) | (rows[t] != rows[jnp.maximum(t - 1, 0)]))
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[0, :, :], y[...], preferred_element_type=jnp.float32)

        @pl.when((t == last) | (rows[t] != rows[jnp.minimum(t + 1, last)]))
        def _():
            o[...] = acc[...].astype(o.dtype)

    def out(j, t, rows, columns):
        return rows[t], j

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(n // b, len(rows)),
        in_specs=[
            pl.BlockSpec((1, b, b), lambda j, t, rows, columns: (t, 0, 0)),
            pl.BlockSpec((b, b), lambda j, t, rows, columns: (columns[t], j)),
            pl.BlockSpec((b, b), out),
        ],
        out_specs=pl.BlockSpec((b, b), out),
        scratch_shapes=[pltpu.VMEM((b, b), jnp.float32)],
    )
    call = pl.pallas_call(kernel, S((n, n), jnp.float32), grid_spec=spec, input_output_aliases={4: 0})
    y, zeros = uniform(n, n, seed=1), np.zeros((n, n), np.float32)
    same(call(rows, columns, blocks, y, zeros), dense @ y)
    same(gradix.grad(lambda y: call(rows, columns, blocks, y, zeros).sum())(y), dense.T @ np.ones((n, n)))


def test_a_product_under_a_mask_whose_empty_blocks_are_left_out():
    b, n = 4, 12
    mask = np.tril(np.ones((n, n), np.int32))
    tiles = mask.reshape(n // b, b, n // b, b).swapaxes(1, 2)
    kinds, which = np.unique(tiles.reshape(-1, b * b), axis=0, return_inverse=True)
    which = which.reshape(n // b, n // b).astype(np.int32)
    is_full = tiles.any((2, 3)).astype(np.int32)

    def kernel(is_full, which, x, y, kind, o, acc):
        i, j, k = map(pl.program_id, range(3))

        @pl.when(k == 0)
        def _():
            o[...] = jnp.zeros_like(o)
            acc[...] = jnp.zeros_like(acc[...])

        @pl.when(is_full[i, j] != 0)
        def _():
            acc[...] += x[...] @ y[...]

            @pl.when(k == pl.num_programs(2) - 1)
            def _():
                o[...] = kind[0, ...] * acc[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(n // b,) * 3,
        in_specs=[
            pl.BlockSpec((b, b), lambda i, j, k, is_full, which: (i, is_full[i, j] * k)),
            pl.BlockSpec((b, b), lambda i, j, k, is_full, which: (is_full[i, j] * k, j)),
            pl.BlockSpec((1, b, b), lambda i, j, k, is_full, which: (which[i, j], 0, 0)),
        ],
        out_specs=pl.BlockSpec((b, b), lambda i, j, k, *_: (i, j)),
        scratch_shapes=[pltpu.VMEM((b, b), jnp.float32)],
    )
    x, y = uniform(n, n), uniform(n, n, seed=1)
    call = pl.pallas_call(kernel, S((n, n), jnp.float32), grid_spec=spec)
    same(call(is_full, which, x, y, kinds.reshape(-1, b, b)), mask * (x @ y))
