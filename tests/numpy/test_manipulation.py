"""Reshaping, joining, splitting, padding, moving and taking elements: NumPy is the reference."""

import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.errors import ConcretizationTypeError
from tests.same import assert_same

N = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.array([3, 1, 4, 1, 5], np.int32)
M = np.array([[1, 5, 2], [7, 0, 9]], np.int32)


# Each expression holds for both libraries; `a` makes an array.
CASES = """
jnp.reshape(n, (4, -1))
jnp.reshape(n, 24)
jnp.reshape(n, (4, 6), order="F")
jnp.ravel(n)
jnp.ravel(n, order="F")
jnp.transpose(n)
jnp.transpose(n, (1, -1, 0))
jnp.permute_dims(n, (2, 0, 1))
jnp.matrix_transpose(n)
jnp.moveaxis(n, 0, -1)
jnp.moveaxis(n, (0, 1), (-1, 0))
jnp.rollaxis(n, 2)
jnp.rollaxis(n, 0, 3)
jnp.rollaxis(n, -1, 1)
jnp.swapaxes(n, 0, -1)
jnp.squeeze(n[:, :1, :1])
jnp.squeeze(n[:, :1], 1)
jnp.expand_dims(n, 1)
jnp.expand_dims(v, (0, -1))
jnp.broadcast_to(m[:, :1], (4, 2, 3))
jnp.broadcast_arrays(m, v[:3], 2)
jnp.atleast_1d(2), jnp.atleast_2d(v), jnp.atleast_3d(m)
jnp.atleast_2d(v, 3)
jnp.flip(n), jnp.flip(n, 1), jnp.flip(n, (0, -1)), jnp.fliplr(n), jnp.flipud(n)
jnp.rot90(m), jnp.rot90(m, 2), jnp.rot90(m, -1), jnp.rot90(n, 1, (1, 2)), jnp.rot90(n, 3, (2, 0)), jnp.rot90(m, 4)
jnp.concatenate([m, m]), jnp.concatenate([m, m], -1), jnp.concatenate([m, v], None), jnp.concatenate(m)
jnp.concat([v, v])
jnp.stack([m, 2 * m]), jnp.stack([m, 2 * m], 1), jnp.stack([m, 2 * m], -1), jnp.stack(m, 1)
jnp.vstack([v, v]), jnp.hstack([v, v]), jnp.hstack([m, m]), jnp.dstack([m, m]), jnp.dstack([v, v])
jnp.column_stack([v, v]), jnp.column_stack([m, v[:2]])
jnp.block([m, m]), jnp.block([[m, m], [m, m]]), jnp.block([[[m]], [[m]]]), jnp.block([[1, 2], [3, 4]])
jnp.append(m, v), jnp.append(m, m, 0), jnp.append(v, 7)
jnp.split(v, [1, 3]), jnp.split(n, 2, -1), jnp.array_split(v, 3), jnp.array_split(v, 7), jnp.split(v, [0, 5])
jnp.vsplit(n, 2), jnp.hsplit(n, [1]), jnp.dsplit(n, 2), jnp.hsplit(v, 5)
jnp.unstack(n), jnp.unstack(n, axis=-1)
jnp.tile(v, 2), jnp.tile(m, (2, 2)), jnp.tile(m, (2, 1, 1)), jnp.tile(n, 2), jnp.tile(v, 0)
jnp.repeat(v, 2), jnp.repeat(m, 2), jnp.repeat(m, 2, 0), jnp.repeat(m, 3, -1), jnp.repeat(v, 0), jnp.repeat(3, 4)
jnp.repeat(v, a([0, 1, 2, 3, 0])), jnp.repeat(m, a([2, 0]), 0)
jnp.roll(v, 2), jnp.roll(v, -7), jnp.roll(n, 1), jnp.roll(n, 1, 1), jnp.roll(n, (1, 2), (0, 2)), jnp.roll(n, 1, (0, 1))
jnp.roll(v, (1, 2)), jnp.roll(n, (1, 2), 1), jnp.roll(v[:0], 3)
jnp.insert(v, 1, 9), jnp.insert(v, -1, 9), jnp.insert(v, a([1, 3]), a([7, 8])), jnp.insert(m, 1, 9), jnp.insert(v, 5, 9)
jnp.insert(m, 1, 9, 0), jnp.insert(m, 1, a([7, 8]), 1), jnp.insert(m, a([0, 2]), a([[7, 8], [5, 6]]), 1)
jnp.insert(v, slice(1, 4, 2), 9), jnp.insert(v, a([3, 1]), a([30, 10]))
jnp.delete(v, 1), jnp.delete(v, -1), jnp.delete(v, a([1, 3])), jnp.delete(m, 1), jnp.delete(m, 1, 0)
jnp.delete(v, slice(None, None, 2)), jnp.delete(v, v > 3), jnp.delete(m, a([0, -1]), 1)
jnp.resize(v, (2, 4)), jnp.resize(v, 3), jnp.resize(v, (0,))
jnp.trim_zeros(a([0, 0, 1, 0, 2, 0])), jnp.trim_zeros(a([0, 0, 1, 0]), "f"), jnp.trim_zeros(a([0, 1, 0]), "b")
jnp.trim_zeros(a([0, 0]))
jnp.pad(v, 2), jnp.pad(v, (1, 0)), jnp.pad(m, ((1, 2), (0, 1))), jnp.pad(m, 1, constant_values=7)
jnp.pad(m, 1, constant_values=((1, 2), (3, 4))), jnp.pad(v, (2, 3), constant_values=(8, 9))
jnp.pad(m, (1, 2), "edge"), jnp.pad(v, 4, "reflect"), jnp.pad(v, (11, 9), "reflect"), jnp.pad(v, 4, "symmetric")
jnp.pad(v, (12, 3), "symmetric"), jnp.pad(v, (12, 3), "wrap"), jnp.pad(m, 2, "reflect"), jnp.pad(v[:1], 2, "reflect")
jnp.pad(v, 3, "reflect", reflect_type="odd"), jnp.pad(v, 3, "symmetric", reflect_type="odd")
jnp.pad(m, 2, "maximum"), jnp.pad(m, 1, "minimum", stat_length=2), jnp.pad(n, 1, "mean"), jnp.pad(n, 1, "median")
jnp.pad(n, ((0, 0), (2, 1), (0, 3)), "linear_ramp", end_values=5), jnp.pad(n[0], 3, "linear_ramp")
jnp.take(n, 2), jnp.take(n, a([1, -1]), axis=1), jnp.take(n, a([[0, 5], [7, 9]])), jnp.take(v, a([7, -8]), mode="wrap")
jnp.take(v, a([7, -8]), mode="clip"), jnp.take(m, a([9, -9, 1]), axis=1, mode="wrap")
jnp.take_along_axis(m, jnp.argsort(m, 1), 1), jnp.take_along_axis(m, a([[1], [0]]), 1)
jnp.take_along_axis(m, a([[1, 0, 1]]), 0), jnp.take_along_axis(m, a([5, 0]), None)
jnp.take_along_axis(n, a([[[1]]]), -1)
jnp.choose(a([1, 0, 2]), [v[:3], 10 * v[:3], 100 * v[:3]]), jnp.choose(a([[1], [0]]), [v, 0 * v])
jnp.choose(a([4, -1]), [v[:2], 10 * v[:2]], mode="wrap"), jnp.choose(a([4, -1]), [v[:2], 10 * v[:2]], mode="clip")
jnp.compress(v > 2, v), jnp.compress(a([True, False]), m, 0), jnp.compress(a([0, 1, 1]), m, axis=1)
jnp.compress(a([0, 1, 1]), m)
jnp.extract(m > 1, m)
jnp.apply_along_axis(jnp.sort, 0, m), jnp.apply_along_axis(lambda r: r.sum(), 1, n)
jnp.apply_along_axis(jnp.diff, -1, n), jnp.apply_along_axis(lambda r: jnp.outer(r, r), 1, n)
jnp.apply_over_axes(jnp.sum, n, [0, 2])
jnp.apply_over_axes(jnp.sum, n, 1)
jnp.packbits(v > 1), jnp.packbits(m, axis=1), jnp.packbits(v, bitorder="little")
jnp.unpackbits(b), jnp.unpackbits(b, bitorder="little"), jnp.unpackbits(b, count=11), jnp.unpackbits(b, count=-3)
jnp.unpackbits(b[None], axis=0), jnp.unpackbits(b[:, None], axis=1, count=6)
jnp.ix_(a([0, 2]), a([1, 0, 1]))
jnp.unravel_index(a([5, 11, 0]), (3, 4)), jnp.ravel_multi_index((a([1, 2]), a([3, 0])), (3, 4))
jnp.ravel_multi_index((a([1, 5]), a([3, -1])), (3, 4), mode="clip")
jnp.ravel_multi_index((a([1, 5]), a([3, -1])), (3, 4), mode="wrap")
jnp.ravel_multi_index((a([1, 2]), a([3, 0])), (3, 4), order="F")
jnp.mgrid[0:3, 1:7:2], jnp.ogrid[0:3, 1:7:2], jnp.mgrid[0:1:5j], jnp.mgrid[0:4]
jnp.r_[1:4, 0, v], jnp.r_["0,2", v, v], jnp.c_[v, v], jnp.r_["-1", m, m], jnp.r_["1,2,0", v, v], jnp.r_[0:1:3j]
jnp.mask_indices(3, jnp.triu, 1)
jnp.shape(n), jnp.shape([1, 2]), jnp.ndim(n), jnp.size(n), jnp.size(n, 1), jnp.size(2)
jnp.broadcast_shapes((2, 1), (3,), ())
""".strip().splitlines()


