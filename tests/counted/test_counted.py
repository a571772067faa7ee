"""Sizes that values decide in compiled functions: values, sizes, gradients, errors, options."""

import math
import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.errors import InconclusiveDimensionOperation

HERE = "test_counted.py"
X = np.array([3.0, -1.0, 4.0, -2.0, 5.0, 0.5], np.float32)
OPEN = gradix.ShapeDtypeStruct(gradix.export.symbolic_shape("n"), "float32")
MASKS = {"some": X > 0, "none": X > 9, "all": X > -9, "one": X > 4.5}


def wide(x):
    """Three columns that differ."""
    return jnp.sin(x[:, None] * jnp.array([1.0, 2.0, 0.4])) + jnp.cos(
        jnp.arange(x.shape[0])[:, None] * 2 + jnp.arange(3.0) ** 2
    )


# Functions of a vector whose size values decide; each is compared with its eager result on the true elements.
FUNCTIONS = {
    "itself": lambda x: x,
    "arithmetic": lambda x: 2 * x - x / 3 + jnp.sin(x),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "product": jnp.prod,
    "maximum": lambda x: jnp.max(x, initial=-7.0),
    "all and any": lambda x: ((x > 0).all(), (x > 4).any()),
    "argmax": lambda x: jnp.argmax(jnp.concatenate([x, jnp.ones(1)])),
    "sorted": jnp.sort,
    "backwards": lambda x: x[::-1],
    "without one": lambda x: jnp.delete(jnp.append(x, x.sum()), 0),
    "set at a place": lambda x: jnp.append(x, 0.0).at[0].set(x.sum()).at[jnp.arange(x.shape[0])].multiply(2.0),
    "the first": lambda x: jnp.append(x, 2.0)[0] * x[1:],
    "tail": lambda x: x[1:],
    "last two": lambda x: x[-2:],
    "first three": lambda x: x[:3],
    "every second": lambda x: x[::2],
    "differences": jnp.diff,
    "running sums": jnp.cumsum,
    "running products from the end": lambda x: lax.cumprod(x, reverse=True),
    "joined": lambda x: jnp.concatenate([x, jnp.ones(2), 2 * x]),
    "padded": lambda x: jnp.pad(x, (1, 2), constant_values=9.0),
    "rolled": lambda x: jnp.roll(x, 2),
    "outer": lambda x: jnp.outer(x, x),
    "flat outer": lambda x: jnp.outer(x, x + 1).ravel(),
    "matrix product": lambda x: jnp.outer(x, jnp.ones(3)) @ jnp.ones((3, 2)),
    "contraction": lambda x: x @ x,
    "masked again": lambda x: x[x < 4.5],
    "places": lambda x: jnp.nonzero(x > 3),
    "repeated": lambda x: jnp.repeat(x, 2),
    "distinct": lambda x: jnp.unique(jnp.floor(x / 2), return_index=True, return_inverse=True, return_counts=True),
    "in a set": lambda x: jnp.isin(x, jnp.array([3.0, 5.0])),
    "union": lambda x: jnp.union1d(x, jnp.array([3.0, 7.0])),
    "places of values": lambda x: jnp.searchsorted(jnp.sort(x), jnp.array([0.0, 4.5])),
    "set where": lambda x: x.at[: x.shape[0] // 2].set(7.0),
    "scattered": lambda x: jnp.zeros(9).at[x.astype(int) + 2].add(x),
    "convolved": lambda x: jnp.convolve(jnp.append(x, 1.0), jnp.array([1.0, 2.0, 1.0]), mode="same"),
    "convolved with itself": lambda x: jnp.convolve(jnp.append(x, 1.0), jnp.append(x, 2.0)[::-1]),
    "a solution": lambda x: jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(x.shape[0]), x),
    "determinant": lambda x: jnp.linalg.det(jnp.outer(x, x) + jnp.eye(x.shape[0])),
    "singular values": lambda x: jnp.linalg.svdvals(wide(x)),
    "singular vectors": lambda x: (lambda u, s, vh: (u * s) @ vh)(*jnp.linalg.svd(wide(x), full_matrices=False)),
    "vectors of values of zero": lambda x: (lambda u, s, vh: (u.T @ u, vh @ vh.T))(
        *jnp.linalg.svd(jnp.outer(x, x), full_matrices=False)
    ),
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(jnp.outer(x, x) + jnp.diag(x)),
    "orthogonal factor": lambda x: jnp.linalg.qr(wide(x)),
    "least squares": lambda x: jnp.linalg.lstsq(wide(x), x)[0],
    "product with itself": lambda x: lax.linalg.symmetric_product(
        jnp.outer(jnp.arange(3, dtype=x.dtype), x), jnp.ones((3, 3), x.dtype), alpha=0.5
    ),
    "square of a product": lambda x: lax.linalg.symmetric_product(wide(x).astype(x.dtype), jnp.outer(x, x), beta=2.0),
    "transform": jnp.fft.fft,
    "transform and back": lambda x: jnp.fft.irfft(jnp.fft.rfft(jnp.append(x, 1.0)), n=x.shape[0] + 1),
    "transforms along axes": lambda x: jnp.fft.ifft(jnp.outer(jnp.arange(3.0), x)).real,
    "scan": lambda x: lax.scan(lambda c, v: (c / 2 + v, c * v), 1.0, x),
    "reverse scan": lambda x: lax.scan(lambda c, v: (c / 2 + v, c * v), 1.0, x, reverse=True)[1],
    "as many steps": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c / 2 + jnp.append(x, 1.0)[i] ** 2, 0.0),
    "until it is large": lambda x: lax.while_loop(
        lambda c: c[1] < 60, lambda c: (c[0] * 1.5 + 1 / (1 + c[1]), c[1] + c[0].sum() + 9), (jnp.abs(x), 0.0)
    ),
    "steps that select": lambda x: lax.fori_loop(0, 3, lambda i, c: c / 2 + (x[x > c / 9] ** 2).sum(), 0.0),
    "sizes": lambda x: jnp.ones((gradix.core.max_dim(x.shape[0] - 2, 1), gradix.core.min_dim(x.shape[0], 3))) * x.sum(),
    "map": lambda x: lax.map(lambda v: v * v, x),
    "vmap": lambda x: gradix.vmap(lambda v: (v, v > 1))(x),
    "vmap with sums": lambda x: gradix.vmap(lambda v: jnp.where(x > v, x, 0).sum())(x),
    "vmap of a mask": lambda x: gradix.vmap(lambda v: x[x > v].sum())(x),
    "branch": lambda x: lax.cond(x.sum() > 1, lambda x: x * 2, lambda x: -x, x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c / 2 + x[x > i].sum(), 0.0),
    "size": lambda x: jnp.asarray(x.shape[0]) * 2.0,
    "indices": lambda x: jnp.arange(x.shape[0]) * 2,
    "a larger size": lambda x: jnp.ones(2 * x.shape[0] + 1),
    "softmax": gradix.nn.softmax,
    "logsumexp": lambda x: gradix.nn.logsumexp(jnp.concatenate([x, jnp.zeros(1)])),
    "group sums": lambda x: gradix.ops.segment_sum(x, jnp.arange(x.shape[0]) % 2, num_segments=2),
    "two axes": lambda x: jnp.outer(x, x)[x > 1][:, x < 4.5],
    "random": lambda x: gradix.random.normal(gradix.random.key(3), x.shape),
    "random rows": lambda x: gradix.random.uniform(gradix.random.key(3), (x.shape[0], 2)),
    "checkpoint": lambda x: gradix.checkpoint(lambda x: jnp.sin(x) * x)(x),
    "inner jit": lambda x: gradix.jit(lambda x: x[x > 1] + 1)(x),
    "quantile": lambda x: jnp.median(jnp.concatenate([x, jnp.zeros(1)])),
    "variance": lambda x: jnp.var(jnp.concatenate([x, jnp.zeros(2)])),
    "trapezoid": jnp.trapezoid,
    "unwrap": jnp.unwrap,
    "histogram": lambda x: jnp.histogram(x, bins=3),
}


