"""Contractions: dot_general, and dot and batch_matmul made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._base.config import state
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval, seen
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.divisions import entries, explicit_part, mesh_of, sums
from gradix._core.named_sharding import NamedSharding
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import bind
from gradix._ops.basis import free_axes, inverse, transpose
from gradix._ops.canonicalization import memoised
from gradix._ops.convert import convert_element_type, converter
from gradix._ops.dot_types import compute_dtype, joined_dtype, result_type, rounded_to
from gradix._ops.families import bilinear_jvp
from gradix._ops.operands import as_operand, operands
from gradix._ops.precision import canonicalize_precision, precision_asked
from gradix._ops.sharding import asked, reshard

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._ops.precision import PrecisionLike

_division = lazy_module("gradix._ops.dot_division")

# ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

_BLAS = {np.dtype(d) for d in ("float32", "float64", "complex64", "complex128")}
_NATIVE = _BLAS | {
    np.dtype(d) for d in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
# OpenBLAS uses several threads from so many multiplications on: of two matrices, and of a matrix
# with a vector.
_POOL, _POOL_OF_ROWS = 1 << 18, 1 << 13
_plans: BoundedCache[tuple, Callable] = BoundedCache(4096)
_types: BoundedCache[tuple, Any] = BoundedCache(4096)


class DotGeneral(Primitive):
    """Contract `lhs` with `rhs`.

    The result has the batch axes, then the free axes of each operand.
    """

    mesh = MeshTraits(linear="one")
    costly = True

    def abstract(self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
        key = lhs, rhs, dimension_numbers, preferred_element_type
        found = _types.get(key)
        if found is None:
            found = _types.keep(key, result_type(*key))
        return found

    def specialise(
        self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
    ):
        dtype, out = lhs.dtype, preferred_element_type
        if dtype not in _BLAS or rhs.dtype != dtype or not (out is None or out == dtype):
            return None
        (lc, rc), (lb, _) = dimension_numbers
        rows = not lb and lhs.ndim in (1, 2) and lc == (lhs.ndim - 1,) and rc == (0,) and rhs.ndim in (1, 2)
        if rows:
            return np.matmul if 1 in (lhs.size, rhs.size) else np.dot
        return _host_plan(dimension_numbers, lhs.ndim, rhs.ndim)

    def threaded(self, lhs, rhs, *, dimension_numbers, preferred_element_type=None, **params):
        if lhs.dtype in dtypes.INTEGER | dtypes.BOOL and rhs.dtype in dtypes.INTEGER | dtypes.BOOL:
            return None  # NumPy's own loops
        (lc, _), (lb, rb) = dimension_numbers
        terms = prod([lhs.shape[i] for i in lc])
        stack = prod([lhs.shape[i] for i in lb])
        if not terms * stack:
            return None
        rows, columns = lhs.size // (terms * stack), rhs.size // (terms * stack)
        work = rows * columns * terms * (4 if lhs.dtype in dtypes.COMPLEX else 1)
        return "numpy" if work >= (_POOL if min(rows, columns) > 1 else _POOL_OF_ROWS) else None

    def host(self, x, y, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
        # Test with `is`: NumPy reads `out == None` as a comparison with float64.
        dtype, out = x.dtype, preferred_element_type
        if dtype not in _NATIVE or y.dtype != dtype or not (out is None or out == dtype):
            out = joined_dtype(dtype, y.dtype) if out is None else out
            if y.dtype != dtype:
                if dtypes.BOOL & {dtype, y.dtype} and not (_is_finite(x) and _is_finite(y)):
                    return NotImplemented  # what a mask makes of NaN depends on how the compiler is asked
                return self.host(
                    converter(dtype, out)(x), converter(y.dtype, out)(y), dimension_numbers=dimension_numbers
                )
            work = compute_dtype(dtype, y.dtype, out)
            work = work if work in _NATIVE else np.dtype("float32" if work in dtypes.FLOAT else "int32")
            z = self.host(x.astype(work, copy=False), y.astype(work, copy=False), dimension_numbers=dimension_numbers)
            first = rounded_to(dtype, out)
            return _narrowed(z if first is None else _narrowed(z, first), out)
        key = dimension_numbers, x.ndim, y.ndim
        plan = _plans.get(key)
        if plan is None:
            plan = _plans.keep(key, _host_plan(*key))
        return plan(x, y)

    jvp = bilinear_jvp

    def transpose(self, ct, lhs, rhs, *, dimension_numbers, **params):
        (lc, rc), (lb, rb) = dimension_numbers
        if type(lhs) is Linear:
            return [_cotangent(ct, lhs, rhs, (lc, rc), (lb, rb), True, params=params), None]
        return [None, _cotangent(ct, rhs, lhs, (rc, lc), (rb, lb), False, params=params)]

    def batch(self, size, args, axes, *, dimension_numbers, **params):
        (lc, rc), (lb, rb) = dimension_numbers
        (x, y), (a, b) = args, axes
        if a is not None:
            lc, lb = _shifted(lc, a), _shifted(lb, a)
        if b is not None:
            rc, rb = _shifted(rc, b), _shifted(rb, b)
        if a is not None and b is not None:
            lb, rb, out = (a, *lb), (b, *rb), 0
        elif a is not None:  # mapped in one operand only: one more free axis
            out = len(lb) + free_axes(x.aval.ndim, lc, lb).index(a)
        else:
            out = x.aval.ndim - len(lc) + free_axes(y.aval.ndim, rc, rb).index(b)
        wanted = params.get("out_sharding")
        if wanted is not None:
            mapped = entries(x.aval)[a] if a is not None else entries(y.aval)[b]
            params = {
                **params,
                "out_sharding": wanted.update(
                    spec=wanted.spec.update((*wanted.spec[:out], mapped, *wanted.spec[out:]))
                ),
            }
        return bind(self, (x, y), {"dimension_numbers": ((lc, rc), (lb, rb)), **params}), out

    def sums(self, mesh, avals, params):
        return _division.product_sums(avals, params)

    def divide(self, mesh, avals, outs, params):
        return [_division.product_division(avals, outs[0].ndim, params)]

    def lower(self, em, out, x, y, *, dimension_numbers, precision=None, **_):
        # XLA requires that both operands of a product have one dtype.
        if x.aval.dtype != y.aval.dtype:
            x, y = em.convert(x, out.dtype), em.convert(y, out.dtype)
        first = rounded_to(x.aval.dtype, out.dtype)
        result = out if first is None else make_aval(out.shape, first)
        asked = precision_asked(precision, x.aval.dtype)
        return em.convert(emit_dot_general(em, result, x, y, dimension_numbers, asked), out.dtype)

    def show(self, params):
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        shown = {"dimension_numbers": (([*lc], [*rc]), ([*lb], [*rb]))}
        for name in ("precision", "preferred_element_type"):
            if params.get(name) is not None:
                shown[name] = params[name]
        return shown


dot_general_p = DotGeneral("dot_general")


def emit_dot_general(em, out, x, y, dimension_numbers, precision=None):
    """XLA's product of `x` and `y`; `precision` is what `precision_asked` gives."""
    (left, right), (x_batch, y_batch) = dimension_numbers
    attrs = (
        f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {[*x_batch]}, "
        f"rhs_batching_dimensions = {[*y_batch]}, lhs_contracting_dimensions = {[*left]}, "
        f"rhs_contracting_dimensions = {[*right]}>{em.precision_text(precision)}"
    )
    if not is_symbolic_shape((*x.aval.shape, *out.shape)):
        em.note_product("dot_general", out, x, y, attrs, prod([x.aval.shape[i] for i in left]))
    return em.op("dot_general", out, x, y, attrs=attrs)


