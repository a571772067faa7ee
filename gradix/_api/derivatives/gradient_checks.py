"""Compares derivatives with finite differences: check_grads, check_jvp, check_vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradix._api.boundary import arrays
from gradix._api.derivatives.autodiff import jvp, vjp
from gradix._base.tracebacks import boundary
from gradix._base.tree import keystr, tree_flatten as flatten, tree_flatten_with_path
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._ops.basis import is_differentiable

# bytes of a real number -> the step of a difference of fourth order
_EPS = {2: 5e-2, 4: 1e-2, 8: 1e-3}
# The steps tried next, as parts of that one, where differences disagree: a kink may be near.
_FINER = (0.1, 0.01)
_ROUNDINGS = {2: 2.0**-8, 4: 2.0**-24, 8: 2.0**-53}
# the least finer step, in roundings of the largest argument
_VISIBLE = 16
_TOLERANCE = {2: 1e-1, 4: 2e-3, 8: 1e-5}
_MODES = ("fwd", "rev")


@boundary
def check_grads(
    f: Callable,
    args: Sequence,
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` at `args`, up to `order`, with finite differences.

    The differences are taken along a random direction. Forward mode is compared with them, reverse
    mode with their adjoint. Each derivative is then itself checked, to an order less by one.

    Args:
        f: a function of arrays, or pytrees of them, to the same; integers are held fixed.
        args: a tuple of arguments.
        order: the highest order of the derivatives.
        modes: "fwd", "rev" or both.
        atol, rtol: tolerances, or dicts from dtypes to tolerances. The default depends on the
            coarsest float dtype that occurs.
        eps: the step of the differences. The default depends on the dtype. Where the differences
            disagree, a tenth and a hundredth of it are tried as well, since a jump or kink of `f`
            may be near, unless these are too close to the rounding of the arguments.

    Raises:
        AssertionError: a derivative differs; the message says which mode, order and leaf.
        ValueError: a mode is not known.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.test_util import check_grads
        >>> check_grads(lambda x: jnp.sin(x) * x, (0.5,), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [m for m in modes if m not in _MODES]
    if unknown or not modes:
        raise ValueError(f'check_grads: modes are "fwd" and "rev", got {", ".join(map(repr, unknown)) or "none"}.')
    _check(f, tuple(args), order, modes, atol, rtol, eps=eps, path="")


def _check(f, args, order: int, modes, atol, rtol, *, eps, path: str) -> None:
    if order < 1:
        return
    if "fwd" in modes:
        where = f"{path}forward mode"
        check_jvp(f, partial(jvp, f), args, atol, rtol, eps, where)
        _check(partial(_pushed, f, args), _inexact(args)[0], order - 1, modes, atol, rtol, eps=eps, path=f"{where} of ")
    if "rev" in modes:
        where = f"{path}reverse mode"
        check_vjp(f, partial(vjp, f), args, atol, rtol, eps, where)
        _check(partial(_pulled, f, args), _inexact(args)[0], order - 1, modes, atol, rtol, eps=eps, path=f"{where} of ")


@boundary
def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a forward-mode derivative of `f` with finite differences of `f`.

    Args:
        f: a function of arrays, or pytrees of them, to the same.
        f_jvp: a function of a tuple of arguments and a tuple of tangents that returns the value and
            the tangent, such as `partial(gradix.jvp, f)`.
        args: a tuple of arguments.
        atol, rtol, eps: as for `check_grads`.
        err_msg: the beginning of the message of the error.

    Raises:
        AssertionError: the value or the tangent differs.

    Example:
        >>> import functools, gradix, gradix.numpy as jnp
        >>> from gradix.test_util import check_jvp
        >>> check_jvp(jnp.sin, functools.partial(gradix.jvp, jnp.sin), (0.5,))
    """
    given = _Point(f, args, atol, rtol, eps)
    tangents = given.direction(1)
    y, t = f_jvp(tuple(args), given.as_tangents(tangents))
    given.compare(y, f(*args), f"{err_msg}: value")
    given.confirm(lambda: given.compare(t, given.slope(tangents), f"{err_msg}: tangent"))