def names(module, array):
    return {
        "jnp": module,
        "a": array,
        "n": array(N),
        "v": array(V),
        "m": array(M),
        "b": array(np.array([5, 255, 16], np.uint8)),
    }


@pytest.mark.parametrize("text", CASES)
def test_as_numpy(text):
    assert_same(eval(text, names(jnp, jnp.asarray)), eval(text, names(np, np.asarray)))


STATIC = (
    "a([",
    "trim_zeros",
    "delete(v, v",
    "extract",
    "compress(v",
    "mask_indices",
    "shape",
    "grid",
    "_[",
    "packbits(v >",
)


@pytest.mark.parametrize("text", [t for t in CASES if not any(s in t for s in STATIC)])
def test_compiled_as_eager(text):
    given = names(jnp, jnp.asarray)

    def f(n, v, m, b):
        return eval(text, {**given, "n": n, "v": v, "m": m, "b": b})

    assert_same(gradix.jit(f)(N, V, M, given["b"]), eval(text, given))


def test_traced_amounts():
    assert_same(gradix.jit(lambda s: jnp.roll(jnp.asarray(V), s))(3), np.roll(V, 3))
    assert_same(gradix.jit(lambda s: jnp.roll(jnp.asarray(N), (s, 1), (1, 2)))(-4), np.roll(N, (-4, 1), (1, 2)))
    repeat = gradix.jit(lambda r: jnp.repeat(jnp.asarray(V), r, total_repeat_length=6))
    assert_same(repeat(np.array([0, 2, 1, 0, 3])), np.repeat(V, [0, 2, 1, 0, 3]))
    assert_same(repeat(np.array([0, 2, 0, 1, 0])), [1, 1, 1, 1, 1, 5][:3] + [5, 5, 5])
    assert_same(repeat(np.array([3, 3, 3, 3, 3])), [3, 3, 3, 1, 1, 1])
    with pytest.raises(ConcretizationTypeError, match="total_repeat_length"):
        gradix.jit(lambda r: jnp.repeat(V, r))(np.array([1, 1, 1, 1, 1]))
    assert_same(gradix.jit(lambda i: jnp.delete(jnp.asarray(V), i))(-2), np.delete(V, -2))
    assert_same(
        gradix.jit(lambda i: jnp.delete(jnp.asarray(V), i, assume_unique_indices=True))(np.array([3, 0])), [1, 4, 5]
    )
    assert_same(gradix.jit(lambda c: jnp.compress(c, jnp.asarray(V), size=4, fill_value=-1))(V > 1), [3, 4, 5, -1])


