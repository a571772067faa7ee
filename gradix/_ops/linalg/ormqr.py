"""Products with the orthogonal factor of a QR factorization, without making it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits
from gradix._core.trace import bind
from gradix._ops.basis import move_axis
from gradix._ops.complex_parts import conj
from gradix._ops.linalg.base import Factorization, check_matrices, each, lapack, routine
from gradix._ops.operands import operands
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


class Ormqr(Factorization):
    """`Q c`, `Qᴴ c`, `c Q` or `c Qᴴ` for the product Q of reflections; linear in `c`."""

    mesh = MeshTraits(linear="last")

    def abstract(self, a, taus, c, *, left, transpose):
        *lead, m, n = check_matrices(self.name, a)
        check_matrices(self.name, c)
        kinds = [a.dtype, taus.dtype, c.dtype]
        if len(set(kinds)) > 1:
            raise TypeError(
                "lax.ormqr requires arguments to have the same dtypes, got "
                f"{', '.join(map(dtypes.dtype_name, kinds))}. Convert them with .astype."
            )
        if not tuple(lead) == taus.shape[:-1] == c.shape[:-2] or taus.ndim != a.ndim - 1:
            raise TypeError(
                "All inputs to ormqr must have the same leading axes, but got shapes "
                f"{a.shape}, {taus.shape} and {c.shape}. Use vmap, or gradix.numpy.broadcast_to."
            )
        if taus.shape[-1] > min(m, n):
            raise ValueError(f"ormqr takes at most min{(m, n)} taus for matrices of shape {a.shape}, got {taus.shape}.")
        if c.shape[-2 if left else -1] != m:
            raise ValueError(
                f"ormqr with left={left} expects c to have the same number of "
                f"{'rows' if left else 'columns'} as the Householder matrix a has rows. Got a shape "
                f"{a.shape} and c shape {c.shape}."
            )
        return make_aval(c.shape, c.dtype, all(x.weak_type for x in (a, taus, c)))

    def host(self, a, taus, c, *, left, transpose):
        if not c.size or not taus.size:
            return c
        apply = getattr(_lapack, routine(c.dtype, "ormqr", "unmqr"))
        count, side = taus.shape[-1], "L" if left else "R"
        how = "N" if not transpose else "C" if c.dtype.kind == "c" else "T"
        work = 64 * max(c.shape[-1], c.shape[-2])
        (out,) = each(
            lambda v, t, x: [apply(side, how, v[:, :count], t, x, work)[0]],
            c.shape[:-2],
            [(c.shape[-2:], c.dtype)],
            a,
            taus,
            c,
        )
        return out

    def jvp(self, primals, tangents, **params):
        a, taus, _ = primals
        if tangents[0] is not None or tangents[1] is not None:
            raise self.missing(
                "jvp",
                "differentiation with respect to the reflections",
                "make Q with lax.linalg.qr, which has derivatives, and multiply",
            )
        return bind(self, primals, params), None if tangents[2] is None else bind(self, (a, taus, tangents[2]), params)

    def transpose(self, ct, a, taus, c, *, left, transpose):
        if type(a) is Linear or type(taus) is Linear:
            raise self.missing(
                "transpose", "reverse-mode differentiation with respect to the reflections", "make Q with lax.linalg.qr"
            )
        is_complex = ct.aval.dtype in dtypes.COMPLEX
        # The transpose of Q is the conjugate of Qᴴ.
        back = bind(self, (a, taus, conj(ct) if is_complex else ct), {"left": left, "transpose": not transpose})
        return [None, None, conj(back) if is_complex else back]

    def batch(self, size, args, axes, *, left, transpose):
        a, taus, c = args
        if axes[0] is not None or axes[1] is not None or not c.aval.size:
            return super().batch(size, args, axes, left=left, transpose=transpose)
        # With one Q, many matrices are joined beside each other, or on top of each other.
        at = c.aval.ndim - (2 if left else 3)
        moved = move_axis(c, axes[2], at)
        shape = moved.aval.shape
        joined = reshape(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
        return reshape(bind(self, (a, taus, joined), {"left": left, "transpose": transpose}), shape), at

    def lower(self, em, out, a, taus, c, *, left, transpose):
        if not out.size or not taus.aval.size:
            return c
        (found,) = lapack(
            em,
            routine(out.dtype, "ormqr", "unmqr"),
            [a, taus, c],
            [out],
            (True, False, True, True),
            {"left": left, "transpose": transpose},
            aliases={0: 2},
        )
        return found

    def show(self, params):
        return dict(sorted(params.items()))


ormqr_p = Ormqr("ormqr")


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of `c` with the matrix Q of a QR factorization, from its reflections.

    Args:
        a: matrices with the vectors of the reflections in the columns below the diagonal, shape
            (..., m, n).
        taus: the factors of the reflections, at most min(m, n).
        c: matrices, with m rows, or m columns where Q stands on the right.
        left: `Q c`; otherwise `c Q`.
        transpose: with `Qᴴ` instead of Q.

    Returns:
        Matrices of the shape of `c`. Derivatives are with respect to `c`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> h, taus = jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="raw")
        >>> lax.linalg.ormqr(h.mT, taus, jnp.array([[-5.0], [0.0]])).round(5)
        Array([[3.],
               [4.]], dtype=float32)
    """
    return bind(ormqr_p, operands("ormqr", a, taus, c), {"left": bool(left), "transpose": bool(transpose)})
