"""Systems with sparse matrices, the largest eigenvalues, and products by the kernel of compressed rows."""

import numpy as np
import pytest
import scipy.sparse

import gradix
from gradix import numpy as jnp
from gradix._core.trace import bind
from gradix._ops.linalg.sparse_product import sampled_product_p, sparse_product
from gradix.experimental import sparse
from gradix.experimental.sparse.linalg import lobpcg_standard, spsolve

RNG = np.random.default_rng(0)


def system(n, dtype):
    a = scipy.sparse.random(n, n, 0.3, random_state=1, format="csr", dtype=dtype) + scipy.sparse.eye(n, dtype=dtype) * 3
    return a.tocsr(), RNG.normal(size=n).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_solutions(dtype):
    with gradix.enable_x64(dtype == "float64"):
        a, b = system(12, dtype)
        m = sparse.BCSR.from_scipy_sparse(a)
        for f in (spsolve, gradix.jit(spsolve)):
            x = f(m.data, m.indices, m.indptr, b)
            assert x.dtype == dtype
            np.testing.assert_allclose(a @ np.asarray(x), b, rtol=1e-4, atol=1e-5)
            stack = gradix.vmap(spsolve, (None, None, None, 0))(m.data, m.indices, m.indptr, np.stack([b, 2 * b]))
            np.testing.assert_allclose(stack, [x, 2 * x], rtol=1e-4)


def test_derivatives_of_solutions():
    a, b = system(6, "float32")
    m = sparse.BCSR.from_scipy_sparse(a)

    def f(data, b):
        return spsolve(data, m.indices, m.indptr, b)

    def dense(data, b):
        return jnp.linalg.solve(m._with(data=data).todense(), b)

    for ours, theirs in zip(gradix.jacrev(f, (0, 1))(m.data, b), gradix.jacrev(dense, (0, 1))(m.data, b)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    for ours, theirs in zip(gradix.jacfwd(f, (0, 1))(m.data, b), gradix.jacfwd(dense, (0, 1))(m.data, b)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    second = gradix.grad(lambda d: jnp.sum(gradix.grad(lambda d: jnp.sum(f(d, b) ** 2))(d) ** 2))(m.data)
    np.testing.assert_allclose(
        second,
        gradix.grad(lambda d: jnp.sum(gradix.grad(lambda d: jnp.sum(dense(d, b) ** 2))(d) ** 2))(m.data),
        rtol=1e-2,
        atol=1e-4,
    )


def test_singular_and_wrong_systems():
    assert np.isnan(spsolve(jnp.ones(1), jnp.zeros(1, int), jnp.array([0, 1, 1]), jnp.ones(2))).all()
    padded = sparse.BCSR.fromdense(2 * jnp.eye(3), nse=5)
    np.testing.assert_allclose(spsolve(padded.data, padded.indices, padded.indptr, jnp.ones(3)), [0.5] * 3)
    with pytest.raises(ValueError, match="n \\+ 1"):
        spsolve(jnp.ones(1), jnp.zeros(1, int), jnp.array([0, 1]), jnp.ones(2))
    with pytest.raises(TypeError, match="dtype"):
        spsolve(jnp.ones(1, int), jnp.zeros(1, int), jnp.array([0, 1]), jnp.ones(1))


@pytest.mark.parametrize("n, k", [(40, 1), (40, 3)])
@pytest.mark.parametrize("form", ["array", "function", "sparse"])
def test_largest_eigenvalues(n, k, form):
    q = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    values = np.linspace(1, 3, n) ** 3
    a = ((q * values) @ q.T).astype("f")
    given = {"array": a, "function": lambda x: jnp.asarray(a) @ x, "sparse": sparse.BCOO.fromdense(a)}[form]
    found, vectors, steps = lobpcg_standard(given, RNG.normal(size=(n, k)).astype("f"))
    np.testing.assert_allclose(found, values[::-1][:k], rtol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-5)
    np.testing.assert_allclose(a @ vectors, found * vectors, atol=2e-3)
    assert 0 < int(steps) <= 100
    assert int(lobpcg_standard(given, RNG.normal(size=(n, k)).astype("f"), m=2)[2]) == 2


def spectrum(n, k):
    rng = np.random.default_rng(n)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return ((q * np.arange(1, n + 1) ** 1.5) @ q.T).astype("f"), rng.normal(size=(n, k)).astype("f")


@pytest.mark.parametrize("tol", [1e9, 0.1, 3e-4, 1e-4, 1e-5])
def test_steps_end_by_the_residual_but_not_before_the_first(tol):
    a, x = spectrum(50, 1)
    steps = int(lobpcg_standard(a, x, tol=tol)[2])

    def is_done(i):
        (value,), vector, _ = [np.asarray(v, float) for v in lobpcg_standard(a, x, m=i)]
        image = a.astype(float) @ vector
        return np.linalg.norm(image - value * vector) < 10 * 50 * tol * (np.linalg.norm(image) + value)

    assert is_done(steps) and not any(is_done(i) for i in range(1, steps)) and (steps > 1 or tol > 2e-4)
    assert int(lobpcg_standard(a, x, m=0, tol=tol)[2]) == 0


@pytest.mark.parity
@pytest.mark.parametrize(
    "n, k", [(50, 1), pytest.param(50, 3, marks=pytest.mark.slow), pytest.param(200, 2, marks=pytest.mark.slow)]
)
def test_steps_are_those_of_the_peer(n, k):
    peer = pytest.importorskip("jax.experimental.sparse.linalg").lobpcg_standard
    a, x = spectrum(n, k)
    for options in ({}, {"m": 0}, {"m": 2}, {"tol": 1.0}, {"tol": 1e-4}, {"m": 3, "tol": 1e-9}):
        (values, vectors, steps), (wanted, others, count) = [f(a, x, **options) for f in (lobpcg_standard, peer)]
        assert abs(int(steps) - int(count)) <= (2 if options == {} else 0), options
        # The vectors of a start of several are any basis of its span, and the first directions depend on them.
        near = 0.05 if options else 1e-4
        if options != {"m": 0}:
            np.testing.assert_allclose(values, wanted, rtol=near)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: lobpcg_standard(jnp.eye(9), jnp.ones((9, 2))),
        lambda: lobpcg_standard(jnp.eye(8), jnp.ones((9, 1))),
        lambda: lobpcg_standard(jnp.eye(9), jnp.ones((9, 1), int)),
        lambda: lobpcg_standard(lambda x: x[:1], jnp.ones((9, 1))),
    ],
)
def test_wrong_eigenproblems(wrong):
    with pytest.raises(ValueError, match="lobpcg_standard"):
        wrong()