def leaves(tree):
    return [np.asarray(x) for x in gradix.tree.leaves(tree)]


def check_same(want, have):
    want, have = leaves(want), leaves(have)
    assert [w.shape for w in want] == [h.shape for h in have]
    for w, h in zip(want, have):
        assert w.dtype == h.dtype
        np.testing.assert_allclose(h, w, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_to_the_true_elements(name):
    """One compilation for all counts; what lies past a count is NaN, and does not come through."""
    f = FUNCTIONS[name]
    compiled = gradix.jit(lambda x, m: f(x[m]))
    for mask in MASKS.values():
        spoiled = np.where(mask, X, np.nan).astype(np.float32)
        check_same(f(jnp.asarray(X[mask])), compiled(spoiled, mask))
    assert compiled.stats().traces == 1


# The vectors of equal values have no derivative; the transpose of a convolution has a kernel of such a size.
with gradix.numpy_rank_promotion("allow"), gradix.numpy_dtype_promotion("standard"):
    SMOOTH = [
        n
        for n, f in FUNCTIONS.items()
        if n not in ("vectors of values of zero", "convolved with itself")
        and all(v.dtype == np.float32 for v in leaves(f(jnp.asarray(X[X > 0]))))
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if i % 4 == 0 else pytest.mark.slow) for i, n in enumerate(SMOOTH)]
)
def test_gradients_in_both_orders(name):
    f = FUNCTIONS[name]
    total = lambda x: sum(jnp.sum(jnp.sin(v / 3)) for v in gradix.tree.leaves(f(x)))  # noqa: E731
    whole = lambda x, m: total(x[m])  # noqa: E731
    orders = gradix.jit(gradix.grad(whole)), gradix.grad(gradix.jit(whole))
    for mask in MASKS.values():
        want = np.zeros_like(X)
        want[mask] = gradix.grad(total)(jnp.asarray(X[mask]))
        for g in orders:
            np.testing.assert_allclose(g(jnp.asarray(X), mask), want, rtol=1e-4, atol=1e-5)


