"""BCOO arrays: every function, on every layout, gives what the ordinary array gives."""

from itertools import chain, combinations, permutations

import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp
from gradix.experimental import sparse
from tests.experimental.sparse.cases import array, every, layouts, same

EVERY = every()


def subsets(axes):
    return list(chain.from_iterable(combinations(axes, n) for n in range(len(axes) + 1)))


@pytest.mark.parametrize("shape, n_batch, n_dense", EVERY)
def test_storage(shape, n_batch, n_dense):
    m, whole = array(shape, n_batch, n_dense)
    same(m, whole)
    same(sparse.bcoo_sort_indices(m), whole)
    once = sparse.bcoo_sum_duplicates(m)
    same(once, whole)
    assert once.unique_indices and once.indices_sorted
    same(m.sum_duplicates(nse=m.nse + 2), whole)
    for b, d in layouts(shape):
        same(m.update_layout(n_batch=b, n_dense=d, on_inefficient=None), whole)
        made = sparse.BCOO.fromdense(whole, n_batch=b, n_dense=d)
        same(made, whole)
        assert (made.n_batch, made.n_dense) == (b, d)
        same(sparse.BCOO.fromdense(whole, n_batch=b, n_dense=d, nse=made.nse + 1), whole)
    other = np.arange(1.0, whole.size + 1, dtype="f").reshape(shape)
    picked = sparse.bcoo_extract(m, other)
    places = sparse.bcoo_extract(m._with(data=jnp.ones_like(m.data)), np.ones(shape, "f")).todense()
    same(picked, other * places)
    assert set(np.unique(places)) <= {0.0, 1.0}


@pytest.mark.parametrize("shape, n_batch, n_dense", EVERY)
def test_moving(shape, n_batch, n_dense):
    m, whole = array(shape, n_batch, n_dense)
    n = len(shape)
    kinds = [range(n_batch), range(n_batch, n - n_dense), range(n - n_dense, n)]
    for order in [
        sum(p, ())
        for p in (
            (a, b, c) for a in permutations(kinds[0]) for b in permutations(kinds[1]) for c in permutations(kinds[2])
        )
    ]:
        same(sparse.bcoo_transpose(m, permutation=order), whole.transpose(order))
    for axes in subsets(range(n)):
        same(sparse.bcoo_reduce_sum(m, axes=axes), whole.sum(axes))
        same(sparse.bcoo_rev(m, axes), np.flip(whole, axes))
    for axis in range(n):
        same(sparse.bcoo_concatenate([m, 2 * m, m], dimension=axis), np.concatenate([whole, 2 * whole, whole], axis))
    same(sparse.bcoo_squeeze(m, dimensions=[i for i in range(n) if shape[i] == 1]), whole.squeeze())
    for starts, limits, steps in (
        ((0,) * n, shape, (2,) * n),
        ((1,) + (0,) * (n - 1), shape, (1,) * n),
        ((0,) * n, (0,) + shape[1:], (1,) * n),
    ):
        got = sparse.bcoo_slice(m, start_indices=starts, limit_indices=limits, strides=steps)
        same(got, whole[tuple(map(slice, starts, limits, steps))])
    starts = (1,) * n
    sizes = tuple(max(k - 1, 1) for k in shape)
    same(sparse.bcoo_dynamic_slice(m, starts, sizes), lax.dynamic_slice(whole, starts, sizes))
    same(
        sparse.bcoo_broadcast_in_dim(m, shape=(2, *shape), broadcast_dimensions=range(1, n + 1)),
        np.broadcast_to(whole, (2, *shape)),
    )
    same(
        sparse.bcoo_broadcast_in_dim(m, shape=(*shape, 2), broadcast_dimensions=range(n)),
        np.repeat(whole[..., None], 2, -1),
    )
    wide = tuple(3 if k == 1 else k for k in shape)
    same(sparse.bcoo_broadcast_in_dim(m, shape=wide, broadcast_dimensions=range(n)), np.broadcast_to(whole, wide))
    parts = [shape[:n_batch], shape[n_batch : n - n_dense], shape[n - n_dense :]]
    new = tuple(int(np.prod(p)) for p in parts if p)
    same(sparse.bcoo_reshape(m, new_sizes=new), whole.reshape(new))


def test_reshape_takes_axes_apart_and_together():
    m, whole = array((4, 6), nse=9)
    for new in ((24,), (2, 12), (8, 3), (2, 2, 3, 2), (1, 4, 1, 6), (3, 8)):
        same(m.reshape(new), whole.reshape(new))
    same(sparse.bcoo_reshape(m, new_sizes=(3, 8), dimensions=(1, 0)), whole.T.reshape(3, 8))
    with pytest.raises(ValueError, match="update_layout"):
        sparse.bcoo_reshape(array((4, 6), 1)[0], new_sizes=(3, 8))