def _shifted(axes, new: int) -> tuple:
    return tuple([i + (i >= new) for i in axes])


def _narrowed(z, out):
    if z.dtype == out:
        return z
    return converter(z.dtype, out)(z)


def _is_finite(x) -> bool:
    return x.dtype not in dtypes.INEXACT or bool(np.isfinite(x).all())


# -- host ------------------------------------------------------------------------------------------


def _product(x, y):
    """The product of vectors or matrices.

    With an operand of one element, np.dot calls a scaling routine of BLAS that takes inf · 0 for 0.
    """
    return np.dot(x, y) if x.dtype in _BLAS and x.size != 1 and y.size != 1 else np.matmul(x, y)


def _host_plan(dimension_numbers, x_ndim: int, y_ndim: int) -> Callable:
    """A function that contracts two NumPy arrays of one dtype, by BLAS or NumPy."""
    (lc, rc), (lb, rb) = dimension_numbers
    if not lb and lc == (x_ndim - 1,) and (rc, y_ndim) in (((0,), 1), ((0,), 2)) and x_ndim in (1, 2):
        return _product
    n, k = len(lb), len(lc)
    lf, rf = free_axes(x_ndim, lc, lb), free_axes(y_ndim, rc, rb)
    x_perm, y_perm = (*lb, *lf, *lc), (*rb, *rc, *rf)
    plain = len(lf) == 1 and len(rf) == 1 and k == 1
    multiply = np.matmul if n else _product

    def simple(x, y):
        return multiply(x.transpose(x_perm), y.transpose(y_perm))

    def general(x, y):
        x, y = x.transpose(x_perm), y.transpose(y_perm)
        b, xf, c, yf = (x.shape[:n], x.shape[n : n + len(lf)], x.shape[n + len(lf) :], y.shape[n + k :])
        m, inner, p = prod(xf), prod(c), prod(yf)
        return multiply(x.reshape(*b, m, inner), y.reshape(*b, inner, p)).reshape((*b, *xf, *yf))

    return simple if plain else general


