"""The rules of `sparsify`: what each primitive does to BCOO arrays, by the primitive's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix import numpy as jnp
from gradix._core.trace import Tracer, bind
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_convolution import bcoo_conv_general_dilated
from gradix.experimental.sparse._bcoo_moving import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
)
from gradix.experimental.sparse._bcoo_products import bcoo_dot_general, bcoo_multiply_dense, bcoo_multiply_sparse
from gradix.experimental.sparse._bcoo_slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from gradix.experimental.sparse._bcoo_storage import bcoo_sum_duplicates, bcoo_todense, bcoo_update_layout
from gradix.experimental.sparse._layout import holding, in_bounds, or_zero
from gradix.numpy.promotion import raise_rank

# Functions f with f(0) = 0 are applied to the specified elements only. Where they are not linear,
# elements of equal indices must be added first.
LINEAR = frozenset("neg real imag copy copy_p reduce_precision conj stop_gradient name optimization_barrier".split())
_ZERO_AT_ZERO = frozenset(
    "abs asin asinh atan atanh bessel_i1e cbrt ceil convert_element_type erf erf_inv expm1 floor "
    "integer_pow log1p round sign sin sinh sqrt square tan tanh".split()
)


def zero_preserving(prim) -> Callable | None:
    """The rule of a function f with f(0) = 0; None for other functions."""
    if prim.name not in LINEAR and prim.name not in _ZERO_AT_ZERO:
        return None

    def rule(x, **params):
        if prim.name == "integer_pow" and params["y"] <= 0:
            raise _full(f"{prim.name} with exponent {params['y']}")
        if prim.name not in LINEAR and not x.unique_indices:
            x = bcoo_sum_duplicates(x, nse=x.nse)
        out = bind(prim, [x.data], params)
        return x._with(data=out[0] if prim.multiple_results else out)

    return rule


def _full(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what} is not implemented because it would result in dense output. If this is your "
        "intent, use sparse.todense() to convert your arguments to dense matrices."
    )


def _add(x, y, **params):
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        if x.shape != y.shape:
            raise NotImplementedError(
                f"addition of sparse arrays of different shapes, {x.shape} and {y.shape}. Repeat one "
                "of them by bcoo_broadcast_in_dim first."
            )
        n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
        x, y = [bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in (x, y)]
        lead = x.shape[:n_batch]
        dtype = jnp.result_type(x.dtype, y.dtype)
        parts = [
            (
                jnp.broadcast_to(m.data, (*lead, *m.data.shape[n_batch:])).astype(dtype),
                jnp.broadcast_to(m.indices, (*lead, *m.indices.shape[n_batch:])),
            )
            for m in (x, y)
        ]
        return BCOO(tuple([jnp.concatenate(p, n_batch) for p in zip(*parts)]), shape=x.shape)
    mat, dense = (x, y) if isinstance(x, BCOO) else (y, x)
    if jnp.shape(dense) != mat.shape:
        raise _full(f"addition of a sparse array of shape {mat.shape} and a dense array of shape {jnp.shape(dense)}")
    return bcoo_todense(mat) + dense


def _neg(x):
    return x._with(data=-x.data) if isinstance(x, BCOO) else -x


def _sub(x, y, **params):
    return _add(x, _neg(y))


def _mul(x, y, **params):
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if isinstance(x, BCOO) else (y, x)
    return _times(mat, jnp.asarray(dense))


def _times(mat: BCOO, dense) -> BCOO:
    shape = jnp.broadcast_shapes(mat.shape, dense.shape)
    if shape != mat.shape:
        mat = bcoo_broadcast_in_dim(
            mat, shape=shape, broadcast_dimensions=tuple(range(len(shape) - mat.ndim, len(shape)))
        )
    data = bcoo_multiply_dense(mat, dense)
    indices = mat.indices
    if data.shape[: mat.n_batch] != mat.data.shape[: mat.n_batch]:
        indices = jnp.broadcast_to(indices, (*data.shape[: mat.n_batch], *indices.shape[mat.n_batch :]))
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _div(x, y, **params):
    if isinstance(y, BCOO):
        raise _full("Division by a sparse array")
    y = jnp.asarray(y)
    if jnp.issubdtype(x.dtype, jnp.integer):
        whole = _times(x._with(data=jnp.ones_like(x.data)), y)
        data = jnp.where(whole.data == 0, 0, jnp.floor_divide(x.data, jnp.where(whole.data == 0, 1, whole.data)))
        return whole._with(data=data)
    return _times(x, 1 / y) if y.ndim else x._with(data=x.data / y)


def _reduce_sum(x, *, axes, **params):
    if len(axes) < x.ndim:
        return bcoo_reduce_sum(x, axes=axes)
    valid = in_bounds(x)
    data = or_zero(valid[(..., *[None] * x.n_dense)], x.data)
    lead = jnp.broadcast_to(data, (*x.shape[: x.n_batch], *data.shape[x.n_batch :]))
    return jnp.sum(lead, dtype=x.dtype)


def _concatenate(*xs, dimension):
    if not all(isinstance(x, BCOO) for x in xs):
        raise NotImplementedError(
            "concatenation of sparse and dense arrays. Convert all of them by sparse.todense or all by BCOO.fromdense."
        )
    fewest = min([x.n_batch for x in xs])  # such as one row beside matrices, whose new axis is a batch axis
    if len({x.n_batch for x in xs}) > 1 and len({x.n_dense for x in xs}) == 1:
        xs = tuple([bcoo_update_layout(x, n_batch=fewest, on_inefficient=None) for x in xs])
    return bcoo_concatenate(xs, dimension=dimension)


def _stack(*xs, axis, **params):
    return _concatenate(
        *[
            bcoo_broadcast_in_dim(
                x,
                shape=(*x.shape[:axis], 1, *x.shape[axis:]),
                broadcast_dimensions=[i + (i >= axis) for i in range(x.ndim)],
            )
            if isinstance(x, BCOO)
            else x
            for x in xs
        ],
        dimension=axis,
    )


def _dot_general(x, y, *, dimension_numbers, preferred_element_type=None, **params):
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


def _slice(x, *, start_indices, limit_indices, strides, **params):
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


def _split(x, *, sizes, axis, **params):
    at, out = 0, []
    for n in sizes:
        starts, limits = [0] * x.ndim, list(x.shape)
        starts[axis], limits[axis] = at, at + n
        out.append(bcoo_slice(x, start_indices=starts, limit_indices=limits))
        at += n
    return out


def _pad(x, value, *, padding_config, **params):
    """Padding with zeros, which only changes the indices."""
    if isinstance(value, (Tracer, BCOO)) or bool(jnp.asarray(value) != 0):
        raise _full("pad with a value other than zero")
    a, b = x.n_batch, x.n_batch + x.n_sparse
    if any(tuple(c) != (0, 0, 0) for i, c in enumerate(padding_config) if not a <= i < b):
        raise NotImplementedError(
            "pad along batch or dense axes of a sparse array. Make them sparse axes by bcoo_update_layout first."
        )
    shape = tuple([n + low + high + inner * max(n - 1, 0) for n, (low, high, inner) in zip(x.shape, padding_config)])
    indices = holding(x.indices, shape)
    low, inner = [
        raise_rank(jnp.array([c[k] for c in padding_config[a:b]], indices.dtype), indices.ndim) for k in (0, 2)
    ]
    moved = indices * (inner + 1) + low
    limit = raise_rank(jnp.array(shape[a:b], indices.dtype), indices.ndim)
    inside = in_bounds(x) & jnp.all((moved >= 0) & (moved < limit), -1)
    data = or_zero(inside[(..., *[None] * x.n_dense)], x.data)
    return BCOO((data, jnp.where(inside[..., None], moved, limit)), shape=shape, unique_indices=x.unique_indices)


def _dynamic_slice(x, *starts, slice_sizes, **params):
    return bcoo_dynamic_slice(x, starts, slice_sizes)


def _gather(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **params):
    return bcoo_gather(x, indices, dimension_numbers, slice_sizes, mode=mode, fill_value=fill_value)


def _reshape(x, *, new_sizes, dimensions=None, **params):
    return bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


def _broadcast_in_dim(x, *shape_values, shape, broadcast_dimensions, **params):
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


RULES: dict[str, Any] = {
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "reduce_sum": _reduce_sum,
    "concatenate": _concatenate,
    "stack": _stack,
    "conv_general_dilated": bcoo_conv_general_dilated,
    "dot_general": _dot_general,
    "slice": _slice,
    "split": _split,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": lambda x, permutation: bcoo_transpose(x, permutation=permutation),
    "squeeze": lambda x, dimensions: bcoo_squeeze(x, dimensions=dimensions),
    "rev": lambda x, dimensions: bcoo_rev(x, dimensions),
}