@pytest.mark.parametrize("shape, n_batch, n_dense", [c for c in EVERY if c[0] != (2, 1, 3)])
def test_products(shape, n_batch, n_dense):
    m, whole = array(shape, n_batch, n_dense)
    rng = np.random.default_rng(0)
    for contracted in subsets(range(len(shape))):
        for batch in subsets([i for i in range(len(shape)) if i not in contracted]):
            inner = [shape[i] for i in (*batch, *contracted)]
            other = rng.integers(-3, 4, (*inner, 2)).astype("f")
            k = len(batch)
            numbers = (contracted, tuple(range(k, k + len(contracted)))), (batch, tuple(range(k)))
            want = lax.dot_general(whole, other, numbers)
            same(sparse.bcoo_dot_general(m, other, dimension_numbers=numbers), want)
            numbers = tuple(pair[::-1] for pair in numbers)
            same(sparse.bcoo_dot_general(other, m, dimension_numbers=numbers), lax.dot_general(other, whole, numbers))
    full = rng.integers(-3, 4, shape).astype("f")
    same(m * full, whole * full)
    same(m * full[:1], whole * full[:1])
    same(m / (full + 5), whole / (full + 5))
    same(m + full, whole + full)
    same(full - m, full - whole)
    for b, d in layouts(shape):
        other, rhs = array(shape, b, d, seed=1)
        same(m * other, whole * rhs)
        same(m + other, whole + rhs)
        same(m - other, whole - rhs)


@pytest.mark.parametrize("left", layouts((2, 3)))
@pytest.mark.parametrize("right", [(0, 0), (1, 0), (0, 1)])
def test_products_of_two_sparse_arrays(left, right):
    a, x = array((2, 3), *left)
    b, y = array((3, 2), *right, seed=1)
    same(a @ b, x @ y)
    numbers = ((1,), (0,)), ((0,), (1,))
    same(sparse.bcoo_dot_general(a, b, dimension_numbers=numbers), lax.dot_general(x, y, numbers))
    same(sparse.bcoo_dot_general(a, b, dimension_numbers=(((), ()), ((), ()))), np.multiply.outer(x, y))
    p, s = array((2, 3, 4), 1)
    q, t = array((2, 4, 3), 1, seed=1)
    same(p @ q, s @ t)


def test_large_products_look_up_what_matches():
    rng = np.random.default_rng(0)
    x, y = [rng.integers(-2, 3, (60, 60)) * (rng.random((60, 60)) < 0.2) * np.float32(1) for _ in range(2)]
    a, b = sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(y)
    assert a.nse * b.nse > 1 << 16
    same(a @ b, x @ y)
    same(sparse.grad(lambda a: (a @ b).todense().sum())(a), (x != 0) * (np.ones((60, 60)) @ y.T))


@pytest.mark.parametrize(
    "item",
    [
        0,
        -1,
        slice(1, None),
        slice(None, None, 2),
        (slice(None), 1),
        (0, 2),
        (..., None),
        None,
        (slice(None, None, -1), slice(0, 2)),
        np.array([1, 0, 1]),
        (slice(None), np.array([2, 0])),
    ],
    ids=str,
)
def test_indexing(item):
    m, whole = array((3, 4), nse=8)
    same(m[item], whole[item])


def test_operators_and_methods():
    m, whole = array((3, 4), nse=8)
    v = np.arange(4, dtype="f")
    same(m @ v, whole @ v)
    same(v[:3] @ m, v[:3] @ whole)
    same(m @ np.ones((2, 4, 3), "f"), whole @ np.ones((2, 4, 3)))
    same(-m, -whole)
    same(abs(m), abs(whole))
    same(m**2, whole**2)
    same(2 * m.T / 4, whole.T / 2)
    same(m.sum(), whole.sum())
    same(m.sum(1, keepdims=True), whole.sum(1, keepdims=True))
    assert m.astype("int32").dtype == np.int32 and len(m) == 3 and m.size == 12 and [r.shape for r in m] == [(4,)] * 3
    assert (
        repr(m) == "BCOO(float32[3, 4], nse=8)"
        and repr(array((3, 4), 1, 1)[0]) == "BCOO(float32[3, 4], nse=4, n_batch=1, n_dense=1)"
    )
    for wrong in (lambda: m > 1, lambda: m == m, lambda: 1 / m, lambda: m + 1, lambda: m**-1):
        with pytest.raises(NotImplementedError, match="dense"):
            wrong()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32", "complex64", "bool"])
