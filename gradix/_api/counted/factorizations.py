"""Mask rules of linear algebra: a square matrix gets a diagonal block past its size.

The values of the block of a spectral decomposition are larger than all others, so that they and
their vectors are the last ones, and nothing of the matrix is mixed with them. Rows and columns of
zeros change nothing in a QR factorization, and add singular values of zero.
"""

from __future__ import annotations

import ml_dtypes

from gradix._api.counted.masking import INDEX, fitted, refuse, rule
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs as abs_, add, mul, sub
from gradix._ops.basis import broadcast_in_dim, reduce_sum
from gradix._ops.comparison import eq, gt, le, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.indexing.slicing import pad
from gradix._ops.linalg.base import adjoint
from gradix._ops.linalg.qr import qr_p
from gradix._ops.reductions import reduce_max
from gradix._ops.select import select
from gradix._ops.sorting.sort import sort


def _with_identity(S, e, x, shape, value=None):
    """The matrices with an identity block past their size, times a value for each if it is given."""
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
    if value is not None:
        identity = mul(identity, broadcast_in_dim(value, bounds, range(n - 2)))
    return select(S.live(shape, S.open(shape, (n - 2, n - 1))), x, identity)


@rule("cholesky", "lu")
def _square(S, e, x):
    return S.same(e, [_with_identity(S, e, x, e.invars[0].aval.shape)])


@rule("schur")
def _schur(S, e, x):
    # A block that nothing couples to the matrix is last among the blocks that LAPACK finds.
    return S.same(e, [_with_identity(S, e, x, e.invars[0].aval.shape)])


@rule("hessenberg", "tridiagonal", "householder_product")
def _reflected(S, e, x, *others):
    """Of zeros, reflections are identities."""
    shape = e.invars[0].aval.shape
    n = len(shape)
    x = S.filled(x, shape, (n - 2, n - 1), 0)
    others = [S.filled(y, v.aval.shape, (n - 2,), 0) for y, v in zip(others, e.invars[1:])]
    outs = S.same(e, [x, *others])
    if not e.primitive.multiple_results:
        return outs
    return [_cut(S, y, v) for y, v in zip(outs, e.outvars)]


def _cut(S, y, v):
    """A buffer of the greatest size of a variable."""
    for axis, d in enumerate(v.aval.shape):
        y = fitted(y, axis, S.bound(d))
    return y


@rule("cholesky_update")
def _cholesky_update(S, e, r, w):
    shape = e.invars[1].aval.shape
    return S.same(e, [_with_identity(S, e, r, e.invars[0].aval.shape), S.filled(w, shape, (len(shape) - 1,), 0)])


@rule("tridiagonal_solve")
def _tridiagonal_solve(S, e, lower, middle, upper, b):
    shape = e.invars[0].aval.shape
    axis = len(shape) - 1
    if S.open(shape, (axis,)):
        lower, middle = S.filled(lower, shape, (axis,), 0), S.filled(middle, shape, (axis,), 1)
        at = broadcasted_iota(INDEX, upper.aval.shape, axis)
        is_above = lt(at, broadcast_in_dim(sub(S.value(shape[axis]), full((), 1, INDEX)), upper.aval.shape, ()))
        upper = select(is_above, upper, full(upper.aval.shape, 0, upper.aval.dtype))
    return S.same(e, [lower, middle, upper, S.filled(b, e.invars[3].aval.shape, (axis,), 0)])


@rule("triangular_solve")
def _triangular_solve(S, e, a, b):
    shape = e.invars[1].aval.shape
    side = len(shape) - 2 if e.params["left_side"] else len(shape) - 1
    return S.same(e, [_with_identity(S, e, a, e.invars[0].aval.shape), S.filled(b, shape, (side,), 0)])


@rule("lu_pivots_to_permutation")
def _permutation(S, e, pivots):
    shape = e.invars[0].aval.shape
    place = broadcasted_iota(INDEX, pivots.aval.shape, len(shape) - 1)  # exchanged with themselves
    opened = S.open(shape, (len(shape) - 1,))
    return S.same(e, [select(S.live(shape, opened), pivots, place) if opened else pivots])


# -- values and vectors ----------------------------------------------------------------------------


def _larger_value(S, x, shape, triangle: str):
    """For each matrix a number larger than its eigenvalues, which one triangle says.

    The sums of rows and columns of that triangle bound them.
    """
    n = len(shape)
    size = abs_(S.filled(x, shape, (n - 2, n - 1), 0))
    i, j = [broadcasted_iota(INDEX, x.aval.shape, a) for a in (n - 2, n - 1)]
    inside = le(j, i) if triangle == "L" else le(i, j)
    size = select(inside, size, full(x.aval.shape, 0, size.aval.dtype))
    sums = [reduce_max(reduce_sum(size, (axis,)), (n - 2,)) for axis in (n - 2, n - 1)]
    bound = add(*sums)
    bound = add(bound, bound)
    zero, one = [full(bound.aval.shape, v, bound.aval.dtype) for v in (0, 1)]
    return convert_element_type(select(eq(bound, zero), one, bound), x.aval.dtype)


