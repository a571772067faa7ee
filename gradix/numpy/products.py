"""Products of vectors, of matrices, and of stacks of these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix._core.promotion import promote_pair
from gradix.numpy.arithmetic import multiply
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, promote_dtypes
from gradix.numpy.shapes import moveaxis, ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

MATRICES = (((1,), (0,)), ((), ()))


def contract(x: Array, y: Array, numbers, precision=None, preferred_element_type=None, left=None) -> Array:
    """`lax.dot_general` with the result in the promoted dtype of both operands.

    With a sharding `left` the sum over the mesh axes over which that is unreduced is left to be finished.
    """
    if left is not None:
        dtype = (
            preferred_element_type
            or promote_pair(x.aval.dtype, x.aval.weak_type, y.aval.dtype, y.aval.weak_type, dtypes.promotion_mode())[0]
        )
        return lax.dot_general(x, y, numbers, precision, dtype, out_sharding=left)
    if preferred_element_type is not None:
        out = lax.dot_general(x, y, numbers, precision, preferred_element_type)
        return convert(out, out.aval.dtype)
    a, b = x.aval, y.aval
    if a.dtype == b.dtype and a.weak_type == b.weak_type:
        return lax._dot_general(x, y, numbers, precision, a.dtype)
    dtype, weak = promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type, dtypes.promotion_mode())
    return convert(lax._dot_general(x, y, numbers, precision, dtype), dtype, weak)


# -- matrices --------------------------------------------------------------------------------------


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The product of two matrices, or of each two in stacks of matrices.

    Args:
        a, b: arrays of shapes (..., m, k) and (..., k, n), whose leading axes broadcast; or a
            vector of size k, which is a row on the left and a column on the right.
        precision: a `lax.Precision`, its name, or a pair of them; a hint for accelerators.
        preferred_element_type: the dtype of the result, in which products are summed.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape (..., m, n), without the axis m or n for a vector, in the promoted dtype.

    Raises:
        ValueError: an operand is a scalar (use `*`), or the leading axes do not broadcast.
        TypeError: the sizes k differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
        (2, 4)
    """
    if out_sharding is not None:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return divided(matmul, out_sharding, a, b, leaves_sums=_matmul, **options)
    return _matmul(None, a, b, precision, preferred_element_type)


def _matmul(left, a, b, precision=None, preferred_element_type=None) -> Array:
    """As `matmul`; `left` as for `contract`."""
    x = a if isinstance(a, Array) else as_operand("matmul", a)
    y = b if isinstance(b, Array) else as_operand("matmul", b, 1)
    if x.aval.ndim == 2 and y.aval.ndim == 2:
        try:
            return contract(x, y, MATRICES, precision, preferred_element_type, left)
        except TypeError as error:
            raise _in_terms_of("matmul", a, b, 0, error) from None
    for i, v in enumerate((x, y)):
        if not v.aval.ndim:
            raise ValueError(f"matmul: operand {i} is a scalar, but must have at least 1 axis. Use `*` for it.")
    drop_x, drop_y, numbers, order = _matmul_plan(x.aval.shape, y.aval.shape)
    x = lax.squeeze(x, drop_x) if drop_x else x
    y = lax.squeeze(y, drop_y) if drop_y else y
    try:
        out = contract(x, y, numbers, precision, preferred_element_type, before_transpose(left, order))
    except TypeError as error:
        raise _in_terms_of("matmul", a, b, max(np.ndim(b) - 2, 0), error) from None
    return out if order is None else lax.transpose(out, order)


def before_transpose(left, order: tuple | None):
    """The sharding of an array that a transpose brings under the sharding `left`."""
    if left is None or order is None:
        return left
    row = [*left.spec, *[None] * (len(order) - len(left.spec))]
    return left.update(spec=left.spec.update(partitions=tuple([row[order.index(i)] for i in range(len(order))])))


def _in_terms_of(name: str, a, b, axis: int, error: TypeError) -> TypeError:
    """The error of a contraction over the last axis of `a` and an axis of `b`, for the user."""
    x, y = np.shape(a), np.shape(b)
    if not x or not y or x[-1] == y[axis]:
        return error
    return TypeError(
        f"{name}: shapes {x} and {y} do not fit: the products are summed over axis {len(x) - 1} of "
        f"the first, of size {x[-1]}, and axis {axis} of the second, of size {y[axis]}. Transpose "
        "one of them, or check which axes you mean."
    )