def test_dtypes(dtype):
    whole = jnp.array([[0, 1, 1], [1, 0, 0]], dtype)
    m = sparse.BCOO.fromdense(whole)
    other = jnp.array([[1, 0], [1, 1], [0, 1]], dtype)
    for f in (lambda m: m @ other, gradix.jit(lambda m: m @ other)):
        assert f(m).dtype == dtype
        np.testing.assert_array_equal(np.asarray(f(m)).astype("c8"), np.asarray(whole @ other).astype("c8"))
    np.testing.assert_array_equal(np.asarray(m.todense()), np.asarray(whole))


def test_is_a_pytree_of_jit_loops_and_vmap():
    m, whole = array((3, 4), 1)
    same(gradix.jit(lambda m: m.T.T * 2)(array((3, 4))[0]), array((3, 4))[1] * 2)
    seen = []
    rows = gradix.vmap(lambda row: seen.append(row.shape) or row @ jnp.ones(4))(m)
    assert seen == [(4,)]
    same(rows, whole.sum(1))
    same(gradix.vmap(lambda row: row * 2)(m), whole * 2)
    flat, image = array((4, 4), nse=6)
    same(
        lax.fori_loop(0, 3, lambda i, x: flat.T @ (flat @ x), jnp.ones(4)),
        np.linalg.matrix_power(image.T @ image, 3) @ np.ones(4),
    )
    same(lax.scan(lambda c, row: (c + row @ jnp.ones(4), row * 2), 0.0, m)[1], whole * 2)


@pytest.mark.parametrize("n_batch, n_dense", layouts((3, 4)))
def test_derivatives_are_those_of_the_elements(n_batch, n_dense):
    m, whole = array((3, 4), n_batch, n_dense)
    other = jnp.arange(8.0).reshape(4, 2) / 8

    def of_data(data):
        return jnp.sin(m._with(data=data) @ other).sum()

    gradix.test_util.check_grads(of_data, (m.data,), order=2, rtol=2e-2, atol=2e-2, eps=1e-2)
    found = sparse.grad(lambda m, x: jnp.sin(m @ x).sum(), (0, 1))(m, other)
    by_whole, by_other = gradix.grad(lambda m, x: jnp.sin(m @ x).sum(), (0, 1))(jnp.asarray(whole), other)
    np.testing.assert_allclose(
        found[0].data, sparse.bcoo_extract(m, by_whole, assume_unique=True).data, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(found[1], by_other, rtol=1e-4, atol=1e-5)
    with_rows = sparse.jacfwd(lambda m: m @ other[:, 0])(m)
    np.testing.assert_allclose(with_rows.data, sparse.jacrev(lambda m: m @ other[:, 0])(m).data, rtol=1e-5, atol=1e-6)


def test_value_and_grad_of_trees_and_aux():
    m, _ = array((3, 4))
    (value, aux), found = sparse.value_and_grad(lambda d: ((d["m"] @ d["v"]).sum(), "aux"), has_aux=True)(
        {"m": m, "v": jnp.ones(4)}
    )
    assert aux == "aux" and found["m"].shape == (3, 4) and found["v"].shape == (4,) and value == m.todense().sum()
    with pytest.raises(ValueError, match="argnums"):
        sparse.grad(lambda m: 0.0, 3)(m)


def test_sampled_products():
    a, b = np.arange(6.0, dtype="f").reshape(2, 3), np.arange(12.0, dtype="f").reshape(3, 4)
    at = np.array([[0, 3], [1, 0], [2, 4]])
    np.testing.assert_array_equal(
        sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=(((1,), (0,)), ((), ()))),
        [(a @ b)[0, 3], (a @ b)[1, 0], 0],
    )


def test_wrong_arrays():
    with pytest.raises(ValueError, match="nse"):
        sparse.BCOO((jnp.ones(3), jnp.zeros((2, 1), int)), shape=(4,))
    with pytest.raises(ValueError, match="dense axes"):
        sparse.BCOO((jnp.ones((2, 3)), jnp.zeros((2, 1), int)), shape=(4, 5))
    with pytest.raises(sparse.SparseEfficiencyError, match="n_batch from 0 to 1"):
        array((3, 4))[0].update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning):
        array((3, 4))[0].update_layout(n_batch=1, on_inefficient="warn")
    with pytest.raises(TypeError, match="contracting dimensions"):
        array((3, 4))[0] @ jnp.ones(3)
    with pytest.raises(gradix.errors.ConcretizationTypeError):
        gradix.jit(sparse.BCOO.fromdense)(jnp.ones(3))