@rule("eigh")
def _eigh(S, e, x):
    shape = e.invars[0].aval.shape
    if not S.open(shape, (len(shape) - 2,)):
        return S.same(e, [x])
    value = _larger_value(S, x, shape, "L" if e.params["lower"] else "U")
    return S.same(e, [_with_identity(S, e, x, shape, value)])  # ascending, so that they come last


@rule("eig")
def _eig(S, e, x):
    shape = e.invars[0].aval.shape
    n = len(shape)
    if not S.open(shape, (n - 2,)):
        return S.same(e, [x])
    # the values of the block are larger than all others by half at least
    value = add(*[_larger_value(S, x, shape, triangle) for triangle in "LU"])
    values, *vectors = S.same(e, [_with_identity(S, e, x, shape, value)])
    limit = abs_(mul(value, full(value.aval.shape, 0.75, value.aval.dtype)))
    is_added = gt(abs_(values), broadcast_in_dim(limit, values.aval.shape, range(n - 2)))
    key = convert_element_type(is_added, INDEX)
    (_, values) = sort((key, values), dimension=n - 2, num_keys=1)
    columns = broadcast_in_dim(key, x.aval.shape, (*range(n - 2), n - 1))
    return [values, *[sort((columns, v), dimension=n - 1, num_keys=1)[1] for v in vectors]]


@rule("svd")
def _svd(S, e, x):
    shape = e.invars[0].aval.shape
    n = len(shape)
    if not S.open(shape, (n - 2, n - 1)):
        return S.same(e, [x])
    # zeros add values of zero after the others
    s, *sides = S.same(e, [S.filled(x, shape, (n - 2, n - 1), 0)])
    if sides:
        limit = full(s.aval.shape, max(x.aval.shape[n - 2 :]) * _unit(s.aval.dtype), s.aval.dtype)
        is_zero = le(s, mul(limit, broadcast_in_dim(reduce_max(s, (n - 2,)), s.aval.shape, range(n - 2))))
        u, vh = sides
        sides = [_completed(S, u, is_zero, shape[n - 2]), adjoint(_completed(S, adjoint(vh), is_zero, shape[n - 1]))]
    outs = [s, *sides]
    for i, v in enumerate(e.outvars):
        for axis in range(n - 2, len(v.aval.shape)):
            outs[i] = fitted(outs[i], axis, S.bound(v.aval.shape[axis]))
    return outs


def _unit(dtype) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


def _completed(S, vectors, is_zero, size):
    """Orthonormal columns, of which those of values of zero also have nothing past the size.

    They are found by a QR factorization of the others beside columns of zeros.
    """
    shape = vectors.aval.shape
    n, columns = len(shape), shape[-1]
    is_zero = broadcast_in_dim(
        pad(is_zero, full((), True), [*[(0, 0, 0)] * (n - 2), (0, columns - is_zero.aval.shape[-1], 0)]),
        shape,
        (*range(n - 2), n - 1),
    )
    nothing = full(shape, 0, vectors.aval.dtype)
    known = S.filled(select(is_zero, nothing, vectors), (*shape[:-2], size, columns), (n - 2,), 0)
    basis, _ = bind(qr_p, (known,), {"pivoting": False, "full_matrices": False, "use_magma": None})
    return select(is_zero, basis, known)


@rule("qr")
def _qr(S, e, x):
    shape, n = e.invars[0].aval.shape, len(e.invars[0].aval.shape)
    if e.params["pivoting"] and S.open(shape, (n - 2, n - 1)):
        raise refuse(
            e, "a QR factorization with pivoting of matrices whose sizes values decide", "factorize without pivoting"
        )
    outs = S.same(e, [S.filled(x, shape, (n - 2, n - 1), 0)])
    for i, v in enumerate(e.outvars):
        for axis in (n - 2, n - 1):
            outs[i] = fitted(outs[i], axis, S.bound(v.aval.shape[axis]))
    return outs


@rule("coupling")
def _coupling(S, e, *xs):
    return S.same(e, xs)


@rule("symmetric_product")
def _symmetric_product(S, e, a, c):
    shape = e.invars[0].aval.shape
    return S.same(e, [S.filled(a, shape, (len(shape) - 1,), 0), c])
