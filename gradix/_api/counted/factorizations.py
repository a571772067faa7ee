"""Mask rules of linear algebra: a square matrix gets an identity block past its size."""

from __future__ import annotations

from gradix._api.counted.masking import INDEX, refuse, rule
from gradix._ops.comparison import eq
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.select import select


def _with_identity(S, e, x, shape):
    if not S.open(shape, (len(shape) - 2, len(shape) - 1)):
        return x
    if shape[-1] is not shape[-2]:
        raise refuse(
            e,
            f"{e.primitive.name} of matrices that are not square, {shape[-2]} by {shape[-1]}",
            "fix the sizes with jnp.nonzero(mask, size=n)",
        )
    bounds, n = S.shape(shape), len(shape)
    i, j = [broadcasted_iota(INDEX, bounds, a) for a in (n - 2, n - 1)]
    identity = convert_element_type(eq(i, j), x.aval.dtype)
    return select(S.live(shape, S.open(shape, (n - 2, n - 1))), x, identity)


@rule("cholesky", "lu")
def _square(S, e, x):
    return S.same(e, [_with_identity(S, e, x, e.invars[0].aval.shape)])


@rule("triangular_solve")
def _triangular_solve(S, e, a, b):
    shape = e.invars[1].aval.shape
    side = len(shape) - 2 if e.params["left_side"] else len(shape) - 1
    return S.same(
        e, [_with_identity(S, e, a, e.invars[0].aval.shape), S.filled(b, shape, (side,), 0)]
    )


@rule("lu_pivots_to_permutation")
def _permutation(S, e, pivots):
    return S.same(e, [pivots])