def test_gradients_against_differences():
    f = gradix.jit(lambda x: (jnp.sin(x[x > 0]) * x[x > 0].sum() / x[x > 0].shape[0]).sum())
    x, step = jnp.asarray(X), 1e-2
    ends = [
        f(x + step * np.eye(6, dtype=np.float32)[i]) - f(x - step * np.eye(6, dtype=np.float32)[i]) for i in range(6)
    ]
    np.testing.assert_allclose(gradix.grad(f)(x), np.array(ends) / (2 * step), atol=5e-3)


def test_second_derivatives():
    f = lambda x: (x[x > 0] ** 3).sum() * x[x < 0].sum()  # noqa: E731
    want = gradix.hessian(lambda x: (jnp.where(x > 0, x, 0) ** 3).sum() * jnp.where(x < 0, x, 0).sum())(jnp.asarray(X))
    for g in (
        gradix.jit(gradix.hessian(f)),
        gradix.hessian(gradix.jit(f)),
        gradix.jit(gradix.jacrev(gradix.jacrev(gradix.jit(f)))),
    ):
        np.testing.assert_allclose(g(jnp.asarray(X)), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "bool", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    x = jnp.asarray(X * 2).astype(dtype)
    for f in (
        lambda x: x,
        jnp.cumsum,
        jnp.prod,
        lambda x: jnp.sort(x)[::-1],
        lambda x: jnp.unique(x),
        lambda x: jnp.concatenate([x, x]),
    ):
        for mask in (MASKS["some"], MASKS["none"]):
            want, have = np.asarray(f(x[mask])), np.asarray(gradix.jit(lambda x, m, f=f: f(x[m]))(x, mask))
            assert want.dtype == have.dtype
            np.testing.assert_allclose(have.astype(complex), want.astype(complex), rtol=1e-2)


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_sizes(size):
    x = np.random.default_rng(0).normal(size=size).astype(np.float32)
    np.testing.assert_allclose(gradix.jit(lambda x: x[x > 0])(x), x[x > 0])
    np.testing.assert_allclose(gradix.jit(lambda x: x[x > 0].sum())(x), x[x > 0].sum(), rtol=1e-4, atol=1e-5)


def test_masks_of_several_axes():
    a = np.arange(12.0, dtype=np.float32).reshape(3, 4) % 5
    for f in (
        lambda a: a[a > 2],
        lambda a: a[a[:, 0] > 0],
        lambda a: a[:, a[0] > 1],
        lambda a: jnp.argwhere(a > 2),
        lambda a: jnp.where(a > 2),
        lambda a: jnp.flatnonzero(a > 2),
        lambda a: jnp.compress(a[0] > 1, a, axis=1),
        lambda a: jnp.extract(a > 2, a),
        lambda a: jnp.unique(a, axis=0),
        lambda a: jnp.unique(a[a[:, 0] > 0], axis=1, return_index=True, return_inverse=True, return_counts=True),
        lambda a: jnp.unique(a[:, a[0] > 1] // 3, axis=0, return_inverse=True),
        lambda a: jnp.unique(a[a[:, 0] > 9], axis=1),
        lambda a: jnp.unique(jnp.where(a > 3, jnp.nan, a // 3)[a[:, 0] > 0], axis=1),
        lambda a: jnp.unique(a.reshape(3, 2, 2)[:, a[0, :2] > 0] // 4, axis=0),
        lambda a: a.at[a > 2].set(a[a > 2] * 2),
    ):
        check_same(f(jnp.asarray(a)), gradix.jit(f)(a))


def test_set_functions():
    other = jnp.array([3.0, 5.0, 9.0])
    for f in (
        lambda x: jnp.intersect1d(x, other, return_indices=True),
        lambda x: jnp.setdiff1d(x, other),
        lambda x: jnp.setxor1d(x, other),
        lambda x: jnp.union1d(x, other),
        jnp.unique_all,
        jnp.unique_counts,
        jnp.unique_inverse,
        jnp.unique_values,
    ):
        check_same(f(jnp.asarray(X)), gradix.jit(f)(X))


def test_equal_masks_have_one_size():
    f = gradix.jit(lambda x: x[x > 0] * (2 * x)[x > 0] + jnp.nonzero(x > 0)[0])
    np.testing.assert_allclose(f(X), 2 * X[X > 0] ** 2 + np.nonzero(X > 0)[0])


def test_a_function_called_twice_has_two_sizes():
    inner = gradix.jit(lambda x, t: jnp.sin(x[x > t]).sum(), inline=True)
    f = lambda x: inner(x, 0.0) * inner(x, 3.5)  # noqa: E731
    np.testing.assert_allclose(gradix.jit(f)(X), np.sin(X[X > 0]).sum() * np.sin(X[X > 3.5]).sum(), rtol=1e-5)
    third = gradix.jit(gradix.grad(lambda x: gradix.grad(lambda x: gradix.grad(f)(x).sum())(x).sum()))
    dense = lambda x: jnp.where(x > 0, jnp.sin(x), 0).sum() * jnp.where(x > 3.5, jnp.sin(x), 0).sum()  # noqa: E731
    np.testing.assert_allclose(
        third(jnp.asarray(X)),
        gradix.grad(lambda x: gradix.grad(lambda x: gradix.grad(dense)(x).sum())(x).sum())(jnp.asarray(X)),
        rtol=1e-3,
        atol=1e-4,
    )


def test_a_size_without_its_elements():
    """The count stays in the program where only its value is used."""
    assert float(gradix.jit(lambda x: jnp.ones(x[x > 0].shape[0]).sum())(X)) == 4
    assert float(gradix.grad(gradix.jit(lambda x: x[0] * jnp.ones(x[x > 0].shape[0]).sum()))(jnp.asarray(X))[0]) == 4


def test_one_compilation_for_all_counts():
    f = gradix.jit(lambda x, m: jnp.sort(x[m])[::-1].sum())
    x = jnp.arange(300.0)
    for n in range(0, 300, 7):
        assert float(f(x, x < n)) == n * (n - 1) / 2
    assert f.stats().traces == 1 and f.stats().compiles <= 1


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda x: x[x > 0] + x[x < 0], TypeError, "k1 is decided by values"),
        (lambda x: jnp.dot(x[x > 0], x[x < 0]), TypeError, "decided by values"),
        (lambda x: len(x[x > 0]), TypeError, "lax.scan"),
        (lambda x: list(range(x[x > 0].shape[0])), TypeError, "lax.fori_loop(0, n, body, init)"),
        (lambda x: np.zeros(x[x > 0].shape[0]), TypeError, "jnp.zeros(n)"),
        (lambda x: math.sqrt(x[x > 0].shape[0]), TypeError, "jnp.sqrt(n)"),
        (lambda x: float(x[x > 0].shape[0]), TypeError, "jnp.asarray(n, float)"),
        (lambda x: x / np.sqrt(x[x > 0].shape[0]), TypeError, "jnp.sqrt(n), in place of np.sqrt(n)"),
        (lambda x: np.arange(x[x > 0].shape[0]), TypeError, "jnp.arange(n), in place of np.arange(n)"),
        (lambda x: np.arange(0, x[x > 0].shape[0], 2) * 2, TypeError, "jnp.arange(n), in place of np.arange(n)"),
        (lambda x: [1, 2, 3][x[x > 0].shape[0]], TypeError, "jnp.asarray(values)[n]"),
        (lambda x: f"{x[x > 0].shape[0]:5d}", TypeError, "gradix.debug.print"),
        (lambda x: x[x > 0].reshape(2, -1), InconclusiveDimensionOperation, "x[: x.shape[0] // 2 * 2]"),
        (lambda x: gradix.nn.glu(x[x > 0]), ValueError, "x[..., : 2 * (n // 2)]"),
        (lambda x: list(x[x > 0]), TypeError, "lax.map"),
        (lambda x: [0] * x[x > 0].shape[0], TypeError, "jnp.arange"),
        (lambda x: x[x > 0].shape[0] * (0,), TypeError, "jnp.arange"),
        (lambda x: jnp.unstack(x[x > 0]), TypeError, "lax.map"),
        (lambda x: jnp.lexsort(x[x > 0, None]), TypeError, "lax.scan"),
        (lambda x: 1 if x[x > 0].shape[0] > 2 else 0, InconclusiveDimensionOperation, "lax.cond"),
        (lambda x: 1 if x[x > 0].shape[0] else 0, InconclusiveDimensionOperation, "lax.cond"),
        (lambda x: jnp.ones(max(x[x > 0].shape[0], 3)), InconclusiveDimensionOperation, "gradix.core.max_dim(m, n)"),
        (lambda x: int(x[x > 0].shape[0]), InconclusiveDimensionOperation, "jnp.asarray"),
        (lambda x: jnp.squeeze(x[x > 0]), InconclusiveDimensionOperation, "axis=1"),
        (lambda x: lax.cond(x[0] > 0, lambda x: x[x > 0], lambda x: x[x < 0, None], x), TypeError, "true_fun"),
        (lambda x: lax.while_loop(lambda c: c.sum() > 3, lambda c: c[c > 1], x), TypeError, "carry"),
        (lambda x: lax.scan(lambda c, v: (c, x[x > v]), 0.0, x)[1], NotImplementedError, "Ragged"),
        (lambda x: lax.reduce(x[x > 0], np.float32(1), lambda a, b: a * b + a, (0,)), NotImplementedError, "jnp.where"),
        (lambda x: lax.tile(x[x > 0], (2,)), NotImplementedError, "jnp.tile"),
    ],
)
def test_what_cannot_be_says_what_to_write(f, error, words):
    with pytest.raises(error, match=re.escape(words)) as found:
        gradix.jit(f)(X)
    assert HERE in str(found.value)


@pytest.mark.parametrize(
    "f, instead",
    [
        (lambda x: [2 * i for i in range(x.shape[0])], "lax.fori_loop(0, n, body, init)"),
        (lambda x: len(x) * x, "x.shape[0]"),
        (lambda x: sum(x), "lax.scan(f, init, x)"),
        (lambda x: np.ones(x.shape[0]) * x, "jnp.zeros(n)"),
        (lambda x: x / math.sqrt(len(x.shape) * x.shape[0]), "jnp.sqrt(n)"),
        (lambda x: x / np.log(x.shape[0]), "jnp.log(n)"),
        (lambda x: np.arange(x.shape[0]) * x, "jnp.arange(n)"),
    ],
)
@pytest.mark.parametrize(
    "run", [lambda f: gradix.export.export(gradix.jit(f))(OPEN), lambda f: gradix.jit(f, symbolic="n")(X)]
)
def test_an_open_size_that_python_asks_for_names_the_line(run, f, instead):
    with pytest.raises(TypeError) as found:
        run(f)
    line = f.__code__.co_firstlineno
    assert re.search(
        rf"has several values, so Python cannot have it as a number, at .*{HERE}:{line}\.", str(found.value)
    )
    assert instead in str(found.value)


def test_branches_of_open_and_decided_sizes():
    f = lambda x: lax.cond(x[0] > 0, lambda x: x[x > 1], lambda x: x[1:], x)  # noqa: E731
    compiled = gradix.jit(f, symbolic="n")
    slope = gradix.jit(gradix.grad(lambda x: (f(x) ** 2).sum()), symbolic="n")
    for n in (6, 3, 1):
        for x in (X[:n], -X[:n]):
            check_same(f(jnp.asarray(x)), compiled(x))
            kept = x > 1 if x[0] > 0 else np.arange(n) > 0
            np.testing.assert_allclose(slope(x), np.where(kept, 2 * x, 0))


# -- with the options of jit, and across programs ---------------------------------------------------


def test_results_reach_python_and_other_programs_with_their_size():
    f = gradix.jit(lambda x: {"kept": x[x > 0], "more": x[x > 0][1:], "n": x.sum()})
    out = f(X)
    assert out["kept"].shape == (4,) and out["more"].shape == (3,)
    g = gradix.jit(lambda x: (lambda o: o["kept"] * 2 + o["more"].sum())(f(x)))
    np.testing.assert_allclose(g(X), X[X > 0] * 2 + X[X > 0][1:].sum())
    np.testing.assert_allclose(gradix.grad(lambda x: f(x)["kept"].prod())(jnp.asarray(X[:3])), [4, 0, 3])
    for _ in range(6):
        assert f(X)["kept"].shape == (4,)  # also by a frequent call's code


def test_ahead_of_time_and_donation():
    f = gradix.jit(lambda x: x[x > 0], donate_argnums=0)
    np.testing.assert_allclose(f.lower(X).compile()(jnp.asarray(X)), X[X > 0])
    np.testing.assert_allclose(f(jnp.asarray(X) + 0), X[X > 0])


def test_checks():
    f = gradix.jit(lambda x, m: jnp.log(x[m]), check="nan")
    np.testing.assert_allclose(f(X, X > 0), np.log(X[X > 0]), rtol=1e-5)
    with pytest.raises(FloatingPointError):
        f(X, X < 0)


def test_with_open_sizes():
    f = gradix.jit(lambda x: (x[x > 0], jnp.concatenate([x[x > 0], x]).sum()), symbolic="n")
    for n in (6, 4, 2):
        check_same((X[:n][X[:n] > 0], np.float32(X[:n][X[:n] > 0].sum() + X[:n].sum())), f(X[:n]))
    assert f.stats().traces == 1


def test_exported():
    from gradix import export

    f = export.export(gradix.jit(lambda x: x[x > 0].sum()))(jnp.asarray(X))
    np.testing.assert_allclose(export.deserialize(f.serialize()).call(jnp.asarray(X)), X[X > 0].sum())


def test_derivatives_of_users():
    @gradix.custom_vjp
    def f(x):
        return jnp.sin(x[x > 0]).sum()

    f.defvjp(lambda x: (f(x), (x, x[x > 0])), lambda r, g: (jnp.zeros_like(r[0]).at[r[0] > 0].set(g * jnp.cos(r[1])),))
    want = np.where(X > 0, np.cos(X), 0)
    for g in (gradix.grad(f), gradix.jit(gradix.grad(f))):
        np.testing.assert_allclose(g(jnp.asarray(X)), want, rtol=1e-5)


def test_decisions_are_followed_as_before():
    f = gradix.jit(lambda x: x[x > 0] if x[x > 0].shape[0] > 2 else x, specialize=True)
    np.testing.assert_allclose(f(X), X[X > 0])


def test_programs_with_counts_are_evaluated_with_true_sizes():
    program = gradix.make_jaxpr(lambda x: (x[x > 0], x.sum()))(X)
    from gradix._transforms.staging import jaxpr_as_fun

    check_same((X[X > 0], X.sum()), jaxpr_as_fun(program)(X))
    np.testing.assert_allclose(gradix.jit(lambda x: jaxpr_as_fun(program)(x)[0] * 2)(X), 2 * X[X > 0])


def test_loops_over_large_arrays_with_masks():
    x = jnp.asarray(np.random.default_rng(0).normal(size=9000).astype(np.float32))
    total = lax.scan(lambda c, v: (c + x[x > v].sum(), c), 0.0, x[:3])[0]
    np.testing.assert_allclose(total, sum(float(x[x > v].sum()) for v in x[:3]), rtol=1e-4)


def test_random_numbers_depend_on_their_place_only():
    key, n = gradix.random.key(0), int((X > 0).sum())
    for draw in (
        lambda n: gradix.random.bits(key, (n,), "uint8"),
        lambda n: gradix.random.normal(key, (n, 3)),
        lambda n: gradix.random.key_data(gradix.random.split(key, n)),
    ):
        check_same(draw(n), gradix.jit(lambda x, draw=draw: draw(x[x > 0].shape[0]))(X))
    with pytest.raises(NotImplementedError, match="default generator"):
        gradix.jit(lambda x: gradix.random.normal(gradix.random.key(0, impl="rbg"), x[x > 0].shape))(X)
    with pytest.raises(NotImplementedError, match="first axis"):
        gradix.jit(lambda x: gradix.random.normal(key, (3, x[x > 0].shape[0])))(X)


def test_places_in_long_rows():
    """A loop of the CPU finds places in rows from a length on; it gives what a scatter gives."""
    rng = np.random.default_rng(0)
    for n in (1 << 14, (1 << 14) + 5):
        for share in (0.0, 0.3, 1.0):
            mask = rng.random(n) < share
            size = n // 2
            for f in (lambda m: jnp.nonzero(m)[0], lambda m: jnp.nonzero(m, size=size, fill_value=-1)[0]):
                have = np.asarray(gradix.jit(f)(mask))
                gradix.config.update("gradix_rewrites", "correctness")
                np.testing.assert_array_equal(have, gradix.jit(f)(mask))
                gradix.config.update("gradix_rewrites", "all")
            np.testing.assert_array_equal(gradix.jit(lambda m: jnp.nonzero(m)[0])(mask), np.nonzero(mask)[0])
    assert "places_by_writing" in gradix.jit(lambda m: jnp.nonzero(m)[0]).lower(mask)._module.facts.rewrites


REDUCED = {
    "sum": lambda v: v.sum(),
    "variance": lambda v: jnp.append(v, 1.0).var() + v.var(),
    "norm": jnp.linalg.norm,
    "softmax": lambda v: (gradix.nn.softmax(v) * v).sum(),
    "dot": lambda v: v @ jnp.sin(v),
    "largest": lambda v: jnp.max(v, initial=0.0),
    "rows": lambda v: (v[:, None] * jnp.ones(3) @ jnp.ones((3, 2))).sum(),
    "some of both": lambda v: v.sum() * v[::-1][:1].sum(),
    "all": lambda v: jnp.where((v > 1).all(), v.sum(), 0.0),
}


@pytest.mark.parametrize("name", REDUCED)
def test_reduced_where_they_are(name):
    """Elements that are only reduced are not moved; what is computed of the others does not come through."""
    f = REDUCED[name]
    for mask in (MASKS["some"], MASKS["none"], MASKS["one"]):
        spoiled = jnp.asarray(np.where(mask, X, np.nan).astype(np.float32))
        whole = lambda x, m: f(x[m])  # noqa: E731
        np.testing.assert_allclose(gradix.jit(whole)(spoiled, mask), f(jnp.asarray(X[mask])), rtol=2e-5)
        want = np.zeros_like(X)
        want[mask] = gradix.grad(f)(jnp.asarray(X[mask]))
        np.testing.assert_allclose(gradix.jit(gradix.grad(whole))(spoiled, mask), want, rtol=2e-5, atol=1e-6)
    text = gradix.jit(gradix.grad(lambda x: jnp.log(x[x > 0]).mean())).lower(X).as_text()
    assert "scatter" not in text and "gather" not in text
