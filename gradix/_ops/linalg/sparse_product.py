"""The product of a sparse and a dense matrix, and single elements of a product of dense ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._core.divisions import entries
from gradix._core.dtypes import dtype_name
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, mul
from gradix._ops.basis import add_any, broadcast_in_dim, move_axis, reduce_sum, to_front
from gradix._ops.indexing.index_values import wide_index
from gradix._ops.operands import operands, scalar_like
from gradix._ops.shape import expand_dims, reshape

_sparse = lazy_module("scipy.sparse")
# Few programs have such products, and a platform's table of rewrites names the primitive.
_creation = lazy_module("gradix._ops.creation")
_gather = lazy_module("gradix._ops.indexing.gather")
_numbers = lazy_module("gradix._ops.indexing.gather_dimension_numbers")
_scatter = lazy_module("gradix._ops.indexing.scatter")
_HALVES = frozenset(map(np.dtype, ("float16", ml_dtypes.bfloat16)))
_OF_SCIPY = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128", "int32", "int64")))


class SparseProduct(Primitive):
    """The product of a sparse and a dense matrix, linear in the elements of each.

    `data[e]` is the element at row `rows[e]` and column `columns[e]`, both in bounds; elements at
    the same place are added. `height` is the number of rows. `ordered` says that `rows` does not
    decrease; then a fifth operand may hold the index of the first element of each row, and the end
    of the last row, from which on elements are zero.
    """

    mesh = MeshTraits(linear="one")
    costly = True
    host_limit = 1 << 24  # SciPy's loop over the elements is as quick as a compiled one

    def abstract(self, data, rows, columns, dense, *starts, height, ordered):
        if data.dtype != dense.dtype:
            raise TypeError(
                "sparse_product requires arguments to have the same dtypes, got "
                f"{dtype_name(data.dtype)}, {dtype_name(dense.dtype)}. Convert one with .astype."
            )
        if not data.shape == rows.shape == columns.shape or data.ndim != 1 or dense.ndim != 2:
            raise TypeError(
                "sparse_product requires three vectors of one length and a matrix, got shapes "
                f"{data.shape}, {rows.shape}, {columns.shape} and {dense.shape}."
            )
        if starts and starts[0].shape != (height + 1,):
            raise TypeError(
                f"sparse_product requires the starts of {height} rows and an end, got shape {starts[0].shape}."
            )
        return make_aval((height, dense.shape[1]), data.dtype, data.weak_type and dense.weak_type)

    def divide(self, mesh, avals, outs, params):
        """Divide the columns of the dense matrix, which are multiplied independently."""
        (rows, columns), others = entries(avals[3]), [a for i, a in enumerate(avals) if i != 3]
        if rows is not None or any(e is not None for a in others for e in entries(a)):
            return super().divide(mesh, avals, outs, params)
        return [(None, columns)]

    def host(self, data, rows, columns, dense, *starts, height, ordered):
        if data.dtype in _OF_SCIPY:
            return _sparse.coo_matrix((data, (rows, columns)), shape=(height, dense.shape[0])).tocsr() @ dense
        out = np.zeros((height, dense.shape[1]), data.dtype)
        np.add.at(out, rows, data[:, None] * dense[columns])
        return out

    def jvp(self, primals, tangents, **params):
        data, rows, columns, dense, *starts = primals
        t_data, t_dense = tangents[0], tangents[3]
        out = bind(self, primals, params)
        parts = [
            bind(self, (d, rows, columns, m, *starts), params)
            for d, m in ((t_data, dense), (data, t_dense))
            if d is not None and m is not None
        ]
        return out, add_any(*parts) if len(parts) == 2 else parts[0] if parts else None

    def transpose(self, ct, data, rows, columns, dense, *starts, height, ordered):
        if type(data) is Linear:
            # d out[r, :] = d data · dense[c, :], so an element's cotangent is the product of two
            # rows.
            return [bind(sampled_product_p, (ct, dense, rows, columns), {}), None, None, None, *[None for _ in starts]]
        # data at (column, row): the transposed matrix.
        back = {"height": dense.aval.shape[0], "ordered": False}
        return [None, None, None, bind(self, (data, columns, rows, ct), back), *[None for _ in starts]]

    def batch(self, size, args, axes, *, height, ordered):
        data, rows, columns, dense, *starts = args
        if all(a is None for a in (*axes[:3], *axes[4:])):
            # With one sparse matrix, many dense ones are joined beside each other.
            dense = move_axis(dense, axes[3], 1)
            width = dense.aval.shape[0]
            out = bind(
                self,
                (data, rows, columns, reshape(dense, (width, size * dense.aval.shape[2])), *starts),
                {"height": height, "ordered": ordered},
            )
            return reshape(out, (height, size, dense.aval.shape[2])), 1
        # Many sparse matrices become the diagonal blocks of a large one.
        data, rows, columns, dense = [to_front(size, x, a) for x, a in zip(args[:4], axes)]
        _, width, count = dense.aval.shape
        flat = [reshape(x, (size * data.aval.shape[1],)) for x in (data, _moved(rows, height), _moved(columns, width))]
        out = bind(self, (*flat, reshape(dense, (size * width, count))), {"height": size * height, "ordered": ordered})
        return reshape(out, (size, height, count)), 0

    def expand(self, data, rows, columns, dense, *starts, height, ordered):
        terms = mul(broadcast_in_dim(data, (data.shape[0], dense.shape[1]), (0,)), _taken(dense, columns))
        zero = broadcast_in_dim(scalar_like(dense, 0), (height, dense.shape[1]), ())
        into_rows = _scatter.ScatterDimensionNumbers((1,), (0,), (0,))
        return _scatter.scatter_add(
            zero,
            expand_dims(rows, (1,)),
            terms,
            into_rows,
            indices_are_sorted=ordered,
            mode=_numbers.GatherScatterMode.PROMISE_IN_BOUNDS,
        )


class SampledProduct(Primitive):
    """Elements of `x · yᵀ`: the product of row `rows[e]` of `x` and row `columns[e]` of `y` for each e."""

    mesh = MeshTraits(linear="one")
    costly = True

    def abstract(self, x, y, rows, columns):
        return make_aval(rows.shape, x.dtype, x.weak_type and y.weak_type)

    def divide(self, mesh, avals, outs, params):
        """Sum over columns that are divided alike; the elements are whole."""
        (first, *of_x), (second, *of_y) = entries(avals[0]), entries(avals[1])
        places = [e for a in avals[2:] for e in entries(a)]
        if of_x != of_y or any(e is not None for e in (first, second, *places)):
            return super().divide(mesh, avals, outs, params)
        return [(None,)]

    def host(self, x, y, rows, columns):
        wide = np.dtype("float32") if x.dtype in _HALVES else x.dtype
        terms = x[rows].astype(wide) * y[columns].astype(wide)
        return np.sum(terms, 1, dtype=wide).astype(x.dtype)

    def jvp(self, primals, tangents):
        x, y, rows, columns = primals
        parts = [
            bind(self, (a, b, rows, columns), {})
            for a, b in ((tangents[0], y), (x, tangents[1]))
            if a is not None and b is not None
        ]
        out = bind(self, primals, {})
        return out, add_any(*parts) if len(parts) == 2 else parts[0] if parts else None

    def transpose(self, ct, x, y, rows, columns):
        # Row r of x gets the sum of ct[e] · y[columns[e]] over the elements of row r.
        if type(x) is Linear:
            options = {"height": x.aval.shape[0], "ordered": False}
            return [bind(sparse_product_p, (ct, rows, columns, y), options), None, None, None]
        options = {"height": y.aval.shape[0], "ordered": False}
        return [None, bind(sparse_product_p, (ct, columns, rows, x), options), None, None]

    def batch(self, size, args, axes):
        x, y, rows, columns = [to_front(size, v, a) for v, a in zip(args, axes)]
        stacked = [reshape(v, (size * v.aval.shape[1], v.aval.shape[2])) for v in (x, y)]
        places = [reshape(_moved(p, v.aval.shape[1]), (size * p.aval.shape[1],)) for p, v in ((rows, x), (columns, y))]
        out = bind(self, (*stacked, *places), {})
        return reshape(out, (size, rows.aval.shape[1])), 0

    def expand(self, x, y, rows, columns):
        return reduce_sum(mul(_taken(x, rows), _taken(y, columns)), (1,))


def _taken(x, places):
    """The rows of `x` at these places."""
    rows = _numbers.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return _gather.gather(
        x, expand_dims(places, (1,)), rows, (1, x.aval.shape[1]), mode=_numbers.GatherScatterMode.PROMISE_IN_BOUNDS
    )


def _moved(places, by: int):
    """Row or column numbers of stacked matrices, shifted to the diagonal blocks of a large one."""
    places = wide_index(places, places.aval.shape[0] * by)
    steps = _creation.broadcasted_iota(places.aval.dtype, places.aval.shape, 0)
    return add(places, mul(steps, scalar_like(places, by)))


sparse_product_p = SparseProduct("sparse_product")
sampled_product_p = SampledProduct("sampled_product")


def sparse_product(data, rows, columns, dense, height: int, *, ordered: bool = False, starts=None):
    """The product of a sparse matrix of `height` rows and a dense one.

    Args:
        data: the elements that are given, of shape (e,).
        rows, columns: where each of them stands, int32 of shape (e,), within the matrix; elements
            at one place are added.
        dense: of shape (width, n), and the dtype of `data`.
        height: the number of rows of the sparse matrix, whose columns are `width`.
        ordered: whether `rows` does not decrease; the product is quicker then.
        starts: where each row starts among ordered elements, and where the last one ends, int32 of
            shape (height + 1,); elements from there on must be zero. Left out where it is not
            known.

    Returns:
        An array of shape (height, n).

    Raises:
        TypeError: shapes or dtypes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> sparse_product(jnp.array([2.0, 5.0]), jnp.array([0, 1]), jnp.array([1, 0]), jnp.array([[1.0], [3.0]]), 2)
        Array([[6.],
               [5.]], dtype=float32)
    """
    args = operands("sparse_product", data, rows, columns, dense, *([] if starts is None else [starts]))
    return bind(sparse_product_p, args, {"height": int(height), "ordered": bool(ordered)})
