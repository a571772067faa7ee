"""Polynomials through points, and their roots."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

X, Y = np.arange(5, dtype="f4"), np.array([1, 0, 3, 2, 9], "f4")
COLUMNS = np.stack([Y, Y * Y], 1)


@pytest.mark.parametrize(
    "p", [(1, -3, 2), (0, 0, 1, -3, 2, 0), (0, 0, 0), (), (2,), (0, 2), (1, 2j, 3), (1, 2, 3, 4, 5)]
)
def test_roots(p):
    p = np.array(p, "c8" if any(isinstance(c, complex) for c in p) else "f4")
    got, want = np.sort_complex(np.asarray(jnp.roots(p))), np.sort_complex(np.roots(p))
    np.testing.assert_allclose(got, want, atol=2e-5)
    assert got.dtype == "complex64"
    padded = gradix.jit(lambda p: jnp.roots(p, strip_zeros=False))(p)
    assert padded.shape == (max(len(p) - 1, 0),)
    known = np.asarray(padded)[: len(want)]
    np.testing.assert_allclose(np.sort_complex(known), want, atol=2e-5)
    assert np.isnan(np.asarray(padded)[len(want) :]).all()


def test_roots_of_traced_coefficients():
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="strip_zeros=False"):
        gradix.jit(jnp.roots)(Y)
    with pytest.raises(ValueError, match="must be a vector"):
        jnp.roots(COLUMNS)
    # (x - 1)(x - 2): a root moves by -p(root)/p'(root) of the change.
    np.testing.assert_allclose(
        gradix.jacfwd(lambda p: jnp.roots(p, strip_zeros=False).real)(np.array([1, -3, 2], "f4")),
        [[-4, -2, -1], [1, 1, 1]],
        rtol=1e-5,
    )


@pytest.mark.parametrize("y", [Y, COLUMNS], ids=["vector", "columns"])
@pytest.mark.parametrize(
    "kw",
    [
        {},
        {"full": True},
        {"cov": True},
        {"cov": "unscaled"},
        {"w": np.arange(1, 6, dtype="f4")},
        {"w": np.arange(1, 6, dtype="f4"), "cov": True},
    ],
    ids=str,
)
def test_polyfit(y, kw):
    got, want = jnp.polyfit(X, y, 2, **kw), np.polyfit(X.astype("f8"), y, 2, **kw)
    got, want = (list(r) if isinstance(r, tuple) else [r] for r in (got, want))
    if kw.get("full"):
        got.pop(), want.pop()  # rcond: the rounding of the dtype
    for g, w in zip(got, want, strict=True):
        if np.ndim(g) == 3 and np.ndim(w) == 2:
            w = w[..., None]
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


def test_polyfit_is_linear_in_the_values():
    back = gradix.grad(lambda y: jnp.polyfit(X, y, 2) @ np.array([1, 2, 3], "f4"))(Y)
    unit = np.stack([np.polyfit(X, e, 2) for e in np.eye(5)]) @ [1, 2, 3]
    np.testing.assert_allclose(back, unit, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "args, kw, kind, pattern",
    [
        ((X, Y, -1), {}, ValueError, "deg must not be negative"),
        ((X[:, None], Y, 1), {}, TypeError, "x must be a vector"),
        ((X[:0], Y[:0], 1), {}, TypeError, "not be empty"),
        ((X, Y[None, None], 1), {}, TypeError, "y must be a vector or a matrix"),
        ((X, Y[:3], 1), {}, TypeError, "same length"),
        ((X, Y, 1), {"w": X[:3]}, TypeError, "length of x"),
        ((X, Y, 1), {"w": COLUMNS}, TypeError, "w must be a vector"),
        ((X[:3], Y[:3], 2), {"cov": True}, ValueError, "too few to scale"),
    ],
)
def test_polyfit_told_wrong(args, kw, kind, pattern):
    with pytest.raises(kind, match=pattern):
        jnp.polyfit(*args, **kw)


def test_characteristic_polynomial():
    np.testing.assert_allclose(jnp.poly(np.array([[1, 2], [3, 4]], "f4")), [1, -5, -2], rtol=1e-5)
    with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
        jnp.poly(np.ones((2, 3), "f4"))
