"""What `Ragged` is made of and takes: parts that fit together, and texts for those that do not."""

import copy
import pickle

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

ROWS = [[3.0, -1.0, 4.0], [], [1.0, 2.0]]
BUFFER = np.arange(6.0).reshape(2, 3)
Ragged = gradix.Ragged


def lists(r):
    return [v.tolist() for v in r.to_list()]


WRONG = {
    "count beyond the buffer": (
        lambda: Ragged(BUFFER, [1, 4]),
        ValueError,
        "count of row 1 is 4, but must be from 0 to 3",
    ),
    "negative count": (lambda: Ragged(BUFFER, np.array([-1, 2])), ValueError, "count of row 0 is -1"),
    "count of 64 bits": (lambda: Ragged(BUFFER, np.array([2**40, 1])), ValueError, "is 1099511627776"),
    "counts on a device": (lambda: Ragged(jnp.asarray(BUFFER), jnp.array([9, 1])), ValueError, "row 0 is 9"),
    "floats as counts": (lambda: Ragged(BUFFER, np.array([1.0, 2.0])), TypeError, "must be integers, got float64"),
    "booleans as counts": (lambda: Ragged(BUFFER, [True, False]), TypeError, "must be integers, got bool"),
    "strings as counts": (lambda: Ragged(BUFFER, ["a", "b"]), TypeError, "must be integers"),
    "too many counts": (lambda: Ragged(BUFFER, [1, 2, 3]), ValueError, r"\(2, 3\) and counts of shape \(3,\)"),
    "one count": (lambda: Ragged(BUFFER, 2), TypeError, "counts must be an array, got 2"),
    "no counts": (lambda: Ragged(BUFFER, None), TypeError, "counts must be an array, got None"),
    "buffer of a row": (lambda: Ragged(np.arange(3.0), [1, 2, 3]), ValueError, "do not fit together"),
    "too many axes": (lambda: Ragged(BUFFER, [1, 2], 3), ValueError, "do not fit together"),
    "no axes": (lambda: Ragged(BUFFER, [1, 2], 0), ValueError, "axes must be a number from 1"),
    "equal axes": (lambda: Ragged(np.ones((2, 3, 3)), [[1, 1], [2, 2]], (0, 0)), ValueError, "without repetition"),
    "axes by name": (lambda: Ragged(BUFFER, [1, 2], "i"), TypeError, "axes must be a number"),
    "missing column": (lambda: Ragged(np.ones((2, 3, 3)), [[1], [2]], (0, 1)), ValueError, "a column for each"),
    "floats as traced counts": (
        lambda: gradix.jit(lambda n: Ragged(jnp.ones((2, 3)), n / 2).values)(jnp.array([1, 2])),
        TypeError,
        "must be integers, got float32",
    ),
    "no rows": (lambda: Ragged.of(5), TypeError, "sequence of rows, got 5"),
    "a vector of numbers": (lambda: Ragged.of([1, 2]), ValueError, "each row must be a sequence"),
    "None among rows": (lambda: Ragged.of([[1], None]), TypeError, "in the row None"),
    "rows of strings": (lambda: Ragged.of([["a", "b"]]), TypeError, "numbers and booleans"),
    "rows of rows": (lambda: Ragged.of([[[1, 2], [3]]]), ValueError, "elements of a row have different shapes"),
    "empty rows of other elements": (lambda: Ragged.of([np.ones((2, 3)), np.ones((0, 4))]), ValueError, "one shape"),
    "large integers": (lambda: Ragged.of([[2**40]]), OverflowError, "too large"),
    "masked arrays": (lambda: Ragged.of([np.ma.array([1, 2], mask=[0, 1])]), ValueError, "masks would be lost"),
    "bound of a float": (lambda: Ragged.of([[1]], bound=2.0), TypeError, "bound must be an integer, got 2.0"),
    "traced rows beyond the bound": (
        lambda: gradix.jit(lambda x: Ragged.of([x[x > 0]], bound=2))(jnp.ones(3)),
        ValueError,
        "bound=2 is less than",
    ),
    "floats as offsets": (lambda: Ragged.from_offsets([1.0], [0.0, 1.0]), TypeError, "offsets must be integers"),
    "no offsets": (lambda: Ragged.from_offsets([1.0], []), ValueError, "one number more"),
    "offsets of a number": (lambda: Ragged.from_offsets(np.float32(1), [0, 1]), ValueError, "axis of elements"),
    "row beyond": (lambda: Ragged.of(ROWS)[3], IndexError, "row 3 is out of range for a Ragged of 3 rows"),
    "an element": (lambda: Ragged.of(ROWS)[0, 1], TypeError, r"rows\[i\]\[j\]"),
    "a boolean index": (lambda: Ragged.of(ROWS)[True], TypeError, "got True"),
    "an element in rows": (lambda: 3.0 in Ragged.of(ROWS), TypeError, "is no array"),
    "comparison": (lambda: Ragged.of(ROWS) == Ragged.of(ROWS), TypeError, "not compared by =="),
    "function of arrays": (lambda: jnp.sin(Ragged.of(ROWS)), TypeError, "rows.values"),
    "another axis for vmap": (
        lambda: gradix.vmap(jnp.sum, in_axes=-1)(Ragged.of(ROWS)),
        ValueError,
        "in_axes=0, or None",
    ),
    "Jacobian": (lambda: gradix.jacrev(lambda r: r.map(jnp.sum))(Ragged.of(ROWS)), TypeError, "rows.buffer"),
    "tree.map to floats": (
        lambda: gradix.tree.map(lambda x: x * 0.5, Ragged.of(ROWS)),
        TypeError,
        "tree.map maps the counts",
    ),
    "tree.map to large counts": (
        lambda: gradix.tree.map(lambda x: x * 2, Ragged.of(ROWS)).to_list(),
        ValueError,
        "count of row 0 is 6",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_says_why(name):
    f, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        f()


def test_parts_become_arrays_and_others_stand_in_their_places():
    r = Ragged([[1.0, 2.0], [3.0, 4.0]], [1, 2])
    assert lists(r) == [[1], [3, 4]] and isinstance(r.buffer, gradix.Array) and r.counts.dtype == np.int32
    spec = gradix.ShapeDtypeStruct((2, 2), jnp.float32), gradix.ShapeDtypeStruct((2,), jnp.int32)
    assert Ragged(*spec).buffer is spec[0] and Ragged(0, None).counts is None and repr(Ragged(1, 2, 2))
    out = gradix.jit(lambda r: r.map(lambda v: v * 2)).lower(Ragged(*spec)).compile()(r)
    assert lists(out) == [[2], [6, 8]]
    # counts that are beyond the buffer are shown, as no row has as many elements
    assert "[6 0 4]" in repr(gradix.tree.map(lambda x: x * 2, Ragged.of(ROWS)))


@pytest.mark.promotes
@pytest.mark.parametrize(
    "rows, dtype",
    [
        ([[1], [2.5], [True]], "float32"),
        ([[], [1, 2]], "int32"),
        ([np.zeros(0, np.int8), []], "int8"),
        ([jnp.ones(2, jnp.bfloat16), jnp.ones(3, jnp.float16)], "float32"),
        ([[1j], [2.0]], "complex64"),
        ([[np.nan, np.inf], [-0.0]], "float32"),
    ],
)
def test_rows_of_several_types(rows, dtype):
    r = Ragged.of(rows)
    assert r.dtype == dtype
    for have, want in zip(r.to_list(), rows, strict=True):
        np.testing.assert_array_equal(have, np.asarray(want, dtype))


@pytest.mark.promotes
def test_traced_rows():
    x = jnp.array([3.0, -1.0, 4.0])
    f = gradix.jit(lambda x: Ragged.of([x[x > 0], x, [7], x[:0]]))
    assert lists(f(x)) == [[3, 4], [3, -1, 4], [7], []]
    slope = gradix.jit(gradix.grad(lambda x: Ragged.of([x[x > 0], x]).map(lambda v: (v * v).sum()).sum()))(x)
    np.testing.assert_allclose(slope, [12, -2, 16])
    table = jnp.array([[1.0, 2.0], [-1.0, 3.0]])
    assert lists(gradix.jit(lambda x: Ragged.of([x[x[:, 0] > 0], x], bound=3))(table)) == [[[1, 2]], table.tolist()]
    g = gradix.jit(lambda v, at: Ragged.from_offsets(v, at))
    assert lists(g(jnp.arange(5), jnp.array([0, 2, 2, 5]))) == [[0, 1], [], [2, 3, 4]]
    assert lists(gradix.jit(lambda v: Ragged.from_offsets(v, [1, 2, 4]))(jnp.arange(5))) == [[1], [2, 3]]


def test_no_rows_and_rows_of_no_elements():
    for r in (Ragged.of([]), Ragged.of([], bound=3), Ragged.of([[], []]), Ragged.from_offsets([1.0], [0])):
        n = len(r)
        for run in (gradix.vmap, lambda f: gradix.jit(gradix.vmap(f))):
            np.testing.assert_array_equal(run(jnp.sum)(r), np.zeros(n))
            assert lists(run(lambda v: jnp.sort(v[v > 0]))(r)) == [[]] * n
        assert lists(gradix.grad(lambda r: r.map(jnp.sum).sum())(r)) == [[]] * n
        assert r.values.shape == (0,) and r.offsets.tolist() == [0] * (n + 1) and r.segment_ids.shape == (0,)


def test_copies_and_files():
    r = Ragged.of(ROWS)
    for other in (pickle.loads(pickle.dumps(r)), copy.copy(r), copy.deepcopy(r), gradix.device_put(r)):
        assert lists(other) == ROWS and type(other) is Ragged
    assert r != None and (r == None) is False  # noqa: E711
    assert bool(r) and not Ragged.of([])


def test_tangents_are_rows_of_the_same_lengths():
    r = Ragged.of(ROWS)
    f = lambda r: (r.map(jnp.sin), r.map(lambda v: (v * v).sum()))  # noqa: E731
    cosines = [np.cos(v) * v for v in r.to_list()]
    (_, along), push = gradix.jvp(f, (r,), (r,)), gradix.linearize(f, r)[1]
    for rows, sums in (along, push(r), gradix.jit(lambda r: gradix.jvp(f, (r,), (r,))[1])(r)):
        for have, want in zip(rows.to_list(), cosines, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5)
        np.testing.assert_allclose(sums, [2 * (v * v).sum() for v in r.to_list()], rtol=1e-6)
    x = jnp.array([[3.0, -1.0, 4.0]])
    assert lists(gradix.jvp(gradix.vmap(lambda v: v[v > 0] ** 2), (x,), (x,))[1]) == [[18, 32]]


def test_rules_of_functions_of_rows():
    r = Ragged.of(ROWS)
    forward = gradix.custom_jvp(lambda r: r.map(jnp.sum))
    forward.defjvp(lambda p, t: (forward(p[0]), t[0].map(lambda v: 3 * v.sum())))
    assert lists(gradix.grad(lambda r: forward(r).sum())(r)) == [[3, 3, 3], [], [3, 3]]
    backward = gradix.custom_vjp(lambda r: r.map(lambda v: 2 * v))
    backward.defvjp(lambda r: (backward(r), r.counts), lambda n, ct: (Ragged(ct.buffer * 5, n),))
    total = lambda r: backward(r).map(jnp.sum).sum()  # noqa: E731
    assert lists(gradix.grad(total)(r)) == [[5, 5, 5], [], [5, 5]]
