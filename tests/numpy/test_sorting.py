"""Order, search and sets: NumPy is the reference; sizes given beforehand under tracing."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests.same import assert_same

V = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5], np.int32)
F = np.array([2.5, np.nan, -0.0, 0.0, -np.inf, 2.5, np.inf, -1], np.float32)
C = np.array([1 + 2j, 1 - 2j, 0, 3j, 1 + 2j], np.complex64)
M = np.array([[3, 1, 2], [0, 3, 3], [3, 1, 2]], np.int32)


CASES = """
jnp.sort(v), jnp.sort(f), jnp.sort(m), jnp.sort(m, 0), jnp.sort(m, None), jnp.sort(c), jnp.sort(v > 2)
jnp.argsort(v, stable=True), jnp.argsort(m, 0, stable=True), jnp.argsort(m, None, stable=True)
jnp.argsort(f, stable=True)
jnp.argsort(c, stable=True)
jnp.lexsort((v, v > 3)), jnp.lexsort(m), jnp.lexsort((m, -m), 0)
jnp.sort_complex(v), jnp.sort_complex(c)
jnp.nonzero(v > 3), jnp.nonzero(m), jnp.flatnonzero(m > 1), jnp.argwhere(m > 1), jnp.argwhere(c), jnp.where(m > 1)
jnp.searchsorted(jnp.sort(v), v), jnp.searchsorted(jnp.sort(v), m, side="right"), jnp.searchsorted(jnp.sort(v), 4.5)
jnp.searchsorted(v, 4, sorter=jnp.argsort(v)), jnp.searchsorted(jnp.sort(f), f)
jnp.searchsorted(jnp.sort(f), f, "right")
jnp.searchsorted(jnp.sort(c), c)
jnp.unique(v), jnp.unique(f), jnp.unique(m, axis=0), jnp.unique(m, axis=1), jnp.unique(m), jnp.unique(v[:0])
jnp.unique(v, return_index=True, return_inverse=True, return_counts=True), jnp.unique(f, equal_nan=False)
jnp.unique(m, True, True, True), jnp.unique_all(v), jnp.unique_counts(v), jnp.unique_inverse(m)
jnp.sort(jnp.unique_values(v))
jnp.union1d(v, m), jnp.intersect1d(v, m), jnp.intersect1d(v, m[0], return_indices=True), jnp.setdiff1d(v, m)
jnp.setxor1d(v, m), jnp.setdiff1d(v, m, assume_unique=True), jnp.intersect1d(v, v + 100), jnp.union1d(v, 0.5 * v)
jnp.isin(m, v), jnp.isin(m, v[:2], invert=True), jnp.isin(f, f), jnp.isin(v, v[:0])
""".strip().splitlines()


def names(module, array):
    return {"jnp": module, "v": array(V), "f": array(F), "c": array(C), "m": array(M)}


@pytest.mark.parametrize("text", CASES)
def test_as_numpy(text):
    assert_same(eval(text, names(jnp, jnp.asarray)), eval(text, names(np, np.asarray)))


@pytest.mark.parametrize("text", [t for t in CASES if not any(s in t for s in ("nonzero", "unique", "1d"))])
def test_compiled_as_eager(text):
    given = names(jnp, jnp.asarray)

    def evaluate(v, f, c, m):
        return eval(text, {"jnp": jnp, "v": v, "f": f, "c": c, "m": m})

    assert_same(gradix.jit(evaluate)(V, F, C, M), eval(text, given))


def test_descending_order_is_stable_too():
    keys = jnp.array([1, 0, 1, 0, 1])
    assert_same(jnp.argsort(keys, descending=True), [0, 2, 4, 1, 3])
    assert_same(jnp.sort(jnp.asarray(V), descending=True), np.sort(V)[::-1])
    assert_same(V[np.asarray(jnp.argsort(jnp.asarray(V), descending=True, stable=False))], np.sort(V)[::-1])
    assert jnp.argsort(jnp.asarray(V), dtype="int16").dtype == jnp.int16


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bfloat16"])
@pytest.mark.parametrize("kth", [0, 3, -1, -9])
def test_partition(dtype, kth):
    x = jnp.stack([jnp.asarray(V), jnp.asarray(V[::-1].copy())]).astype(dtype)
    part, order = jnp.partition(x, kth), jnp.argpartition(x, kth)
    at = kth % 9
    for row, p, o in zip(np.asarray(x, np.float32), np.asarray(part, np.float32), np.asarray(order)):
        line = np.sort(row)
        assert p[at] == line[at] and (p[:at] <= p[at]).all() and (p[at:] >= p[at]).all()
        assert_same(np.sort(p), line)
        assert_same(np.sort(o), np.arange(9))
        assert (row[o][:at] <= row[o][at]).all() and (row[o][at:] >= row[o][at]).all()
    assert_same(jnp.partition(x.T, kth, 0), part.T)


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "compare_all", "sort"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 7, 16, 17, 100])
def test_methods_of_searchsorted(method, side, n):
    line = np.sort(np.random.RandomState(n).randint(0, 30, n)).astype(np.float32)
    values = np.arange(-2, 33, dtype=np.float32).reshape(5, 7)
    values[0, 0] = np.nan
    want = np.searchsorted(line, values, side)
    assert_same(jnp.searchsorted(line, values, side, method=method), want)
    assert_same(gradix.jit(lambda a, v: jnp.searchsorted(a, v, side, method=method))(line, values), want)


@pytest.mark.parametrize("n", [31, 32, 33, 1023, 1024, 1025])
@pytest.mark.parametrize("count", [1, 1500])
def test_bisection_of_rows_around_powers_of_two(n, count):
    """Every element and place between two is found, by one expression of few values and by a loop of many."""
    line = np.arange(n, dtype=np.float32).repeat(2)[:n]
    values = np.resize(np.concatenate([line - 0.5, line, line + 0.5, [np.nan, np.inf, -np.inf]]), (3, count)).astype(
        np.float32
    )
    for side in ("left", "right"):
        assert_same(
            gradix.jit(lambda a, v: jnp.searchsorted(a, v, side))(line, values), np.searchsorted(line, values, side)
        )


@pytest.mark.parametrize("size", [1, 3, 200, 500])
@pytest.mark.parametrize("n", [16383, 16384, 20_001])
def test_a_few_places_in_a_long_row(n, size):
    def few(m):
        return jnp.flatnonzero(m, size=size, fill_value=-7)

    compiled, mapped = gradix.jit(few), gradix.jit(gradix.vmap(few))
    for part in (0, 0.001, 0.5, 1):
        mask = np.random.default_rng(n).random(n) < part
        wanted, found = np.full(size, -7), np.flatnonzero(mask)[:size]
        wanted[: len(found)] = found
        assert_same(few(mask), wanted)
        assert_same(compiled(mask), wanted)
        assert_same(mapped(np.stack([~mask, mask]))[1], wanted)


def test_nonzero_of_a_given_size():
    m = jnp.asarray(M)
    for f in (jnp.nonzero, gradix.jit(jnp.nonzero, static_argnames=("size", "fill_value"))):
        assert_same(f(m, size=2), ([0, 0], [0, 1]))
        assert_same(f(m > 2, size=6, fill_value=-1), ([0, 1, 1, 2, -1, -1], [0, 1, 2, 0, -1, -1]))
        assert_same(f(m > 2, size=5, fill_value=(7, 8)), ([0, 1, 1, 2, 7], [0, 1, 2, 0, 8]))
        assert_same(f(m > 9, size=2), ([0, 0], [0, 0]))
        assert_same(f(m, size=0), (np.zeros(0), np.zeros(0)))
    assert_same(gradix.jit(lambda x: jnp.argwhere(x > 2, size=5, fill_value=-1))(m)[-1], [-1, -1])
    assert_same(gradix.jit(lambda x: jnp.flatnonzero(x > 2, size=3))(m), [0, 4, 5])
    assert_same(gradix.jit(lambda x: jnp.where(x > 2, size=1))(m), ([0], [0]))
    assert_same(gradix.vmap(lambda r: jnp.flatnonzero(r > 2, size=2, fill_value=9))(m), [[0, 9], [1, 2], [0, 9]])


def test_unique_of_a_given_size():
    v = jnp.asarray(V)
    unique = gradix.jit(lambda x: jnp.unique(x, True, True, True, size=8, fill_value=-1))
    values, first, inverse, counts = np.unique(V, True, True, True)
    assert_same(unique(v), ([*values, -1], [*first, first[0]], inverse, [*counts, 0]))
    assert_same(gradix.jit(lambda x: jnp.unique(x, size=3))(v), [1, 2, 3])
    assert_same(gradix.jit(lambda x: jnp.unique(x, size=9))(v), [*values, 1, 1])
    assert_same(gradix.jit(lambda x: jnp.unique(x, return_counts=True, size=3))(v), ([1, 2, 3], [2, 1, 1]))
    assert_same(gradix.jit(lambda x: jnp.unique(x, axis=0, size=3, fill_value=0))(M), [[0, 3, 3], [3, 1, 2], [0, 0, 0]])
    assert_same(gradix.jit(lambda x: jnp.unique(x, size=6))(F), [-np.inf, -1, 0, 2.5, np.inf, np.nan])


def test_sets_of_a_given_size():
    a, b = np.array([5, 1, 1, 2]), np.array([2, 3, 5])
    jit = gradix.jit
    assert_same(jit(lambda a, b: jnp.union1d(a, b, size=5))(a, b), [1, 2, 3, 5, 1])
    assert_same(jit(lambda a, b: jnp.intersect1d(a, b, size=3))(a, b), [2, 5, 2])
    assert_same(
        jit(lambda a, b: jnp.intersect1d(a, b, size=3, fill_value=9, return_indices=True))(a, b),
        ([2, 5, 9], [3, 0, 4], [0, 2, 3]),
    )
    assert_same(jit(lambda a, b: jnp.setdiff1d(a, b, size=3))(a, b), [1, 0, 0])
    assert_same(jit(lambda a, b: jnp.setxor1d(a, b, size=3, fill_value=-1))(a, b), [1, 3, -1])


def test_large_sets_are_not_compared_pair_by_pair():
    x = np.random.RandomState(0).randint(0, 10**6, 3000)
    y = np.random.RandomState(1).randint(0, 10**6, 3000)
    assert_same(jnp.isin(x, y), np.isin(x, y))
    for method in ("compare_all", "sort", "binary_search"):
        assert_same(jnp.isin(x[:50], y[:50], method=method), np.isin(x[:50], y[:50]))


def test_gradients_follow_the_elements():
    x = jnp.array([3.0, 1.0, 2.0])
    weights = jnp.array([1.0, 10.0, 100.0])
    assert_same(gradix.grad(lambda x: (jnp.sort(x) * weights).sum())(x), [100, 1, 10])
    assert_same(gradix.grad(lambda x: (jnp.sort(x, descending=True) * weights).sum())(x), [1, 100, 10])
    assert_same(gradix.grad(lambda x: (jnp.partition(x, 1) * weights).sum())(x), [100, 1, 10])


WRONG = [
    (lambda: jnp.sort(3), ValueError, "out of bounds"),
    (lambda: jnp.sort(V, kind="quicksort"), TypeError, "stable"),
    (lambda: jnp.argsort(V, order="f"), TypeError, "order"),
    (lambda: jnp.sort([3, 1]), TypeError, "list"),
    (lambda: jnp.lexsort(()), TypeError, "at least one key"),
    (lambda: jnp.lexsort((V, V[:2])), ValueError, "same shape"),
    (lambda: jnp.partition(V, 20), ValueError, "out of bounds"),
    (lambda: jnp.partition(C, 1), NotImplementedError, "complex"),
    (lambda: jnp.nonzero(3), ValueError, "at least one axis"),
    (lambda: jnp.nonzero(M, size=2, fill_value=(1, 2, 3)), ValueError, "tuple of length 2"),
    (lambda: jnp.searchsorted(M, 1), ValueError, "must be a vector"),
    (lambda: jnp.searchsorted(V, 1, "middle"), ValueError, "middle"),
    (lambda: jnp.searchsorted(V, 1, method="guess"), ValueError, "guess"),
    (lambda: jnp.unique(V[:0], size=2), ValueError, "fill_value"),
    (lambda: jnp.isin(V, V, method="guess"), ValueError, "guess"),
    (lambda: jnp.ix_(V > 2), NotImplementedError, "is boolean"),
    (lambda: jnp.ix_(M), ValueError, "must be vectors"),
]


@pytest.mark.parametrize("f,error,text", WRONG)
def test_misuse(f, error, text):
    with pytest.raises(error, match=text):
        f()


@pytest.mark.parametrize(
    "f",
    [
        jnp.nonzero,
        jnp.unique,
        lambda x: jnp.where(x > 1),
        lambda x: jnp.setdiff1d(x, x),
        jnp.argwhere,
        lambda x: jnp.union1d(x, x),
        lambda x: jnp.intersect1d(x, x),
        jnp.flatnonzero,
        lambda x: jnp.extract(x > 1, x),
    ],
)
def test_results_whose_size_depends_on_traced_values(f):
    """They have the size that the values decide, as eager ones have; tests/counted has more of them."""
    for got, want in zip(gradix.tree.leaves(gradix.jit(f)(V)), gradix.tree.leaves(f(V)), strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


@pytest.mark.parametrize("size", [7, 300, 40_000])
@pytest.mark.parametrize("engine", ["host", "compiled"])
def test_complex_numbers_with_nan_come_in_numpys_order(size, engine):
    """Numbers, then NaN in the imaginary part, then in the real part, then in both."""
    rng = np.random.default_rng(0)
    z = np.empty(size, np.complex64)
    z.real, z.imag = [rng.choice(np.float32([np.nan, -np.inf, -1, 0, 2, np.inf]), size) for _ in range(2)]
    jitted = (lambda f: f) if engine == "host" else gradix.jit
    want = np.sort(z)
    bits = lambda x: np.testing.assert_array_equal(np.asarray(x).view(np.float32), want.view(np.float32))
    bits(jitted(jnp.sort)(z))
    bits(z[np.asarray(jitted(jnp.argsort)(z))])
    bits(jitted(jnp.sort_complex)(z))
    bits(z[np.asarray(jitted(lambda z: jnp.lexsort((z,)))(z))])
    bits(jitted(lambda z: jnp.sort(z.reshape(1, -1, 1), axis=1).ravel())(z))
    row = want[: min(size, 300)]
    for side in ("left", "right"):
        found = jitted(lambda row, z, side=side: jnp.searchsorted(row, z, side))(row, z[:50])
        np.testing.assert_array_equal(found, np.searchsorted(row, z[:50], side))