@lru_cache(4096)
def _matmul_plan(x: tuple, y: tuple):
    """The axes of size 1 to drop from each operand, dimension numbers, and the result's order."""
    nx, ny = max(len(x) - 2, 0), max(len(y) - 2, 0)
    lead = max(nx, ny)
    drop_x, drop_y, kept_x, kept_y, batch = [], [], [], [], []
    for k in range(lead):
        i, j = k - (lead - nx), k - (lead - ny)
        in_x, in_y = i >= 0, j >= 0
        if in_x and in_y and x[i] == y[j]:
            batch.append((k, i, j))
        elif in_x and in_y and x[i] != 1 and y[j] != 1:
            raise ValueError(
                "Incompatible shapes for broadcasting: the leading axes of the operands of matmul, "
                f"of shapes {x} and {y}, must agree or have size 1."
            )
        elif in_x and (not in_y or y[j] == 1):
            kept_x.append((k, i))
            drop_y += [j] if in_y else []
        else:
            kept_y.append((k, j))
            drop_x += [i] if in_x else []
    at_x = {d: n for n, d in enumerate([d for d in range(len(x)) if d not in drop_x])}
    at_y = {d: n for n, d in enumerate([d for d in range(len(y)) if d not in drop_y])}
    numbers = (
        ((at_x[len(x) - 1],), (at_y[max(len(y) - 2, 0)],)),
        (tuple([at_x[i] for _, i, _ in batch]), tuple([at_y[j] for _, _, j in batch])),
    )
    # dot_general returns the batch axes, then those of x, then those of y; "row" and "column" are
    # the axes of the matrices that it keeps.
    have = (
        [k for k, _, _ in batch]
        + [k for k, _ in kept_x]
        + (["row"] if len(x) > 1 else [])
        + [k for k, _ in kept_y]
        + (["column"] if len(y) > 1 else [])
    )
    want = list(range(lead)) + (["row"] if len(x) > 1 else []) + (["column"] if len(y) > 1 else [])
    order = tuple([have.index(k) for k in want])
    return (tuple(drop_x), tuple(drop_y), numbers, None if order == tuple(range(len(order))) else order)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The sum of products over the last axis of `a` and the last but one (or only) axis of `b`.

    Args:
        a, b: arrays; if one is a scalar, they are multiplied.
        precision: a `lax.Precision`, its name, or a pair of them; a hint for accelerators.
        preferred_element_type: the dtype of the result, in which products are summed.
        out_sharding: the sharding of the result.

    Returns:
        An array with the other axes of `a`, then those of `b`, in the promoted dtype.

    Raises:
        TypeError: the sizes of the two axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.dot(jnp.arange(3), jnp.arange(3))
        Array(5, dtype=int32)
        >>> jnp.dot(jnp.ones((2, 3)), jnp.arange(3.0))
        Array([3., 3.], dtype=float32)

    See also:
        `jnp.matmul`, which batches over leading axes; `jnp.vdot`, `jnp.tensordot`,
        `jnp.einsum`, `lax.dot_general`.
    """
    if out_sharding is not None:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return divided(dot, out_sharding, a, b, leaves_sums=_dot, **options)
    return _dot(None, a, b, precision, preferred_element_type)


def _dot(left, a, b, precision=None, preferred_element_type=None) -> Array:
    """As `dot`; `left` as for `contract`."""
    x, y = as_operand("dot", a), as_operand("dot", b, 1)
    m, n = x.aval.ndim, y.aval.ndim
    contracted = ((m - 1,), (max(n - 2, 0),)) if m and n else ((), ())
    try:
        return contract(x, y, (contracted, ((), ())), precision, preferred_element_type, left)
    except TypeError as error:
        raise _in_terms_of("dot", a, b, max(n - 2, 0), error) from None


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sums of products over the last axes of `a` and `b`.

    Args:
        a, b: arrays whose last axes have the same size; if one is a scalar, they are multiplied.
        precision, preferred_element_type: as for `lax.dot_general`.

    Returns:
        An array with the other axes of `a`, then those of `b`, in the promoted dtype.

    Raises:
        TypeError: the sizes of the last axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.inner(jnp.ones((2, 3)), jnp.ones((4, 3))).shape
        (2, 4)
    """
    x, y = as_operand("inner", a), as_operand("inner", b, 1)
    m, n = x.aval.ndim, y.aval.ndim
    contracted = ((m - 1,), (n - 1,)) if m and n else ((), ())
    try:
        return contract(x, y, (contracted, ((), ())), precision, preferred_element_type)
    except TypeError as error:
        raise _in_terms_of("inner", a, b, n - 1, error) from None