def elements(n, m, count, ordered):
    rows, columns = RNG.integers(0, n, count), RNG.integers(0, m, count)
    if ordered:
        rows = np.sort(rows)
    data, dense = RNG.normal(size=count).astype("f"), RNG.normal(size=(m, 160)).astype("f")
    whole = np.zeros((n, m), "f")
    np.add.at(whole, (rows, columns), data)
    return [jnp.asarray(x) for x in (data, rows.astype("i4"), columns.astype("i4"), dense)], whole


@pytest.mark.parametrize(
    "ordered, width, is_kernel", [(True, 160, True), (False, 160, True), (True, 3, False), (False, 20, False)]
)
def test_products_are_the_kernels_where_that_pays(ordered, width, is_kernel):
    (data, rows, columns, dense), whole = elements(30, 20, 90, ordered)
    dense = dense[:, :width]

    def f(data, dense):
        return sparse_product(data, rows, columns, dense, 30, ordered=ordered)

    lowered = gradix.jit(f).lower(data, dense)
    assert ("cpu_csr_sparse_dense" in lowered.as_text()) == is_kernel
    np.testing.assert_allclose(lowered.compile()(data, dense), whole @ np.asarray(dense), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(f(data, dense), whole @ np.asarray(dense), rtol=1e-4, atol=1e-4)
    found = gradix.jit(gradix.grad(lambda d, x: jnp.sin(f(d, x)).sum(), (0, 1)))(data, dense)
    outer = np.cos(whole @ np.asarray(dense))
    np.testing.assert_allclose(found[1], whole.T @ outer, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[0], (outer[rows] * np.asarray(dense)[columns]).sum(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("axes", [(None, None, None, 0), (None, None, None, 2), (0, None, None, None), (0, 0, 1, 1)])
def test_mapped_products_are_a_loop(axes):
    (data, rows, columns, dense), _ = elements(6, 5, 8, False)
    args = [data, rows, columns, dense[:, :3]]
    args = [
        x if a is None else jnp.stack([x, x[::-1], x * 2 if x.dtype == "float32" else x], a) for x, a in zip(args, axes)
    ]

    def f(*args):
        return sparse_product(*args, 6, ordered=False)

    loop = [f(*[x if a is None else jnp.take(x, i, a) for x, a in zip(args, axes)]) for i in range(3)]
    np.testing.assert_allclose(gradix.vmap(f, axes)(*args), loop, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [5, 1024, 2049, 3000])
def test_elements_of_a_product(count):
    """Those of more rows than stay in the caches are taken in blocks, the last of which overlaps the one before."""
    n, m, width = 40, 30, 512
    rows, columns = [jnp.asarray(RNG.integers(0, k, count).astype("i4")) for k in (n, m)]
    x, y = [jnp.asarray(RNG.normal(size=(k, width)).astype("f")) for k in (n, m)]

    def f(x, y):
        return bind(sampled_product_p, (x, y, rows, columns), {})

    lowered = gradix.jit(f).lower(x, y)
    assert bool(lowered._module.facts.rewrites.get("sampled_products_by_blocks")) == (count > 2048)
    want = (np.asarray(x) @ np.asarray(y).T)[rows, columns]
    for values in (f(x, y), lowered.compile()(x, y)):
        np.testing.assert_allclose(values, want, rtol=1e-4, atol=1e-3)
    weights = RNG.normal(size=count).astype("f")
    found = gradix.jit(gradix.grad(lambda x, y: (f(x, y) * weights).sum(), (0, 1)))(x, y)
    whole = np.zeros((n, m), "f")
    np.add.at(whole, (rows, columns), weights)
    np.testing.assert_allclose(found[0], whole @ np.asarray(y), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[1], whole.T @ np.asarray(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32"])
def test_elements_of_a_product_in_every_dtype(dtype):
    x, y = [jnp.asarray(RNG.integers(-3, 4, (k, 5))).astype(dtype) for k in (4, 3)]
    rows, columns = jnp.array([0, 3, 3], "int32"), jnp.array([2, 0, 1], "int32")

    def f(*args):
        return bind(sampled_product_p, args, {})

    want = (np.asarray(x) @ np.asarray(y).T)[rows, columns]
    for values in (f(x, y, rows, columns), gradix.jit(f)(x, y, rows, columns)):
        assert values.dtype == x.dtype
        np.testing.assert_array_equal(values, want)
    both = gradix.vmap(f, (0, None, 0, None))(jnp.stack([x, x + x]), y, jnp.stack([rows, rows[::-1]]), columns)
    np.testing.assert_array_equal(both[0], want)
    np.testing.assert_array_equal(both[1], f(x + x, y, rows[::-1], columns))


def test_elements_of_a_product_have_derivatives_of_every_order():
    x, y = [jnp.asarray(RNG.normal(size=(k, 5))) for k in (4, 3)]
    rows, columns = jnp.array([0, 3, 3], "int32"), jnp.array([2, 0, 1], "int32")
    with gradix.enable_x64(True):
        x, y = [jnp.asarray(np.asarray(v), "float64") for v in (x, y)]
        gradix.test_util.check_grads(
            lambda x, y: jnp.sin(bind(sampled_product_p, (x, y, rows, columns), {})), (x, y), order=2
        )


def test_wrong_products():
    (data, rows, columns, dense), _ = elements(6, 5, 8, False)
    with pytest.raises(TypeError, match="dtypes"):
        sparse_product(data, rows, columns, dense.astype("int32"), 6)
    with pytest.raises(TypeError, match="shapes"):
        sparse_product(data, rows[1:], columns, dense, 6)


@pytest.mark.parametrize("axes", [(None, None), (0, None), (None, 0), (0, 0)])
def test_products_with_known_starts(axes):
    (data, rows, columns, dense), whole = elements(6, 5, 12, True)
    starts = jnp.asarray(np.searchsorted(rows, np.arange(7)).astype("i4"))
    dense = dense[:, :9]

    def f(data, dense):
        return sparse_product(data, rows, columns, dense, 6, ordered=True, starts=starts)

    want = whole @ np.asarray(dense)
    for g in (f, gradix.jit(f)):
        np.testing.assert_allclose(g(data, dense), want, rtol=1e-4, atol=1e-4)
    stacked = [x if a is None else jnp.stack([x, 2 * x]) for x, a in zip((data, dense), axes)]
    if axes != (None, None):
        factor = 2 ** sum(a is not None for a in axes)
        np.testing.assert_allclose(gradix.jit(gradix.vmap(f, axes))(*stacked)[1], factor * want, rtol=1e-4, atol=1e-4)
    gradix.test_util.check_grads(lambda d, x: jnp.sin(f(d, x)), (data, dense), order=1, rtol=2e-2, atol=2e-2, eps=1e-2)
    with pytest.raises(TypeError, match="starts"):
        sparse_product(data, rows, columns, dense, 6, ordered=True, starts=starts[1:])


def test_compressed_rows_ignore_what_is_out_of_bounds():
    m = sparse.BCSR((jnp.array([1.0, 2.0, 7.0, 9.0]), jnp.array([0, 1, 5, 1]), jnp.array([0, 1, 3])), shape=(2, 3))
    for width in (2, 16):
        x = RNG.normal(size=(3, width)).astype("f")
        for f in (lambda m: m @ x, gradix.jit(lambda m: m @ x)):
            np.testing.assert_allclose(f(m), np.array([[1, 0, 0], [0, 2, 0]], "f") @ x, rtol=1e-5)