@pytest.mark.x32
def test_put_and_its_like_return_new_arrays():
    m, i = jnp.asarray(M), jnp.array([0, -1])
    assert_same(jnp.put(m, i, jnp.array([8, 9]), inplace=False), [[8, 5, 2], [7, 0, 9]])
    assert_same(jnp.put(m, jnp.array([1, 3, 4]), jnp.array([8, 9]), inplace=False), [[1, 8, 2], [9, 8, 9]])
    assert_same(jnp.put(m, jnp.array([20]), 4, inplace=False), [[1, 5, 2], [7, 0, 4]])
    assert_same(jnp.put(m, jnp.array([7]), 4, mode="wrap", inplace=False), [[1, 4, 2], [7, 0, 9]])
    assert_same(jnp.put_along_axis(m, jnp.array([[2], [0]]), 4, 1, inplace=False), [[1, 5, 4], [4, 0, 9]])
    assert_same(jnp.place(m, m > 4, jnp.array([10, 20]), inplace=False), [[1, 10, 2], [20, 0, 10]])
    assert_same(jnp.fill_diagonal(m, 4, inplace=False), [[4, 5, 2], [7, 4, 9]])
    assert_same(jnp.fill_diagonal(m, jnp.array([3, 4]), inplace=False), [[3, 5, 2], [7, 4, 9]])
    for f in (
        lambda: jnp.put(m, i, 1),
        lambda: jnp.place(m, m > 1, i),
        lambda: jnp.put_along_axis(m, i[:, None], 1, 1),
    ):
        with pytest.raises(ValueError, match="inplace=False"):
            f()