@replayed
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The inner product of all elements of two arrays as a scalar, with those of `a` conjugated.

    Args:
        a, b: arrays with the same number of elements.
        precision, preferred_element_type: as for `lax.dot_general`.

    Raises:
        TypeError: the numbers of elements differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
        Array(1.+0.j, dtype=complex64)
    """
    x, y = as_operand("vdot", a), as_operand("vdot", b, 1)
    first, second = ravel(_conjugated(x)), ravel(y)
    try:
        return contract(first, second, (((0,), (0,)), ((), ())), precision, preferred_element_type)
    except TypeError as error:
        raise _in_terms_of("vdot", first, second, 0, error) from None


def _conjugated(x):
    return lax.conj(x) if x.aval.dtype in COMPLEX else x


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The inner products of the vectors along an axis, with those of `x1` conjugated.

    Args:
        x1, x2: arrays with the same size along `axis`, whose other axes broadcast.
        axis: the axis.
        precision, preferred_element_type: as for `lax.dot_general`.

    Returns:
        An array with the broadcast other axes, in the promoted dtype.

    Raises:
        ValueError: the sizes along the axis differ, or an operand is a scalar.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vecdot(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    x, y = as_operand("vecdot", x1), as_operand("vecdot", x2, 1)
    if not x.aval.ndim or not y.aval.ndim:
        raise ValueError(
            "vecdot: x1 and x2 must have at least one axis, got shapes "
            f"{x.aval.shape} and {y.aval.shape}. Use `*` for scalars."
        )
    x = moveaxis(_conjugated(x), axis_of(axis, x.aval.ndim), -1)
    y = moveaxis(y, axis_of(axis, y.aval.ndim), -1)
    n, m = x.aval.shape[-1], y.aval.shape[-1]
    if n != m:
        raise ValueError(f"vecdot: x1 and x2 must have the same size along axis {axis}, got {n} and {m}.")
    return _by_rows(x, y, precision, preferred_element_type)


def _by_rows(x, y, precision, preferred):
    """The inner products over the last axes; the axes before them broadcast."""
    shape = lax.broadcast_shapes(x.aval.shape[:-1], y.aval.shape[:-1])
    if x.aval.shape[:-1] != shape or y.aval.shape[:-1] != shape:
        n = x.aval.shape[-1]
        column = lax.reshape(y, (*y.aval.shape, 1))
        row = lax.reshape(x, (*x.aval.shape[:-1], 1, n))
        out = matmul(row, column, precision=precision, preferred_element_type=preferred)
        return lax.reshape(out, shape)
    axes = tuple(range(len(shape)))
    return contract(x, y, (((len(shape),), (len(shape),)), (axes, axes)), precision, preferred)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices `x1` (..., m, n) with vectors `x2` (..., n), of shape (..., m).

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.matvec(jnp.ones((2, 3)), jnp.ones((5, 3))).shape
        (5, 2)
    """
    x, y = as_operand("matvec", x1), as_operand("matvec", x2, 1)
    _check_stacks("matvec", x, 2, y, 1, x.aval.shape[-1:], inner_y=y.aval.shape[-1:])
    out = matmul(x, lax.reshape(y, (*y.aval.shape, 1)))
    return lax.squeeze(out, (out.aval.ndim - 1,))


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of conjugated vectors `x1` (..., m) with matrices `x2` (..., m, n): (..., n).

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vecmat(jnp.ones((5, 2)), jnp.ones((2, 3))).shape
        (5, 3)
    """
    x, y = as_operand("vecmat", x1), as_operand("vecmat", x2, 1)
    _check_stacks("vecmat", x, 1, y, 2, x.aval.shape[-1:], inner_y=y.aval.shape[-2:-1])
    x = _conjugated(x)
    out = matmul(lax.reshape(x, (*x.aval.shape[:-1], 1, x.aval.shape[-1])), y)
    return lax.squeeze(out, (out.aval.ndim - 2,))


def _check_stacks(name: str, x, m: int, y, n: int, inner_x: tuple, *, inner_y: tuple) -> None:
    if x.aval.ndim < m or y.aval.ndim < n or inner_x != inner_y:
        raise ValueError(
            f"{name}: shapes {x.aval.shape} and {y.aval.shape} do not fit. The operands must have "
            f"at least {m} and {n} axes, and the same size along those that are summed over."
        )


# -- products of all pairs -------------------------------------------------------------------------


@replayed
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The matrix of products of each element of `a` with each of `b`, both taken as one row.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.outer(jnp.arange(3), jnp.arange(2))
        Array([[0, 0],
               [0, 1],
               [0, 2]], dtype=int32)
    """
    no_out("outer", out)
    x, y = ravel(as_operand("outer", a)), ravel(as_operand("outer", b, 1))
    return multiply(lax.expand_dims(x, (1,)), lax.expand_dims(y, (0,)))