@pytest.mark.parametrize("axis", [2, 5, -3])
def test_axes_out_of_range(axis):
    m, _ = array((3, 4))
    with pytest.raises(ValueError, match="bcoo_reduce_sum: axes="):
        sparse.bcoo_reduce_sum(m, axes=(axis,))
    with pytest.raises(ValueError, match="bcoo_squeeze: dimensions="):
        sparse.bcoo_squeeze(m, dimensions=(axis,))
    with pytest.raises(TypeError, match="bcoo_rev: dimensions="):
        sparse.bcoo_rev(m, (axis,))


def test_negative_axes():
    m, whole = array((3, 4))
    same(sparse.bcoo_reduce_sum(m, axes=(-1,)), whole.sum(-1))
    with pytest.raises(TypeError, match="counted from 0 to 1"):  # as lax.rev
        sparse.bcoo_rev(m, (-1,))


def test_vmap_moves_batch_axes_of_sparse_arrays_with_their_shape():
    dense = jnp.arange(24.0).reshape(2, 3, 4)
    m = sparse.BCOO.fromdense(dense, n_batch=2)
    assert gradix.vmap(lambda m: m, out_axes=1)(m).shape == (3, 2, 4)
    np.testing.assert_array_equal(gradix.vmap(lambda m: m, out_axes=1)(m).todense(), dense.swapaxes(0, 1))
    np.testing.assert_array_equal(gradix.vmap(lambda m: m.todense(), in_axes=1)(m), dense.swapaxes(0, 1))
    np.testing.assert_array_equal(gradix.vmap(lambda m: m.todense(), in_axes=1, out_axes=1)(m), dense)
    twice = gradix.vmap(gradix.vmap(lambda m: m), in_axes=1, out_axes=1)(m)
    assert twice.shape == m.shape and (twice.todense() == dense).all()


@pytest.mark.parametrize("shape, n_batch, n_dense", EVERY)
def test_new_axes_before_dense_ones_are_batch_axes(shape, n_batch, n_dense):
    m, whole = array(shape, n_batch, n_dense)
    for at in range(len(shape) + 1):
        index = (*[slice(None)] * at, None)
        made = m[index]
        same(made, whole[index])
        no_dense_before = n_batch + n_dense == len(shape) and not n_dense
        if at <= n_batch or no_dense_before:
            assert made.n_batch == n_batch + 1


def test_layouts_change_without_mixing_ranks():
    whole = np.arange(24.0, dtype="f").reshape(3, 4, 2)
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        for a in layouts(whole.shape):
            m = sparse.BCOO.fromdense(jnp.asarray(whole), n_batch=a[0], n_dense=a[1])
            for b in layouts(whole.shape):
                same(m.update_layout(n_batch=b[0], n_dense=b[1], on_inefficient=None), whole)


@pytest.mark.parametrize("form", [sparse.BCOO, sparse.BCSR])
@pytest.mark.parametrize("axis", [0, 1])
def test_each_batch_axis_may_be_mapped(form, axis):
    whole = np.random.default_rng(0).integers(0, 2, (2, 3, 3, 4, 2)).astype("f")
    m = form.fromdense(jnp.asarray(whole), n_batch=2, n_dense=1)
    same(gradix.vmap(lambda m: m.todense(), axis)(m), np.moveaxis(whole, axis, 0))
    same(gradix.vmap(lambda m: m, axis)(m), np.moveaxis(whole, axis, 0))
    same(gradix.vmap(lambda m: m, axis, axis)(m), whole)


@pytest.mark.parametrize("shape, n_batch, n_dense", EVERY)
def test_what_is_stored_of_an_array_keeps_its_derivative(shape, n_batch, n_dense):
    _, whole = array(shape, n_batch, n_dense)
    nse = max(sparse.BCOO.fromdense(whole, n_batch=n_batch, n_dense=n_dense).nse, 1)
    stored = np.ones(shape, bool)
    if n_batch + n_dense < len(shape):
        stored &= (whole != 0).any(tuple(range(len(shape) - n_dense, len(shape))), keepdims=True)

    def round_trip(m):
        return sparse.BCOO.fromdense(m, nse=nse, n_batch=n_batch, n_dense=n_dense).todense()

    t = np.arange(1, 1 + whole.size, dtype=whole.dtype).reshape(shape)
    same(gradix.jvp(round_trip, (whole,), (t,))[1], np.where(stored, t, 0))
    same(gradix.vjp(round_trip, whole)[1](t)[0], np.where(stored, t, 0))
