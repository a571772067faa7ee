"""Kernels: blocks, grids, scratch, aliases, derivatives, maps, and checks that name the program."""

import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import mosaic_gpu, tpu as pltpu, triton
from tests.same import assert_same

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
X8, X4 = np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32)


def loops(call, *args):
    """How many loops the program of a call has: none if all of its programs are mapped."""
    return str(gradix.make_jaxpr(lambda *xs: call(*xs))(*args).eqns[-1].params["jaxpr"]).count("scan[")


def rows(b, *rest):
    return pl.BlockSpec((b, *rest), lambda i: (i,) + (0,) * len(rest))


def softmax_kernel(x, o):
    e = jnp.exp(x[...] - x[...].max(-1, keepdims=True))
    o[...] = e / e.sum(-1, keepdims=True)


def softmax(x, b=2):
    block = rows(b, x.shape[1])
    return pl.pallas_call(
        softmax_kernel, S(x.shape, x.dtype), grid=pl.cdiv(x.shape[0], b), in_specs=[block], out_specs=block
    )(x)


def product(x, y, b=2):
    def kernel(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros(o.shape)

        o[...] += x[...] @ y[...]

    n = x.shape[0] // b
    return pl.pallas_call(
        kernel,
        S(x.shape, x.dtype),
        grid=(n, n, n),
        out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
        in_specs=[pl.BlockSpec((b, b), lambda i, j, k: (i, k)), pl.BlockSpec((b, b), lambda i, j, k: (k, j))],
    )(x, y)


def accumulated(q, k, v, b=4):
    """Attention with its sums in scratch memory, the last axis of the grid over blocks of keys."""
    n, d = q.shape

    def kernel(q, k, v, o, acc, top, total):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc[...], top[...], total[...] = jnp.zeros(acc.shape), jnp.full(top.shape, -jnp.inf), jnp.zeros(total.shape)

        s = q[...] @ k[...].T
        new = jnp.maximum(top[...], s.max(-1))
        p, scale = jnp.exp(s - new[:, None]), jnp.exp(top[...] - new)
        acc[...] = acc[...] * scale[:, None] + p @ v[...]
        total[...], top[...] = total[...] * scale + p.sum(-1), new

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o[...] = acc[...] / total[...][:, None]

    of_queries, of_keys = pl.BlockSpec((b, d), lambda i, j: (i, 0)), pl.BlockSpec((b, d), lambda i, j: (j, 0))
    return pl.pallas_call(
        kernel,
        S((n, d), jnp.float32),
        grid=(n // b, n // b),
        in_specs=[of_queries, of_keys, of_keys],
        out_specs=of_queries,
        scratch_shapes=[pltpu.VMEM((b, d), jnp.float32), pltpu.VMEM((b,), jnp.float32), pltpu.VMEM((b,), jnp.float32)],
    )(q, k, v)


def attention(q, k, v):
    return gradix.nn.softmax(q @ k.T) @ v


# -- transformations -------------------------------------------------------------------------------
def test_kernels_have_every_derivative():
    x = np.sin(np.arange(24, dtype=np.float32)).reshape(6, 4)
    w = np.cos(x)

    def f(g):
        return lambda x: (g(x) * w).sum()

    assert_same(gradix.jit(softmax)(x), gradix.nn.softmax(x))
    assert_same(gradix.grad(f(softmax))(x), gradix.grad(f(gradix.nn.softmax))(x))
    one, two = gradix.jvp(softmax, (x,), (w,)), gradix.jvp(gradix.nn.softmax, (x,), (w,))
    assert_same(one[1], two[1])
    assert_same(
        gradix.hessian(lambda x: (softmax(x) * w[:2]).sum())(x[:2]),
        gradix.hessian(lambda x: (gradix.nn.softmax(x) * w[:2]).sum())(x[:2]),
    )
    assert_same(gradix.vmap(softmax, 1, 1)(np.stack([x, 2 * x], 1)), gradix.nn.softmax(np.stack([x, 2 * x], 1)))
    assert_same(
        gradix.vmap(gradix.grad(f(softmax)))(np.stack([x, w])),
        gradix.vmap(gradix.grad(f(gradix.nn.softmax)))(np.stack([x, w])),
    )


@pytest.mark.parametrize("n", [8, 12])
def test_a_product_and_its_gradients(n):
    x, y = (np.sin(np.arange(n * n, dtype=np.float32) * s).reshape(n, n) for s in (1, 2))
    assert_same(product(x, y), x @ y, atol=1e-4)
    for i in (0, 1):
        assert_same(
            gradix.jit(gradix.grad(lambda *t: (product(*t) ** 2).sum(), i))(x, y),
            gradix.grad(lambda x, y: ((x @ y) ** 2).sum(), i)(x, y),
            rtol=1e-3,
            atol=1e-3,
        )


@pytest.mark.parametrize("n", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_attention_in_scratch_memory_and_its_gradient(n):
    q, k, v = (np.sin(np.arange(n * 4, dtype=np.float32) * s).reshape(n, 4) for s in (1, 2, 3))
    assert_same(accumulated(q, k, v), attention(q, k, v))
    got, want = (
        gradix.jit(gradix.grad(lambda *t, f=f: (f(*t) ** 2).sum(), (0, 1, 2)))(q, k, v)
        for f in (accumulated, attention)
    )
    for a, b in zip(got, want):
        assert_same(a, b, atol=1e-5)


def test_loops_over_the_grid_have_derivatives():
    def kernel(x, o):
        i = pl.program_id(0)
        o[i] = jnp.where(i > 0, o[jnp.maximum(i - 1, 0)] * 0.5, 0.0) + x[i] ** 2

    def call(x):
        return pl.pallas_call(kernel, S((6,), jnp.float32), grid=6)(x)

    x = X8[:6] / 3

    def reference(x):
        return lax.scan(lambda c, v: (c * 0.5 + v**2,) * 2, 0.0, x)[1]

    assert_same(call(x), reference(x))
    assert_same(gradix.jacrev(call)(x), gradix.jacrev(reference)(x))
    assert_same(gradix.jacfwd(call)(x), gradix.jacfwd(reference)(x))


# -- which programs run side by side ---------------------------------------------------------------
def test_independent_programs_are_mapped_and_the_others_looped():
    def copy(x, o):
        o[...] = x[...]

    def call(in_map, out_map, n=8):
        return pl.pallas_call(
            copy,
            S((2 * n,), jnp.float32),
            grid=n,
            in_specs=[pl.BlockSpec((2,), in_map)],
            out_specs=pl.BlockSpec((2,), out_map),
        )

    x = np.arange(16, dtype=np.float32)

    def one(i):
        return i

    assert loops(call(one, one), x) == 0
    assert loops(call(lambda i: 7 - i, one), x) == 0  # what is read may come from anywhere
    assert loops(call(one, lambda i: i // 2), x) == 1  # two programs write one block
    assert loops(call(one, lambda i: 0), x) == 1
    assert_same(call(lambda i: 7 - i, one)(x), x.reshape(8, 2)[::-1].ravel())
    assert_same(call(one, lambda i: i // 2)(x)[:8], x.reshape(4, 2, 2)[:, 1].ravel())


def test_scratch_memory_that_goes_on_is_looped_over():
    def kernel(x, o, s):
        @pl.when(pl.program_id(0) == 0)
        def _():
            s[...] = jnp.zeros(s.shape)

        s[...] += x[...]
        o[...] = s[...]

    block = rows(1)
    call = pl.pallas_call(
        kernel,
        S((8,), jnp.float32),
        grid=8,
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[pl.ANY((1,), jnp.float32)],
    )
    assert loops(call, X8) == 1
    assert_same(call(X8), np.cumsum(X8))
    assert_same(gradix.grad(lambda x: call(x)[5])(X8), [1] * 6 + [0] * 2)


def test_kernels_that_print_run_in_order(capsys):
    def kernel(x, o):
        o[...] = x[...]
        pl.debug_print("{} at {}", x.at[0], pl.program_id(0))

    block = rows(2)
    pl.pallas_call(kernel, S((8,), jnp.float32), grid=4, in_specs=[block], out_specs=block)(X8).block_until_ready()
    gradix.effects_barrier()
    assert capsys.readouterr().out.split("\n")[:4] == ["0.0 at 0", "2.0 at 1", "4.0 at 2", "6.0 at 3"]


# -- blocks ----------------------------------------------------------------------------------------
def test_kinds_of_dimensions():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def copy(x, o):
        o[...] = x[...]

    def call(block, index_map, **kw):
        return pl.pallas_call(
            copy,
            S((2, 3), jnp.float32),
            grid=2,
            in_specs=[pl.BlockSpec(block, index_map)],
            out_specs=pl.BlockSpec((None, 3), lambda i: (i, 0)),
            **kw,
        )(x)

    assert_same(call((None, pl.Element(3)), lambda i: (0, i)), [x[0, :3], x[0, 1:]])
    assert_same(call((pl.squeezed, pl.Element(3, (1, 1))), lambda i: (0, i)), [[np.nan, 0, 1], [0, 1, 2]])
    assert_same(call((None, pl.Blocked(3)), lambda i: (0, i)), [[0, 1, 2], [3, np.nan, np.nan]])
    assert_same(call((pl.Squeezed(), pl.BoundedSlice(3)), lambda i: (i, pl.ds(i, 3))), [[0, 1, 2], [5, 6, 7]])


@pytest.mark.parametrize("dtype, fill", [("float32", np.nan), ("int32", -(2**31)), ("uint8", 0), ("bool", False)])
def test_what_is_beyond_the_end_or_not_written(dtype, fill):
    def reverse(x, o):
        o[...] = x[...][::-1]

    x = np.ones(3, dtype)
    block = pl.BlockSpec((4,), lambda i: 0)
    got = pl.pallas_call(reverse, S((4,), dtype), grid=1, in_specs=[block], out_specs=block)(x)
    np.testing.assert_array_equal(got, np.array([fill, 1, 1, 1]).astype(dtype))
    np.testing.assert_array_equal(pl.pallas_call(lambda o: None, S((2,), dtype))(), np.full(2, fill).astype(dtype))


def test_undefined_memory_does_not_reach_gradients():
    def kernel(x, o):
        rows_left = 10 - 4 * pl.program_id(0)
        inside = jnp.arange(4) < rows_left
        o[0] = jnp.where(inside, jnp.exp(x[...]), 0.0).sum()

    call = pl.pallas_call(kernel, S((3,), jnp.float32), grid=3, in_specs=[rows(4)], out_specs=rows(1))
    x = np.linspace(0, 1, 10, dtype=np.float32)
    assert_same(call(x).sum(), np.exp(x).sum())
    assert_same(gradix.grad(lambda x: call(x).sum())(x), np.exp(x))


def test_sizes_that_are_traced():
    def kernel(x, o):
        o[...] = x[...] * pl.num_programs(0)

    def call(n, x):
        return pl.pallas_call(kernel, S((8,), jnp.float32), grid=(n,), in_specs=[rows(2)], out_specs=rows(2))(x)

    assert_same(gradix.jit(call)(3, X8), [0, 3, 6, 9, 12, 15, np.nan, np.nan])
    assert_same(gradix.jit(call)(0, X8), [np.nan] * 8)
    assert_same(gradix.grad(lambda x: gradix.jit(call)(2, x)[:4].sum())(X8), [2] * 4 + [0] * 4)


def test_no_programs_and_one():
    def kernel(o):
        o[...] = jnp.ones(o.shape)

    assert_same(pl.pallas_call(kernel, S((2,), jnp.float32), grid=(0,))(), [np.nan] * 2)
    assert_same(pl.pallas_call(kernel, S((2,), jnp.float32))(), [1, 1])
    assert_same(pl.pallas_call(kernel, S((0, 2), jnp.float32), grid=(1, 1))(), np.ones((0, 2)))


def test_aliases_are_apart_from_their_arguments():
    def kernel(x, o):
        o[0] = x[0] + 10
        o[1] += x[0]

    call = pl.pallas_call(kernel, S((3,), jnp.float32), input_output_aliases={0: 0})
    assert_same(call(X4[:3]), [10, 1, 2])
    assert_same(gradix.grad(lambda x: call(x).sum())(X4[:3]), [2, 1, 1])


def test_programs_side_by_side_read_an_aliased_argument_as_it_was():
    def kernel(x, o):
        o[...] = o[...] * 0.5 + x[...]

    call = pl.pallas_call(
        kernel,
        S((2, 3), jnp.float32),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((1, None), lambda j, k: (k, 0))],
        out_specs=pl.BlockSpec((1, None), lambda j, k: (j, k // 2)),
        input_output_aliases={0: 0},
    )
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    want = x.copy()
    want[:, 0] = (x[:, 0] * 0.5 + x[0, 0]) * 0.5 + x[1, 0]
    assert_same(gradix.jit(call)(x), want)
    assert_same(gradix.jit(lambda x: call(jnp.sin(x)))(np.arcsin(x / 10)), want / 10, rtol=1e-5)


def test_arguments_and_results_are_trees():
    def kernel(refs, y, out):
        out["a"][...], out["b"][...] = refs["x"][...] + y[...], refs["x"][...] * 2

    out = pl.pallas_call(kernel, {"a": S((4,), jnp.float32), "b": S((4,), jnp.float32)})({"x": X4}, X4)
    assert_same(out["a"], 2 * X4)
    assert_same(out["b"], 2 * X4)

    def two(x, o, p, *, s):
        s[...] = x[...]
        o[...], p[...] = s[...], -s[...]

    out = pl.pallas_call(two, [S((4,), jnp.float32)] * 2, scratch_shapes={"s": pl.ANY((4,), jnp.float32)})(X4)
    assert isinstance(out, tuple)
    assert_same(out[1], -X4)


def test_captured_arrays_and_references():
    count, c = gradix.new_ref(jnp.zeros((), jnp.int32)), jnp.full(2, 5.0)

    def kernel(x, o):
        o[...] = x[...] + c
        count[...] += 1

    call = pl.pallas_call(kernel, S((8,), jnp.float32), grid=4, in_specs=[rows(2)], out_specs=rows(2))
    assert_same(call(X8), X8 + 5)
    assert int(count[...]) == 4
    assert_same(
        gradix.grad(
            lambda c: pl.pallas_call(lambda x, o: o.__setitem__(..., x[...] * c), S((4,), jnp.float32))(X4).sum()
        )(2.0),
        X4.sum(),
    )


def test_prefetched_scalars_choose_blocks():
    def kernel(order, x, o):
        o[...] = x[...] * order[pl.program_id(0)]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((2,), lambda i, s: s[i])],
        out_specs=pl.BlockSpec((2,), lambda i, s: i),
    )
    call = pl.pallas_call(kernel, S((8,), jnp.float32), grid_spec=spec)
    order = np.array([3, 1, 0, 2])
    assert_same(call(order, X8), (X8.reshape(4, 2)[order] * order[:, None]).ravel())
    assert_same(gradix.grad(lambda x: call(order, x).sum())(X8), np.repeat(np.arange(4), 2))


# -- in the kernel ---------------------------------------------------------------------------------
def test_slices_of_references():
    def kernel(i, x, o):
        i = i[0]
        o[pl.ds(0, 3)] = x[pl.ds(i, 3), 1]
        o[pl.ds(i + 1, 2)] += x[pl.ds(0, 2, 2), i]
        o.at[5][...] = x.at[pl.ds(1, 2)][1, 3]
        o[4:5] = x[pl.ds(i, 1)][0, :1]

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert_same(pl.pallas_call(kernel, S((6,), jnp.float32))(np.array([1]), x), [5, 9, 13 + 1, np.nan, 4, 11])


def test_masks_reach_beyond_the_end():
    def kernel(i, x, o, p):
        at = i[0]
        inside = at + jnp.arange(4) < 5
        o[...] = pl.load(x, (pl.ds(at, 4),), mask=inside, other=-1.0)
        pl.store(p, (pl.ds(at, 4),), jnp.ones(4), mask=inside)

    def call(i):
        return pl.pallas_call(kernel, [S((4,), jnp.float32), S((5,), jnp.float32)])(
            np.array([i]), np.arange(5, dtype=np.float32)
        )

    for i in (0, 2, 4):
        o, p = call(i)
        assert_same(o, [v if v < 5 else -1 for v in range(i, i + 4)])
        assert_same(p, [1 if i <= v < i + 4 else np.nan for v in range(5)])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("is_static", [False, True])
def test_masked_slices_with_strides_may_begin_and_end_outside(stride, is_static):
    size, n, x = 3, 8, X8 + 1

    def both(start):
        def kernel(i, mask, x, o, p):
            at = (pl.ds(start if is_static else i[0], size, stride),)
            o[...] = pl.load(x, at, mask=mask[...], other=-7)
            p[...] = jnp.zeros(p.shape)
            pl.store(p, at, x[:size], mask=mask[...])

        return pl.pallas_call(kernel, [S((size,), jnp.float32), S((n,), jnp.float32)])

    for start in (-9, -2, -1, 0, 2, 4, 5, 7, 12):
        at = start + stride * np.arange(size)
        mask, spread = (at >= 0) & (at < n), np.zeros(n)
        spread[at[mask]] = x[:size][mask]
        found, spread_found = both(start)(np.array([start], np.int32), mask, x)
        assert_same(found, np.where(mask, x[np.clip(at, 0, n - 1)], -7))
        assert_same(spread_found, spread)


def test_atomics_return_what_was_there():
    def kernel(x, o, old):
        o[...] = jnp.zeros(o.shape)
        old[...] = triton.atomic_add(o, jnp.array([0, 0, 2]), x[...])
        triton.atomic_max(o, 1, 7.0)
        triton.atomic_xchg(o, (pl.ds(2, 2),), jnp.array([8.0, 9.0]), mask=jnp.array([False, True]))
        triton.atomic_cas(o.at[1], 7.0, 6.0)

    o, old = pl.pallas_call(kernel, [S((4,), jnp.float32), S((3,), jnp.float32)])(np.array([1, 2, 3], np.float32))
    assert_same(o, [3, 6, 3, 9])
    assert_same(old, [0, 0, 0])


def test_loops_scopes_and_copies():
    def kernel(x, o, sem):
        def body(buffer):
            copy = pltpu.make_async_copy(x.at[pl.ds(2, 2)], buffer, sem.at[0])
            copy.start()
            copy.wait()
            o[...] = jnp.zeros(o.shape)

            @pl.loop(0, 3)
            def _(i):
                o[pl.ds(0, 2)] += buffer[...] * i

            total = pl.loop(0, 4, step=2, init_carry=0.0)(lambda i, c: c + i)
            o[3] = total

        pl.run_scoped(body, pltpu.VMEM((2,), jnp.float32))
        pl.semaphore_signal(sem.at[1], 3)
        pl.semaphore_wait(sem.at[1], 1)
        o[2] = pl.semaphore_read(sem.at[1]).astype(jnp.float32)

    call = pl.pallas_call(kernel, S((4,), jnp.float32), scratch_shapes=[pltpu.SemaphoreType.DMA((2,))])
    assert_same(call(X4), [6, 9, 2, 2])
    assert_same(gradix.grad(lambda x: call(x).sum())(X4), [0, 0, 3, 3])


def test_pipelines_inside_of_kernels():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)

    def kernel(x, y, o):
        def body(x, y, o):
            @pl.when(pl.program_id(1) == 0)
            def _():
                o[...] = jnp.zeros(o.shape)

            o[...] += x[...] * y[...]

        block = pl.BlockSpec((2, 2), lambda i, j: (i, j))
        pltpu.emit_pipeline(
            body, grid=(2, 4), in_specs=[block, block], out_specs=[pl.BlockSpec((2, 2), lambda i, j: (i, 0))]
        )(x, y, o)

    call = pl.pallas_call(kernel, S((4, 2), jnp.float32))
    assert_same(call(x, x), (x**2).reshape(4, 4, 2).sum(1))
    assert_same(gradix.grad(lambda x: call(x, x).sum())(x), 2 * x)


def test_references_are_arguments_of_transformed_functions():
    @gradix.jit
    def doubled(x, o):
        o[pl.ds(0, 2)] = 2 * x[pl.ds(0, 2)]

    def kernel(x, o):
        o[...] = x[...]
        doubled(x.at[pl.ds(1, 2)], o.at[pl.ds(1, 2)])
        doubled(x.at[2:], o.at[2:])
        lax.cond(x[1] > 0, lambda r: r.__setitem__(0, r[3]), lambda r: None, o)
        gradix.vmap(lambda x, o: o.addupdate(x))(x[...], o)
        square = o.reshape(2, 2)
        square[...] = gradix.jit(lambda r: r[...].T)(square)

    call = pl.pallas_call(kernel, S((4,), jnp.float32))
    assert_same(call(X4), [6, 6, 3, 9])
    assert_same(gradix.grad(lambda x: call(x)[0])(X4), [1, 0, 0, 2])


def test_views_of_other_shapes_and_dtypes():
    def kernel(x, o, n):
        o.reshape(2, 2)[1] = x.reshape(2, 2)[0]
        o.reshape((4,))[0:2] = jnp.zeros(2)
        n[...] = x.bitcast(jnp.int32)[...]

    o, n = pl.pallas_call(kernel, [S((4,), jnp.float32), S((4,), jnp.int32)])(X4)
    assert_same(o, [0, 0, 0, 1])
    assert_same(n, X4.view(np.int32))


def test_state_chosen_references_and_empty_memory():
    assert_same(pl.run_state(lambda r: r.__setitem__(0, r[1] + 1))(X4), [2, 1, 2, 3])

    def kernel(x, o, p):
        o[...], p[...] = x[...], x[...]
        pl.select_ref(pl.program_id(0) + 1, o, p)[0] = 9.0

    o, p = pl.pallas_call(kernel, [S((4,), jnp.float32)] * 2, grid=1)(X4)
    assert_same(o, X4)
    assert_same(p, [9, 1, 2, 3])
    assert np.isnan(pl.empty((2,), jnp.float32)).all()


def test_checks_in_kernels():
    def kernel(x, o):
        pl.debug_check(x[0] < 3, "the first is small")
        o[...] = x[...]

    def call(x):
        return pl.pallas_call(kernel, S((1,), jnp.float32))(x)

    assert_same(call(X4[:1] + 5), [5])
    with pl.enable_debug_checks():
        assert_same(call(X4[:1]), [0])
        with pytest.raises(Exception, match="the first is small"):
            call(X4[:1] + 5).block_until_ready()
            gradix.effects_barrier()


# -- around kernels --------------------------------------------------------------------------------
def test_programs_show_their_kernels():
    shown = str(gradix.make_jaxpr(lambda x: softmax(x))(np.ones((4, 2), np.float32)))
    assert "pallas_call[" in shown and "name=softmax_kernel" in shown and "grid=(2,)" in shown and "f32[2,2]" in shown


def test_a_kernel_is_traced_once_for_types():
    traces = []

    def kernel(x, o):
        traces.append(0)
        o[...] = x[...]

    call = pl.pallas_call(kernel, S((4,), jnp.float32))
    gradix.jit(lambda x: call(call(x)))(X4)
    assert len(traces) == 1


def test_costs_are_estimated():
    x = S((8, 16), jnp.float32)
    cost = pl.estimate_cost(lambda x, y: jnp.exp(x @ y.T) + 1, x, x)
    assert cost == pl.CostEstimate(2 * 8 * 16 * 8 + 64, 64, (2 * 128 + 64) * 4)
    assert b"flops" in cost.to_json()


def test_small_functions():
    assert (pl.cdiv(7, 2), pl.align_to(7, 4), pl.next_power_of_2(9), pl.strides_from_shape((2, 3, 4))) == (
        4,
        8,
        16,
        (12, 4, 1),
    )
    assert_same(pltpu.roll(X8, 3, 0), np.roll(X8, 3))
    x = X8.reshape(2, 4)
    assert_same(pltpu.roll(x, 1, 1, stride=2, stride_axis=0), [np.roll(x[0], 1), np.roll(x[1], 3)])
    packed = pltpu.pack_elementwise([X8, 2 * X8], packed_dtype=jnp.bfloat16)
    assert_same(
        pltpu.unpack_elementwise(packed, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32), 2 * X8
    )
    assert_same(pl.dot(x, x, trans_b=True), x @ x.T)


def test_hardware_is_refused_with_the_way_out():
    with pytest.raises(NotImplementedError, match="names hardware of a GPU.*pallas_call"):
        mosaic_gpu.wgmma(1)
    with pytest.raises(NotImplementedError, match="emit_pipeline"):
        pltpu.matmul_pop(1)
    with pytest.raises(NotImplementedError, match="pltpu.CompilerParams"):
        pl.CompilerParams()


def test_libraries_find_it_as_jax():
    code = (
        "import gradix; gradix.install_as_jax()\n"
        "import jax, jax.numpy as jnp\nfrom jax.experimental import pallas as pl\nfrom jax.experimental.pallas import tpu as pltpu\n"
        "import jax.experimental.pallas.triton\n"
        "def k(x, o): o[...] = x[...] * 2\n"
        "print(pl.pallas_call(k, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)(jnp.ones(2)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[2. 2.]", done.stderr


# -- checks that name the program ------------------------------------------------------------------
def chosen(order, x, o):
    o[...] = x[...]


def picked(out_map):
    """Blocks of a prefetched order; its programs are mapped or looped, as `out_map` allows."""
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2, 4),
        in_specs=[pl.BlockSpec((2,), lambda i, j, s: s[j])],
        out_specs=pl.BlockSpec((2,), out_map),
    )
    return pl.pallas_call(chosen, S((8,), jnp.float32), grid_spec=spec)


@pytest.mark.parametrize("out_map", [lambda i, j, s: j, lambda i, j, s: j - i + i])
def test_a_check_names_the_block_and_the_program(out_map):
    call = gradix.jit(picked(out_map), check="index")
    good, bad = np.array([3, 1, 0, 2], np.int32), np.array([3, 1, 4, -1], np.int32)
    assert_same(call(good, X8), X8.reshape(4, 2)[good].ravel())
    with pytest.raises(
        IndexError,
        match=r"index map of args\[1\] gives 4 along axis 0, for 2 elements from 8 on of an array that has 8, "
        r"in program \(0, 2\) of the kernel chosen. \(.*test_pallas.py",
    ):
        call(bad, X8)
    with pytest.raises(IndexError, match=r"gives -1 along axis 0, .*in program \(0, 0\)"):
        call(bad[::-1], X8)


@pytest.mark.parametrize("is_looped", [False, True])
def test_a_check_names_the_program_of_an_index(is_looped):
    def kernel(i, x, o, *s):
        o[...] = jnp.zeros(o.shape)

        def turn(j, _):
            o[j] = x[i[2 * pl.program_id(0) + j]]

        lax.fori_loop(0, 2, turn, None)
        if is_looped:
            s[0][...] = s[0][...] + 1

    call = pl.pallas_call(
        kernel,
        S((8,), jnp.float32),
        grid=4,
        in_specs=[pl.BlockSpec(), pl.BlockSpec()],
        out_specs=rows(2),
        scratch_shapes=[pl.ANY((1,), jnp.float32)] * is_looped,
    )
    f, i = gradix.jit(call, check="index"), np.array([0, 1, 2, 3, 0, 1, 2, 3], np.int32)
    assert_same(f(i, X8), X8[i])
    i[5] = 9
    with pytest.raises(
        IndexError,
        match=r"index 9 is out of bounds for axis 0 with size 8. \(.*test_pallas.py.*in program \(2,\) of the kernel kernel",
    ):
        f(i, X8)
    i[5] = 5
    assert_same(gradix.jit(gradix.grad(lambda x: call(i, x).sum()), check="index")(X8), np.bincount(i, minlength=8))


def test_blocks_beyond_the_end_pass_the_check():
    call = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...]), S((7,), jnp.float32), grid=4, in_specs=[rows(2)], out_specs=rows(2)
    )
    assert_same(gradix.jit(call, check="index")(X8[:7]), X8[:7])
    far = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...]),
        S((7,), jnp.float32),
        grid=4,
        in_specs=[pl.BlockSpec((2,), lambda i: i + 1)],
        out_specs=rows(2),
    )
    with pytest.raises(IndexError, match=r"gives 4 along axis 0.*in program \(3,\)"):
        gradix.jit(far, check="index")(X8[:7])


def test_other_checks_name_the_program():
    call = pl.pallas_call(
        lambda x, o: o.__setitem__(..., jnp.log(x[...])),
        S((8,), jnp.float32),
        grid=4,
        in_specs=[rows(2)],
        out_specs=rows(2),
    )
    f = gradix.jit(call, check="nan")
    assert np.isinf(f(X8)[0])
    with pytest.raises(FloatingPointError, match=r"nan generated by primitive: log. .*in program \(2,\)"):
        f(np.where(X8 == 4, -1, X8))


@pytest.mark.parametrize("power, products", [(1, 0), (2, 2), (7, 5), (8, 4), (9, 5)])
def test_costs_of_powers_count_products(power, products):
    cost = pl.estimate_cost(lambda x: gradix.lax.integer_pow(x, power), S((10,), jnp.float32))
    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (10 * products, 0, 80)