# -- adjoint ---------------------------------------------------------------------------------------


@memoised
def _adjoint(x_ndim: int, y_ndim: int, contract, batch, first: bool) -> tuple:
    """Over which axes the cotangent of `x` is contracted, the axes of `x` that it then has, and how they are reordered.

    The order is None where they are in order.
    """
    (xc, yc), (xb, yb) = contract, batch
    y_free, x_free = free_axes(y_ndim, yc, yb), free_axes(x_ndim, xc, xb)
    start = len(xb) + (len(x_free) if first else 0)
    ct_y = tuple(range(start, start + len(y_free)))
    axes = (*xb, *x_free, *[xc[i] for i in sorted(range(len(yc)), key=yc.__getitem__)])
    order = inverse(axes)
    return ((ct_y, y_free), (tuple(range(len(xb))), yb)), axes, None if order == tuple(range(x_ndim)) else order


def _cotangent(ct, x: Linear, y, contract, batch, first: bool, *, params):
    """The cotangent of `x`: contract `ct` with `y` over the free axes of `y`, and reorder axes."""
    numbers, axes, order = _adjoint(x.ndim, y.aval.ndim, contract, batch, first)
    mesh = mesh_of((ct.aval, y.aval)) if seen.divisions else None
    if mesh is not None:  # the cotangent is sharded as its operand is
        row = entries(x.aval)
        params = {
            **params,
            "out_sharding": NamedSharding(mesh, PartitionSpec(*[row[i] for i in axes], unreduced=sums(x.aval).reduced)),
        }
    z = bind(dot_general_p, (ct, y), {"dimension_numbers": numbers, **params})
    z = z if order is None else transpose(z, order)
    return z if z.aval.dtype == x.dtype else convert_element_type(z, x.dtype)


# -- faces -----------------------------------------------------------------------------------------