def test_padding_by_a_function_and_by_traced_values():
    def edges(row, widths, axis, kwargs):
        return row.at[: widths[0]].set(kwargs["value"]).at[-widths[1] :].set(axis)

    assert_same(
        jnp.pad(jnp.asarray(M), ((1, 1), (1, 2)), edges, value=7),
        [[7, 7, 7, 7, 1, 1], [7, 1, 5, 2, 1, 1], [7, 7, 0, 9, 1, 1], [7, 0, 0, 0, 1, 1]],
    )
    assert_same(gradix.jit(lambda c: jnp.pad(jnp.asarray(V), 1, constant_values=c))(6), np.pad(V, 1, constant_values=6))
    assert_same(gradix.grad(lambda x: (jnp.pad(x, 1, "edge") ** 2).sum())(jnp.array([1.0, 2.0])), [4, 8])


@pytest.mark.parametrize(
    "shape, widths",
    [
        ((40, 150), 2),
        ((40, 150), ((0, 3), (5, 0))),
        ((40, 150), ((39, 40), (149, 150))),
        ((40, 150), ((90, 1), (1, 310))),
        ((5000,), (4999, 5000)),
        ((1, 5000), 3),
        ((2, 3, 1000), ((1, 2), (3, 2), (0, 1))),
        ((2, 3), ((1, 0), (0, 2))),
        ((1, 1), 1),
    ],
)
@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_padding_by_parts(mode, shape, widths):
    """Parts are copied whole, unless the padding is longer than what there is to copy."""
    x = np.random.default_rng(0).integers(0, 99, shape).astype(np.float32)
    f = gradix.jit(lambda x: jnp.pad(x, widths, mode))
    want = np.pad(x, widths, mode)
    assert_same(f(x), want)
    assert_same(jnp.pad(jnp.asarray(x), widths, mode), want)
    source = np.pad(np.arange(x.size).reshape(shape), widths, mode)
    assert_same(
        gradix.grad(lambda x: f(x).sum())(jnp.asarray(x)),
        np.bincount(source.reshape(-1), minlength=x.size).reshape(shape),
    )


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_small_arrays_are_padded_without_gathering(mode):
    """A gather of a few places takes longer than a copy, and its derivative scatters."""
    program = gradix.make_jaxpr(gradix.value_and_grad(lambda x: jnp.pad(x, 1, mode).sum()))(np.ones((8, 8)))
    assert "gather" not in str(program) and "scatter" not in str(program)
    assert "concatenate" in str(program)


@pytest.mark.x32
def test_take_fills_out_of_bounds():
    x = jnp.arange(3.0)
    assert_same(jnp.take(x, jnp.array([2, 3, -3, -4])), [2, np.nan, 0, np.nan])
    assert_same(jnp.take(x, jnp.array([3]), fill_value=7), [7])
    assert_same(gradix.jit(jnp.take)(x, jnp.array([3])), [np.nan])
    assert int(jnp.take(jnp.arange(3), 9)) == -(2**31)
    assert_same(jnp.take_along_axis(x, jnp.array([5, 1]), 0), [np.nan, 1])