@replayed
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product, in which each element of `a` is replaced by its product with `b`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
        Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promote_dtypes("kron", a, b)
    rank = max(x.aval.ndim, y.aval.ndim)
    x = lax.expand_dims(x, range(rank - x.aval.ndim))
    y = lax.expand_dims(y, range(rank - y.aval.ndim))
    shape = tuple([n * m for n, m in zip(x.aval.shape, y.aval.shape)])
    pairs = lax.mul(lax.expand_dims(x, range(1, 2 * rank, 2)), lax.expand_dims(y, range(0, 2 * rank, 2)))
    return lax.reshape(pairs, shape)


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The sums of products over several axes of each of two arrays.

    Args:
        a, b: arrays.
        axes: a number n for the last n axes of `a` and the first n of `b`, or a pair of the axes of
            each.
        precision: a `lax.Precision`, its name, or a pair of them; a hint for accelerators.
        preferred_element_type: the dtype of the result, in which products are summed.
        out_sharding: the sharding of the result.

    Returns:
        An array with the other axes of `a`, then those of `b`, in the promoted dtype.

    Raises:
        TypeError: the sizes of the axes differ, or an array has fewer axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))).shape
        (2, 5)
    """
    if out_sharding is not None:
        return divided(
            tensordot, out_sharding, a, b, axes, precision=precision, preferred_element_type=preferred_element_type
        )
    x, y = as_operand("tensordot", a), as_operand("tensordot", b, 1)
    left, right = _tensordot_axes(axes, x.aval.shape, y.aval.shape)
    try:
        return contract(x, y, ((left, right), ((), ())), precision, preferred_element_type)
    except TypeError as error:
        sizes = [tuple([v.aval.shape[i] for i in summed]) for v, summed in ((x, left), (y, right))]
        raise (
            error
            if sizes[0] == sizes[1]
            else TypeError(
                f"tensordot: shapes {x.aval.shape} and {y.aval.shape} do not fit: the products are "
                f"summed over the axes {left} of the first, of sizes {sizes[0]}, "
                f"and {right} of the second, of sizes {sizes[1]}."
            )
        ) from None


def _tensordot_axes(axes, x: tuple, y: tuple):
    if not isinstance(axes, (tuple, list)) and not np.ndim(axes):
        n = as_int(axes)
        if n < 0:
            return (), ()
        if n > min(len(x), len(y)):
            raise TypeError(f"tensordot: axes={n} is more than the arrays of shapes {x} and {y} have.")
        return tuple(range(len(x) - n, len(x))), tuple(range(n))
    if len(axes) != 2:
        raise TypeError(f"tensordot: axes must be an int, or a pair of ints or of sequences of ints, got {axes!r}.")
    left, right = [tuple(a) if isinstance(a, (tuple, list)) or np.ndim(a) else (a,) for a in axes]
    if len(left) != len(right):
        raise TypeError(f"tensordot: axes must name as many axes of a as of b, got {left} and {right}.")
    return tuple([axis_of(i, len(x)) for i in left]), tuple([axis_of(i, len(y)) for i in right])


@replayed
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors with two or three components.

    Args:
        a, b: arrays of vectors, whose other axes broadcast; a missing third component is 0.
        axisa, axisb, axisc: the axes along which the vectors lie in `a`, `b` and the result.
        axis: one axis for all three.

    Returns:
        An array of vectors with three components, or of third components alone if all vectors have
        two, in the promoted dtype.

    Raises:
        ValueError: the vectors have neither two nor three components.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (convert(v, v.aval.dtype) for v in promote_dtypes("cross", a, b))
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    n, m = x.aval.shape[-1], y.aval.shape[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(
            f"cross: the vectors must have 2 or 3 components, got {n} along axis {axisa} of a and "
            f"{m} along axis {axisb} of b."
        )
    shape = lax.broadcast_shapes(x.aval.shape[:-1], y.aval.shape[:-1])
    p = [broadcast_to(take_index(x, (..., i)), shape) for i in range(n)]
    q = [broadcast_to(take_index(y, (..., i)), shape) for i in range(m)]
    third = lax.sub(lax.mul(p[0], q[1]), lax.mul(p[1], q[0]))
    if n == m == 2:
        return third
    zero = broadcast_to(number(0, x.aval.dtype), shape)
    p, q = p + [zero] * (3 - n), q + [zero] * (3 - m)
    first = lax.sub(lax.mul(p[1], q[2]), lax.mul(p[2], q[1]))
    second = lax.sub(lax.mul(p[2], q[0]), lax.mul(p[0], q[2]))
    return moveaxis(lax.stack([first, second, third], len(shape)), -1, axisc)