@boundary
def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a reverse-mode derivative of `f` with finite differences of `f`.

    Args:
        f: a function of arrays, or pytrees of them, to the same.
        f_vjp: a function of the arguments that returns the value and the pullback, such as
            `partial(gradix.vjp, f)`.
        args: a tuple of arguments.
        atol, rtol, eps: as for `check_grads`.
        err_msg: the beginning of the message of the error.

    Raises:
        AssertionError: the value differs, or ⟨ct, slope⟩ is not ⟨cotangents, direction⟩.

    Example:
        >>> import functools, gradix, gradix.numpy as jnp
        >>> from gradix.test_util import check_vjp
        >>> check_vjp(jnp.sin, functools.partial(gradix.vjp, jnp.sin), (0.5,))
    """
    given = _Point(f, args, atol, rtol, eps)
    y, pull = f_vjp(*args)
    given.compare(y, f(*args), f"{err_msg}: value")
    ct, direction = _random(y, 2), given.direction(3)
    back = pull(_tree_like(y, ct))
    backward = _inner(flatten(back)[0], direction)

    def compare():
        forward = _inner(ct, [np.asarray(s) for s in flatten(given.slope(direction))[0]])
        given.compare(backward, forward, f"{err_msg}: cotangent along the direction", _coarsest([*ct, *direction]))

    given.confirm(compare)


class _Point:
    """A function at its arguments, its differences there, and how exact they are."""

    def __init__(self, f, args, atol, rtol, eps):
        self.f, self.args = f, tuple(args)
        leaves, self.tree = flatten(self.args)
        self.leaves = arrays("check_grads", leaves, self.tree, "args")
        sizes = [_real_size(x.aval.dtype) for x in self.leaves if is_differentiable(x.aval)]
        self.size = min(sizes, default=4)
        self.eps = _EPS[self.size] if eps is None else eps
        self.steps = [self.eps, *(self._finer() if eps is None else ())]
        self.atol, self.rtol = atol, rtol

    def _finer(self) -> list:
        """Smaller steps that still move the arguments: else a wrong derivative of 0 would agree."""
        sizes = [np.max(np.abs(_wide(np.asarray(x))), initial=1.0) for x in self.leaves if is_differentiable(x.aval)]
        least = _VISIBLE * _ROUNDINGS[self.size] * max(sizes, default=1.0)
        return [self.eps * f for f in _FINER if self.eps * f >= least]

    def direction(self, seed: int) -> list:
        return _random(self.args, seed)

    def as_tangents(self, direction):
        return self.tree.unflatten(direction)

    def slope(self, direction):
        """The derivative along a direction by a central difference of fourth order."""

        def at(step):
            moved = [
                x if t.dtype == dtypes.float0 else as_array((np.asarray(x) + step * t).astype(x.aval.dtype))
                for x, t in zip(self.leaves, direction)
            ]
            return flatten(self.f(*self.tree.unflatten(moved)))

        e = self.eps
        (near, tree), far = at(e), at(2 * e)[0]
        behind, far_behind = at(-e)[0], at(-2 * e)[0]
        out = [_difference(*values, e) for values in zip(near, behind, far, far_behind)]
        return tree.unflatten(out)

    def confirm(self, comparison: Callable) -> None:
        """Try each step until the comparison succeeds; a wrong derivative agrees with none."""
        failures = []
        for step in self.steps:
            self.eps = step
            try:
                return comparison()
            except AssertionError as e:
                failures.append(e)
        raise failures[0]

    def compare(self, got, want, what: str, dtype=None) -> None:
        """Compare leaf by leaf; `dtype` is what the values were computed in, if not their own."""
        (got, _), (want, _) = tree_flatten_with_path(got), tree_flatten_with_path(want)
        for (path, a), (_, b) in zip(got, want):
            a, b = np.asarray(a), np.asarray(b)
            if a.dtype == dtypes.float0:
                continue
            tolerance = _TOLERANCE[min(self.size, _real_size(b.dtype))]
            np.testing.assert_allclose(
                _wide(a),
                _wide(b),
                rtol=_given(self.rtol, dtype or b.dtype, tolerance),
                atol=_given(self.atol, dtype or b.dtype, tolerance),
                err_msg=f"{what.removeprefix(': ')} {keystr(path)}".strip(),
            )


def _given(tolerance, dtype, default: float) -> float:
    """A tolerance that the user gave, as a number or by dtype."""
    if isinstance(tolerance, dict):
        tolerance = {np.dtype(k): v for k, v in tolerance.items()}.get(dtype)
    return default if tolerance is None else tolerance


def _difference(near, behind, far, far_behind, e):
    near, behind, far, far_behind = (np.asarray(v) for v in (near, behind, far, far_behind))
    if near.dtype not in dtypes.INEXACT:
        return np.zeros(near.shape, dtypes.float0)
    with np.errstate(invalid="ignore"):
        slope = (8 * _change(near, behind) - _change(far, far_behind)) / (12 * e)
    return slope.astype(near.dtype)


def _change(ahead, behind):
    """The difference of two values of a function: 0 for equal infinite ones, as where a window is empty."""
    ahead, behind = _wide(ahead), _wide(behind)
    return np.where(ahead == behind, 0, ahead - behind)


def _real_size(dtype) -> int:
    if dtype not in dtypes.INEXACT:
        return 8
    return max(2, dtype.itemsize // (2 if dtype in dtypes.COMPLEX else 1))


def _coarsest(leaves):
    """The coarsest dtype among those of leaves that have derivatives."""
    return min([x.dtype for x in leaves if x.dtype in dtypes.INEXACT], key=_real_size, default=None)


def _wide(x):
    if x.dtype not in dtypes.INEXACT:
        return x
    return x.astype(np.complex128 if x.dtype in dtypes.COMPLEX else np.float64)


def _random(tree, seed: int) -> list:
    """For each leaf a random direction of its dtype; float0 for what has no derivative."""
    rng, out = np.random.default_rng(seed), []
    for leaf in flatten(tree)[0]:
        aval = as_array(leaf).aval
        if not is_differentiable(aval):
            out.append(np.zeros(aval.shape, dtypes.float0))
            continue
        x = rng.standard_normal(aval.shape)
        if aval.dtype in dtypes.COMPLEX:
            x = x + 1j * rng.standard_normal(aval.shape)
        out.append(np.asarray(x).astype(aval.dtype))
    return out


def _tree_like(tree, leaves):
    return flatten(tree)[1].unflatten(leaves)


def _inner(xs, ys):
    """The real pairing Re Σ x·y, in which reverse mode is the adjoint of forward mode."""
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(xs, ys)]
    return sum([np.real(np.sum(_wide(x) * _wide(y))) for x, y in pairs if dtypes.float0 not in (x.dtype, y.dtype)], 0.0)


def _inexact(args) -> tuple[tuple, Callable]:
    """The leaves that have derivatives, and a function that puts such leaves back."""
    leaves, tree = flatten(args)
    active = [is_differentiable(as_array(x).aval) for x in leaves]

    def rebuilt(values):
        given = iter(values)
        return tree.unflatten([next(given) if a else x for x, a in zip(leaves, active)])

    return tuple([x for x, a in zip(leaves, active) if a]), rebuilt


def _pushed(f, args, *values):
    """The derivative of `f` along a fixed direction, as a function of the differentiable leaves."""
    rebuilt = _inexact(args)[1](values)
    out = jvp(f, rebuilt, flatten(args)[1].unflatten(_random(args, 4)))
    return _without_float0(out)


def _pulled(f, args, *values):
    """The value of `f`, and its pullback of a fixed cotangent."""
    y, pull = vjp(f, *_inexact(args)[1](values))
    ct = [
        np.zeros(v.aval.shape, dtypes.float0)
        if not is_differentiable(v.aval)
        else np.cos(np.arange(v.aval.size) + 1.0).reshape(v.aval.shape).astype(v.aval.dtype)
        for v in map(as_array, flatten(y)[0])
    ]
    return _without_float0((y, pull(_tree_like(y, ct))))


def _without_float0(tree) -> list:
    return [x for x in flatten(tree)[0] if getattr(x, "dtype", None) != dtypes.float0]