WRONG = [
    (lambda: jnp.reshape(N, (5, 5)), TypeError, r"shape \(2, 3, 4\) \(size 24\)"),
    (lambda: jnp.reshape(N, (-1, -1)), TypeError, "-1"),
    (lambda: jnp.reshape(N, 24, order="A"), NotImplementedError, "order"),
    (lambda: jnp.reshape([1, 2], (2,)), TypeError, "list"),
    (lambda: jnp.squeeze(N, 0), ValueError, "not equal to one"),
    (lambda: jnp.swapaxes(N, 0, 3), ValueError, "out of bounds"),
    (lambda: jnp.moveaxis(N, (0, 1), 0), ValueError, "same number of axes"),
    (lambda: jnp.matrix_transpose(V), ValueError, "at least two axes"),
    (lambda: jnp.broadcast_to(M, (3, 2)), ValueError, "Incompatible shapes"),
    (lambda: jnp.broadcast_to(N, (4,)), ValueError, "has more axes than"),
    (lambda: jnp.concatenate([]), ValueError, "at least one"),
    (lambda: jnp.concatenate([1, 2]), ValueError, "are scalars"),
    (lambda: jnp.concatenate([M, M[:, :2]]), TypeError, "differ in dimensions"),
    (lambda: jnp.concatenate(x for x in [M]), TypeError, "sequence"),
    (lambda: jnp.stack([M, V]), ValueError, "same shape"),
    (lambda: jnp.stack([]), ValueError, "at least one"),
    (lambda: jnp.block([[M], M]), ValueError, "depth"),
    (lambda: jnp.block((M, M)), ValueError, "tuples"),
    (lambda: jnp.split(V, 2), ValueError, "does not divide into"),
    (lambda: jnp.split(V, [3, 2]), ValueError, "ascend"),
    (lambda: jnp.tile(V, -1), ValueError, "negative"),
    (lambda: jnp.repeat(V, 1.5), TypeError, "integers"),
    (lambda: jnp.repeat(V, jnp.array([1, 2])), ValueError, "each of the 5"),
    (lambda: jnp.roll(V, 1.5), TypeError, "integers"),
    (lambda: jnp.roll(N, (1, 2, 3), (0, 1)), ValueError, "3 shifts and 2 axes"),
    (lambda: jnp.delete(V, 9), ValueError, "out of bounds"),
    (lambda: jnp.delete(V, jnp.array([9])), IndexError, "out of bounds"),
    (lambda: jnp.insert(V, [1], 2), TypeError, "list"),
    (lambda: jnp.pad(V, -1), ValueError, "negative"),
    (lambda: jnp.pad(V, (1, 2, 3)), ValueError, "has shape"),
    (lambda: jnp.pad(V, 1, "edge", constant_values=2), ValueError, "constant_values"),
    (lambda: jnp.pad(V, 1, "unknown"), NotImplementedError, "unknown"),
    (lambda: jnp.pad(V[:0], 1, "edge"), ValueError, "empty axis"),
    (lambda: jnp.pad(V, 1.5), TypeError, "must hold integers"),
    (lambda: jnp.take(V, 1.0), ValueError, "integer"),
    (lambda: jnp.take(V, 1, mode="raise"), NotImplementedError, "raise"),
    (lambda: jnp.take(V[:0], 0), IndexError, "has no elements"),
    (lambda: jnp.take_along_axis(M, V, 0), ValueError, "same rank"),
    (lambda: jnp.take_along_axis(M, M + 0.5, 0), TypeError, "integer"),
    (
        lambda: jnp.choose(jnp.array([0, 5]), [V[:2], V[:2]]),
        ValueError,
        "invalid entry in choice array: .* from 0 to 1",
    ),
    (lambda: jnp.compress(jnp.array([0, 0, 1]), V[:2]), ValueError, "out of bounds"),
    (lambda: jnp.unpackbits(V), TypeError, "must be of uint8"),
    (lambda: jnp.ravel_multi_index((jnp.array([5]), jnp.array([0])), (3, 4)), ValueError, "out of bounds"),
    (lambda: gradix.jit(lambda c: jnp.choose(c, [V, V]))(V), ConcretizationTypeError, "clip"),
]


@pytest.mark.parametrize("f,error,text", WRONG)
def test_misuse(f, error, text):
    with pytest.raises(error, match=text):
        f()


@pytest.mark.parametrize("values", [0, np.ones(3), np.ones((2, 0))])
def test_a_padded_scalar_stays_as_it_is(values):
    padded = jnp.pad(0.5, 1, constant_values=values)
    assert padded.shape == () and padded.weak_type and padded == 0.5


@pytest.mark.parametrize("directive", ["-1", "0", "1", "0,2", "1,2", "0,2,0", "1,2,0", "0,4,-1", "r", "c"])
@pytest.mark.parametrize("of_rank", [1, 2])
def test_directives_of_concatenators(directive, of_rank):
    """A directive replaces what it names, and leaves the rest as r_ and c_ have it."""
    x = np.arange(3.0) if of_rank == 1 else np.arange(6.0).reshape(2, 3)
    for want_of, got_of in ((np.r_, jnp.r_), (np.c_, jnp.c_)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)  # of NumPy's matrices
            try:
                want = np.asarray(want_of[directive, x, 2 * x])
            except ValueError:
                continue
        np.testing.assert_array_equal(got_of[directive, x, 2 * x], want)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_put_treats_integers_out_of_bounds_as_numpy(mode, dtype):
    indices, values = np.array([-2, 9, 1]).astype(dtype), np.array([10, 20, 30])
    want = np.arange(6)
    np.put(want, indices, values, mode)
    put = lambda a, i: jnp.put(a, i, values, mode, inplace=False)
    for f in (put, gradix.jit(put)):
        assert f(jnp.arange(6), jnp.asarray(indices)).tolist() == want.tolist()