def _axes(name: str, axes, *xs) -> tuple:
    try:
        return tuple([index(a) for a in axes])
    except TypeError:
        operands("dot_general", *xs)  # what is no array is told of first
        raise TypeError(
            "dot_general needs dimension_numbers=((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)) with sequences of integers, got {name}={axes!r}."
        ) from None


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The contraction of two arrays over some axes, batched over others.

    Args:
        lhs, rhs: arrays of any rank.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, sequences
            of axes.
        precision: a `Precision`, its name, a pair, or a `DotAlgorithm`; a hint for accelerators.
        preferred_element_type: the dtype of the result, in which products are summed; products of
            floats are summed as floats, and then converted. Operands of two dtypes are first
            converted to it; without it, to the wider dtype.

    Returns:
        An array whose axes are the batch axes, then lhs's other axes, then rhs's.

    Raises:
        TypeError: an axis does not exist or is named twice, or sizes differ.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
        (2, 4)
    """
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        operands("dot_general", lhs, rhs)
        raise TypeError(
            "dot_general needs dimension_numbers=((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)), got {dimension_numbers!r}. For a matrix product write (((1,), (0,)), ((), "
            "())), or use jnp.matmul, jnp.tensordot or jnp.einsum."
        ) from None
    numbers = (
        (_axes("lhs_contracting", lc, lhs, rhs), _axes("rhs_contracting", rc, lhs, rhs)),
        (_axes("lhs_batch", lb, lhs, rhs), _axes("rhs_batch", rb, lhs, rhs)),
    )
    return _bind_dot(lhs, rhs, numbers, precision, preferred_element_type, out_sharding)


def _bind_dot(lhs, rhs, numbers, precision, preferred, out_sharding=None):
    if not isinstance(lhs, Array):
        lhs = as_operand("dot_general", lhs)
    if not isinstance(rhs, Array):
        rhs = as_operand("dot_general", rhs)
    if preferred is not None and preferred is not lhs.aval.dtype:
        preferred = dtypes.requested_dtype(preferred, "dot_general")
    params = {
        "dimension_numbers": numbers,
        "precision": None
        if precision is None is state.jax_default_matmul_precision
        else canonicalize_precision(precision),
        "preferred_element_type": preferred,
    }
    if out_sharding is not None:
        params["out_sharding"] = asked("dot_general", out_sharding, (lhs, rhs))
    out = bind(dot_general_p, (lhs, rhs), params)
    if out_sharding is None:
        return out
    wanted = params["out_sharding"]
    if out.aval.division is not None and out.aval.division == explicit_part(wanted, out.aval.ndim):
        return out
    row = (*wanted.spec, *[None] * (out.aval.ndim - len(wanted.spec)))
    return reshard(out, wanted.update(spec=wanted.spec.update(row)))


_DOT_NUMBERS = {
    (1, 1): (((0,), (0,)), ((), ())),
    (1, 2): (((0,), (0,)), ((), ())),
    (2, 1): (((1,), (0,)), ((), ())),
    (2, 2): (((1,), (0,)), ((), ())),
}


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The product of vectors and matrices, or the contraction that `dimension_numbers` describes.

    Args:
        lhs, rhs: vectors and matrices; arrays of any rank with `dimension_numbers`.
        dimension_numbers, precision, preferred_element_type: as for `dot_general`.

    Raises:
        ValueError: `dimension_numbers` is not given, and the operands are not vectors and matrices
            of matching sizes.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.dot(jnp.arange(3.0), jnp.arange(3.0))
        Array(5., dtype=float32)
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)
    lhs, rhs = as_operand("dot", lhs), as_operand("dot", rhs)
    x, y = lhs.aval.shape, rhs.aval.shape
    numbers = _DOT_NUMBERS.get((len(x), len(y)))
    if numbers is None or x[-1] != y[0]:
        raise ValueError(
            "lax.dot: dimension_numbers must be specified when not performing simple un-batched "
            "matrix-matrix, matrix-vector, or vector-vector products with axes of equal size; got "
            f"lhs_shape={x} rhs_shape={y}. gradix.numpy.matmul also takes batched operands."
        )
    return _bind_dot(lhs, rhs, numbers, precision, preferred_element_type, out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """The products of two stacks of matrices with equal leading axes.

    Args:
        lhs: of shape (..., m, k).
        rhs: of shape (..., k, n), with the same leading axes.
        precision: as for `dot_general`.

    Raises:
        ValueError: the ranks differ or are below 2.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    lhs, rhs = as_operand("batch_matmul", lhs), as_operand("batch_matmul", rhs)
    n, m = lhs.aval.ndim, rhs.aval.ndim
    if n < 2 or m < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {n}, {m}.")
    if n != m:
        raise ValueError(
            f"Arguments to batch_matmul must have same ndim, got {n}, {m}. "
            "gradix.numpy.matmul broadcasts the leading axes."
        )
    stack = tuple(range(n - 2))
    return _bind_dot(lhs, rhs, (((n - 1,), (n - 2,)), (stack, stack)), precision, None)
