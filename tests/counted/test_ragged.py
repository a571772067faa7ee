"""`Ragged`, rows of different lengths, and `vmap` of functions with results of different sizes."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

ROWS = [[3.0, -1.0, 4.0], [], [1.0, 2.0]]
X = np.array([[3.0, -1.0, 4.0], [-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]], np.float32)


def lists(r):
    return [np.asarray(v).tolist() for v in r]


def test_as_a_sequence():
    r = gradix.Ragged.of(ROWS)
    assert len(r) == 3 and r.shape == (3, None) and r.dtype == np.float32
    assert lists(r) == ROWS == [v.tolist() for v in r.to_list()] and lists(r[1:]) == ROWS[1:]
    assert np.asarray(r[-1]).tolist() == [1, 2]
    assert np.asarray(r.values).tolist() == [3, -1, 4, 1, 2]
    assert np.asarray(r.offsets).tolist() == [0, 3, 3, 5] and np.asarray(r.segment_ids).tolist() == [0, 0, 0, 2, 2]
    assert repr(r) == "Ragged([[3.0, -1.0, 4.0], [], [1.0, 2.0]], dtype=float32)"
    assert lists(gradix.Ragged.from_offsets(r.values, r.offsets)) == ROWS
    assert lists(gradix.Ragged.of([])) == [] and gradix.Ragged.of([[1], [2, 3]], bound=7).buffer.shape == (2, 7)
    with pytest.raises(IndexError):
        r[3]


def test_rows_with_elements_of_a_shape():
    rows = [np.ones((2, 3), np.float32), np.zeros((0, 3), np.float32), np.full((1, 3), 2.0, np.float32)]
    r = gradix.Ragged.of(rows)
    assert r.shape == (3, None, 3)
    np.testing.assert_allclose(gradix.vmap(lambda v: v.sum(0))(r), [[2] * 3, [0] * 3, [2] * 3])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: gradix.Ragged.of([[1], [[2]]]), "one shape"),
        (lambda: gradix.Ragged.of([[1, 2]], bound=1), "bound=1"),
        (lambda: gradix.Ragged.from_offsets([1, 2], [0, 3]), "offsets"),
        (lambda: gradix.Ragged.from_offsets([1, 2], [1, 0]), "decrease"),
    ],
)
def test_wrong_rows(make, words):
    with pytest.raises(ValueError, match=words):
        make()


FUNCTIONS = {
    "sum": jnp.sum,
    "mean of more": lambda r: jnp.sum(r) / (r.shape[0] + 1),
    "softmax": lambda r: (gradix.nn.softmax(r) * r).sum(),
    "attention": lambda r: (gradix.nn.softmax(jnp.outer(r, r), -1) @ jnp.sin(r)).sum(),
    "sorted": lambda r: (jnp.sort(r) * jnp.arange(r.shape[0])).sum(),
    "masked": lambda r: r[r > 1.5].sum(),
    "size": lambda r: jnp.asarray(r.shape[0]) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_maps_over_rows(name):
    f = FUNCTIONS[name]
    r = gradix.Ragged.of(ROWS)
    want = [f(jnp.asarray(row, jnp.float32)) for row in ROWS]
    for g in (gradix.vmap(f), gradix.jit(gradix.vmap(f)), gradix.vmap(gradix.jit(f))):
        np.testing.assert_allclose(g(r), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "size"])
def test_gradients_with_respect_to_rows(name):
    f, r = FUNCTIONS[name], gradix.Ragged.of(ROWS)
    total = lambda b: gradix.vmap(f)(gradix.Ragged(b, r.counts)).sum()  # noqa: E731
    want = np.zeros((3, 3), np.float32)
    for i, row in enumerate(ROWS):
        want[i, : len(row)] = gradix.grad(lambda v: f(v) * 1.0)(jnp.asarray(row, jnp.float32))
    for g in (gradix.grad(total), gradix.jit(gradix.grad(total))):
        np.testing.assert_allclose(g(r.buffer), want, rtol=1e-5, atol=1e-6)


def test_results_of_different_sizes():
    f = lambda r: r[r > 0]  # noqa: E731
    for g in (gradix.vmap(f), gradix.jit(gradix.vmap(f)), gradix.vmap(gradix.jit(f))):
        assert lists(g(jnp.asarray(X))) == [[3, 4], [], [1, 2, 3]]
    both = gradix.vmap(lambda r: (jnp.unique(r), r.sum(), r[r > 0][1:]))(jnp.asarray(X))
    assert lists(both[0]) == [sorted(r) for r in X.tolist()] and lists(both[2]) == [[4], [], [2, 3]]
    np.testing.assert_allclose(both[1], X.sum(1))
    assert lists(gradix.Ragged.of(ROWS).map(f)) == [[3, 4], [], [1, 2]]


def test_derivatives_of_mapped_functions():
    f = lambda r: jnp.log(r[r > 0]).sum()  # noqa: E731
    want = np.where(X > 0, 1 / X, 0)
    total = lambda X: gradix.vmap(f)(X).sum()  # noqa: E731
    for g in (
        gradix.vmap(gradix.grad(f)),
        gradix.grad(total),
        gradix.jit(gradix.grad(total)),
        gradix.grad(gradix.jit(total)),
        gradix.vmap(gradix.jit(gradix.grad(f))),
    ):
        np.testing.assert_allclose(g(jnp.asarray(X)), want, rtol=1e-5)
    np.testing.assert_allclose(
        gradix.hessian(total)(jnp.asarray(X)).sum((0, 1)), np.where(X > 0, -1 / X**2, 0), rtol=1e-5
    )
    # an argument that all examples share gets the sum of their derivatives
    shared = gradix.grad(lambda w: gradix.vmap(lambda r, w: (r[r > 0] * w).sum(), (0, None))(jnp.asarray(X), w).sum())
    np.testing.assert_allclose(shared(2.0), X[X > 0].sum(), rtol=1e-6)


def test_maps_over_maps():
    a = jnp.stack([jnp.asarray(X), -jnp.asarray(X)])
    f = gradix.vmap(gradix.vmap(lambda r: r[r > 0].sum()))
    np.testing.assert_allclose(f(a), np.where(a > 0, a, 0).sum(-1))
    np.testing.assert_allclose(gradix.jit(f)(a), np.where(a > 0, a, 0).sum(-1))
    np.testing.assert_allclose(gradix.vmap(lambda r: r[r > 0].sum(), 1)(jnp.asarray(X)), np.where(X > 0, X, 0).sum(0))
    assert gradix.vmap(lambda r: r[r > 0].sum())(jnp.zeros((0, 3))).shape == (0,)


def test_through_jit():
    r = gradix.Ragged.of(ROWS)
    assert float(gradix.jit(lambda r: r.values.sum())(r)) == 9
    assert lists(gradix.jit(lambda r: r.map(lambda v: v * 2))(r)) == [[6, -2, 8], [], [2, 4]]
    assert np.asarray(gradix.jit(lambda r, i: r[i])(r, 2)).tolist() == [1, 2]


SQUARES = {
    "outer": lambda v: jnp.outer(v, v),
    "of more axes": lambda v: jnp.einsum("i,j,k->ijk", v, v, jnp.ones(2)),
    "cubes": lambda v: jnp.einsum("i,j,k->ijk", v, v, v),
    "solved": lambda v: jnp.linalg.inv(jnp.outer(v, v) + 3 * jnp.eye(v.shape[0])),
}


@pytest.mark.parametrize("name", SQUARES)
def test_rows_of_several_axes_of_one_length(name):
    f = SQUARES[name]
    x = jnp.asarray(X)
    want = [np.asarray(f(r[r > 0])) for r in x]
    whole = lambda r: f(r[r > 0])  # noqa: E731
    for g in (gradix.vmap(whole), gradix.jit(gradix.vmap(whole))):
        have = g(x)
        assert have.axes == (3 if name == "cubes" else 2) and have.shape[1 : 1 + have.axes] == (None,) * have.axes
        for a, b in zip(have.to_list(), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_allclose(
        have.values, np.concatenate([w.reshape(-1, *w.shape[have.axes :]) for w in want]), rtol=1e-5
    )
    np.testing.assert_array_equal(np.diff(have.offsets), np.bincount(have.segment_ids, minlength=len(want)))
    np.testing.assert_allclose(have[1], want[1], rtol=1e-5)
    assert gradix.jit(lambda r, i: r[i])(have, 1).shape == want[1].shape
    np.testing.assert_allclose(gradix.vmap(jnp.sum)(have), [w.sum() for w in want], rtol=1e-5)
    square = lambda r: (r @ r if r.ndim == 2 else jnp.sin(r)).sum()  # noqa: E731
    np.testing.assert_allclose(gradix.jit(gradix.vmap(square))(have), [square(jnp.asarray(w)) for w in want], rtol=1e-4)
    slope = gradix.grad(lambda r: gradix.vmap(lambda v: (v**3).sum())(r).sum())(have)
    assert slope.axes == have.axes
    for a, b in zip(slope.to_list(), want, strict=True):
        np.testing.assert_allclose(a, 3 * b**2, rtol=1e-4)
    through = gradix.grad(lambda x: gradix.vmap(jnp.sum)(gradix.vmap(whole)(x)).sum())(x)
    np.testing.assert_allclose(
        through, gradix.grad(lambda x: sum(f(r[r > 0]).sum() for r in x))(x), rtol=1e-4, atol=1e-6
    )
    first = have[:1]
    assert first.axes == have.axes and len(gradix.tree.leaves(have)) == 2
    assert repr(gradix.Ragged(1, 2, 2)) == "Ragged(1, 2, axes=2)"


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda: gradix.vmap(lambda r: r[r > 0], axis_name="i")(jnp.asarray(X)), "axis_name"),
        (lambda: gradix.vmap(lambda r: r[r > 0], out_axes=1)(jnp.asarray(X)), "out_axes=0"),
    ],
)
def test_what_cannot_be_mapped(f, words):
    with pytest.raises(NotImplementedError, match=words):
        f()


# -- loops, chunks and numbers beside rows ---------------------------------------------------------


def test_loops_take_rows_as_arrays():
    r = gradix.Ragged.of(ROWS)
    step = lambda c, v: (c + v[0].sum() * v[1], (v[0] ** 2).sum())  # noqa: E731
    weights = jnp.arange(1.0, 1 + len(ROWS))
    want = sum(sum(row) * float(w) for row, w in zip(ROWS, weights))
    squares = [sum(v * v for v in row) for row in ROWS]
    for run in (lax.scan, gradix.jit(lax.scan, static_argnums=0)):
        total, ys = run(step, 0.0, (r, weights))
        np.testing.assert_allclose(total, want, rtol=1e-6)
        np.testing.assert_allclose(ys, squares, rtol=1e-6)
    for size in (None, 2):
        np.testing.assert_allclose(lax.map(lambda v: (v**2).sum(), r, batch_size=size), squares, rtol=1e-6)
    slope = gradix.grad(lambda r: lax.scan(step, 0.0, (r, weights))[1].sum())(r)
    assert [a.tolist() for a in slope.to_list()] == [[2 * v for v in row] for row in ROWS]


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_of_examples_whose_sizes_differ(chunk):
    f = lambda r: (r[r > 0] ** 2).sum()  # noqa: E731
    x = jnp.asarray(np.concatenate([X, -X, X + 1]))
    np.testing.assert_allclose(gradix.vmap(f, chunk_size=chunk)(x), gradix.vmap(f)(x), rtol=1e-6)
    slope = gradix.jit(gradix.grad(lambda x: gradix.vmap(f, chunk_size=chunk)(x).sum()))(x)
    np.testing.assert_allclose(slope, np.where(x > 0, 2 * x, 0), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="Leave out chunk_size"):
        gradix.vmap(lambda r: r[r > 0], chunk_size=chunk)(x)


@pytest.mark.parametrize("w", [2, 2.0, np.float32(2), True])
def test_numbers_that_are_not_mapped_stay_numbers(w):
    r = gradix.Ragged.of(ROWS)
    seen = []

    def f(row, w):
        seen.append(type(w))
        return row * w

    have = gradix.vmap(f, (0, None))(r, w)
    assert lists(have) == [[v * float(w) for v in row] for row in ROWS]
    assert seen[-1] is type(w) or not isinstance(w, (int, float))
    with pytest.raises(NotImplementedError, match="Use out_axes=0"):
        gradix.vmap(lambda row, w: (row * 2, w), (0, None), out_axes=(0, None))(r, w)


@pytest.mark.parametrize("f", [lambda r: r * 2, lambda r: 2 + r, lambda r: -r, lambda r: r @ r, lambda r: r > 1])
def test_operators_say_what_to_write(f):
    with pytest.raises(TypeError, match=r"Write rows.map\(lambda row: 2 \* row\)"):
        f(gradix.Ragged.of(ROWS))


def _by_rows_and_columns(x):
    return x[x[:, 0] > 0][:, x[0] > 0]


TABLES = np.array(
    [[[3.0, -1.0, 4.0], [-1.0, 2.0, -3.0], [1.0, 5.0, -3.0]], [[-1.0, 2.0, 3.0], [-4.0, 5.0, 6.0], [-7.0, 8.0, 9.0]]],
    np.float32,
)
SHAPES = {
    "two sizes": _by_rows_and_columns,
    "two masks": lambda x: jnp.outer(x[0][x[0] < 0], x[1][x[1] > 0]),
    "a size and its double": lambda x: jnp.outer(x[0][x[0] > 0], jnp.repeat(x[0][x[0] > 0], 2)),
    "a known size before": lambda x: x[x[:, 0] > 0].T,
    "a known size between": lambda x: _by_rows_and_columns(x)[:, None] * jnp.ones((2, 1)),
    "two of three alike": lambda x: x[0][x[0] > 0][:, None, None] * _by_rows_and_columns(x),
}


@pytest.mark.parametrize("name", SHAPES)
def test_axes_with_sizes_of_their_own(name):
    f = SHAPES[name]
    want = [np.asarray(f(jnp.asarray(x))) for x in TABLES]
    for g in (gradix.vmap(f), gradix.jit(gradix.vmap(f)), gradix.vmap(gradix.jit(f))):
        rows = g(jnp.asarray(TABLES))
        for have in (rows.to_list(), list(rows), rows[:].to_list()):
            assert [v.shape for v in have] == [v.shape for v in want]
            assert all(np.array_equal(a, b) for a, b in zip(have, want))
    np.testing.assert_array_equal(rows.values, np.concatenate([v.ravel() for v in want]))
    np.testing.assert_array_equal(rows.offsets, np.cumsum([0, *[v.size for v in want]]))
    np.testing.assert_array_equal(rows.segment_ids, np.repeat([0, 1], [v.size for v in want]))
    assert rows.shape == (2, *[None if i in rows.axes else n for i, n in enumerate(rows.buffer.shape[1:])])
    # as an argument: of vmap, of loops, and of programs
    for totals in (gradix.vmap(jnp.sum)(rows), gradix.jit(gradix.vmap(jnp.sum))(rows), lax.map(jnp.sum, rows)):
        np.testing.assert_allclose(totals, [v.sum() for v in want])
    slopes = gradix.grad(lambda r: gradix.vmap(lambda v: jnp.sin(v).sum())(r).sum())(rows)
    for have, v in zip(slopes.to_list(), want):
        np.testing.assert_allclose(have, np.cos(v), rtol=1e-4, atol=1e-5)


def test_gradients_through_rows_with_two_sizes():
    mapped = lambda X: gradix.vmap(lambda v: (v * v).sum())(gradix.vmap(_by_rows_and_columns)(X)).sum()  # noqa: E731
    want = np.zeros_like(TABLES)
    for w, x in zip(want, TABLES):
        at = np.ix_(x[:, 0] > 0, x[0] > 0)
        w[at] = 2 * x[at]
    for g in (gradix.grad(mapped), gradix.jit(gradix.grad(mapped)), gradix.grad(gradix.jit(mapped))):
        np.testing.assert_allclose(g(jnp.asarray(TABLES)), want)


def test_rows_of_rows():
    """What `vmap` of `vmap` returns shows, and is gone through, as rows of rows."""
    for f in (lambda x: x[0][x[0] > 0], _by_rows_and_columns):
        given = jnp.stack([jnp.asarray(TABLES), -jnp.asarray(TABLES)])
        rows = gradix.vmap(gradix.vmap(f))(given)
        want = [[np.asarray(f(x)) for x in part] for part in given]
        flat = [v for part in want for v in part]
        assert repr(rows) == f"Ragged({[[v.tolist() for v in part] for part in want]}, dtype=float32)"
        assert [v.shape for part in rows for v in part] == [v.shape for v in flat]
        np.testing.assert_array_equal(rows.values, np.concatenate([v.ravel() for v in flat]))
        np.testing.assert_array_equal(rows.offsets, np.cumsum([0, *[v.size for v in flat]]))
        np.testing.assert_array_equal(rows.segment_ids, np.repeat(range(4), [v.size for v in flat]))
        np.testing.assert_allclose(gradix.vmap(gradix.vmap(jnp.sum))(rows), [[v.sum() for v in part] for part in want])
        assert "at most" in rows._repr_html_() and repr(gradix.eval_shape(lambda: rows)).startswith("Ragged(Shape")


def test_exported_rows_with_two_sizes():
    from gradix import export

    exported = export.export(gradix.jit(gradix.vmap(_by_rows_and_columns)))(
        gradix.ShapeDtypeStruct((2, 3, 3), jnp.float32)
    )
    have = export.deserialize(exported.serialize()).call(jnp.asarray(TABLES))
    assert have.axes == (0, 1) and repr(have) == repr(gradix.vmap(_by_rows_and_columns)(jnp.asarray(TABLES)))


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda r: r.sum(), AttributeError, r"rows.map\(lambda row: row.sum\(\)\)"),
        (lambda r: r.counted, AttributeError, "has no attribute 'counted'"),
        (np.asarray, TypeError, "rows.values"),
        (jnp.asarray, TypeError, "rows.to_list"),
        (np.sum, TypeError, "rows.values"),
    ],
)
def test_what_arrays_have_says_what_rows_have(f, error, words):
    with pytest.raises(error, match=words):
        f(gradix.Ragged.of(ROWS))
