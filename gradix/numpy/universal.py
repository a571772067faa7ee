"""The `ufunc` class: elementwise functions with the methods reduce, accumulate, at and outer."""

from __future__ import annotations

from collections.abc import Callable
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.inspect import eval_shape
from gradix._base.tracebacks import filter_frames
from gradix._core import dtypes
from gradix.numpy.axes import axes_of, axis_of, no_out
from gradix.numpy.promotion import as_operand, broadcast_to, convert

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike


class ufunc:
    """An elementwise function of `nin` arrays, with the reductions that follow from it.

    Args:
        func: the function; if `call` is given, only its name and docstring are used.
        nin: the number of arrays that it takes.
        nout: the number of arrays that it returns.
        name: the name; by default that of `func`.
        nargs: the number of arguments; by default `nin`.
        identity: the e with `f(e, x) == x`, with which reductions start, if there is one.
        call: the function of whole arrays, if `func` is one of scalars.
        reduce, accumulate, at, reduceat: functions for these methods, if there are faster ones than
            repeated calls.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.add.reduce(jnp.arange(5))
        Array(10, dtype=int32)
        >>> jnp.multiply.outer(jnp.arange(3), jnp.arange(2))
        Array([[0, 0],
               [0, 1],
               [0, 2]], dtype=int32)
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        if not callable(func):
            raise TypeError(f"frompyfunc: func must be a function of {nin!r} elements, got {func!r}.")
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", type(func).__name__)
        self.__doc__ = func.__doc__
        self.__module__ = "gradix.numpy"
        self._function = func
        self._nin, self._nout, self._identity = as_int(nin), as_int(nout), identity
        self._nargs = nargs or self._nin
        self._call = call or func
        self._rules = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    # The functions of the module are shared by all of a program, so none of these can be assigned.
    _func = property(lambda self: self._function, doc="The function, or that of one element.")
    nin = property(lambda self: self._nin, doc="The number of arrays that it takes.")
    nout = property(lambda self: self._nout, doc="The number of arrays that it returns.")
    nargs = property(lambda self: self._nargs, doc="The number of arguments.")
    identity = property(lambda self: self._identity, doc="What reductions start with, or None.")

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        if len(args) == self._nin and out is None and where is None:
            try:
                return self._call(*args)
            except Exception as error:
                filter_frames(error)
                raise
        if out is not None or where is not None:
            name, value = ("out", out) if out is not None else ("where", where)
            raise NotImplementedError(
                f"{self!r}: {name} is not supported, got {value!r}. "
                + (
                    f"Arrays are immutable: write result = jnp.{self.__name__}(...)."
                    if name == "out"
                    else f"Use jnp.where(mask, jnp.{self.__name__}(...), other)."
                )
            )
        raise TypeError(f"jnp.{self.__name__} takes {self._nin} positional arguments, got {len(args)}.")

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self):
        return self.__name__ if self._function.__module__.startswith("gradix.numpy") else object.__reduce__(self)

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, ufunc) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self._function, self.__name__, self._nin, self._nout, self._nargs

    def _check_binary(self, method: str) -> None:
        if self._nin != 2 or self._nout != 1:
            raise ValueError(
                f"jnp.{self.__name__}.{method} is for functions of two arrays with one result; "
                f"this one takes {self._nin} and returns {self._nout}."
            )

    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ):
        """The elements along an axis combined into one by the function.

        Args:
            a: an array.
            axis: the axis to reduce; None for all, or a tuple of axes if the order does not matter.
            dtype: the dtype to which `a` is converted first.
            out: not supported.
            keepdims: whether the axis stays, with size 1.
            initial: the value to start with; by default the identity, if there is one.
            where: booleans that tell which elements count; it needs an initial value or identity.

        Returns:
            An array with the shape of `a` without the axis.

        Raises:
            ValueError: the function does not take two arrays, or an initial value is missing.
            NotImplementedError: several axes are named without an identity, or `out` is given.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.maximum.reduce(jnp.array([[3, 1], [2, 5]]), axis=1)
            Array([3, 5], dtype=int32)
        """
        self._check_binary("reduce")
        no_out(f"{self.__name__}.reduce", out)
        rule = self._rules["reduce"]
        if rule is not None:
            return rule(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        return self._reduce_by_steps(a, axis, dtype, keepdims, initial, where)

    def _reduce_by_steps(self, a, axis, dtype, keepdims, initial, where):
        x = self._truths(_ready(f"{self.__name__}.reduce", a, dtype))
        if initial is None and self._identity is None and where is not None:
            raise ValueError(
                f"{self.__name__}.reduce: where may select no element, and {self.__name__} has no "
                "identity. Give initial=."
            )
        if isinstance(axis, tuple) and len(axis) != 1 and self._identity is None:
            raise NotImplementedError(
                f"{self.__name__}.reduce: the order of axes matters (it is not reorderable), got "
                f"axis={axis}. Reduce one axis at a time."
            )
        start = self._identity if initial is None else initial
        shape = x.shape
        x, mask = (
            _axis_first(x, axis),
            None
            if where is None
            else _axis_first(
                broadcast_to(convert(as_operand(self.__name__, where), dtypes.as_dtype(bool)), shape), axis
            ),
        )
        if start is None:
            if not x.shape[0]:
                raise ValueError(
                    f"{self.__name__}.reduce: the zero-size array of shape {shape} has no elements "
                    f"along axis={axis}, and {self.__name__} no identity. Give initial=."
                )
            first, x = x[0], x[1:]
        else:
            # an identity such as -inf has no value in the dtype of booleans or integers
            first = lax.full(x.shape[1:], start, self._result_dtype(x))
        out = self._fold(first, x, mask)
        if keepdims:
            axes = axes_of(axis, len(shape))
            out = out.reshape(tuple([1 if i in axes else n for i, n in enumerate(shape)]))
        return out

    def _result_dtype(self, rows):
        """The dtype of results of elements of `rows`."""
        row = rows[0] if rows.shape[0] else lax.full(rows.shape[1:], 1, rows.dtype)
        return self._call(row, row).dtype

    def _fold(self, first, x, mask):
        call, dtype = self._call, self._call(first, first).dtype
        first = convert(first, dtype)

        def step(carry, row):
            item, keep = row
            new = convert(call(carry, item), dtype)
            return (new if keep is None else lax.select(broadcast_to(keep, new.shape), new, carry)), None

        return lax.scan(step, first, (x, mask))[0]

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Any:
        """The running results of `reduce` along an axis.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.add.accumulate(jnp.arange(4))
            Array([0, 1, 3, 6], dtype=int32)
        """
        self._check_binary("accumulate")
        no_out(f"{self.__name__}.accumulate", out)
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"jnp.{self.__name__}.accumulate: axis must be one axis, got {axis}.")
        rule = self._rules["accumulate"]
        if rule is not None:
            return rule(a, axis=axis, dtype=dtype)
        x = self._truths(_ready(f"{self.__name__}.accumulate", a, dtype))
        axis = axis_of(axis, x.ndim)
        rows = _axis_first(x, axis)
        dtype = self._result_dtype(rows)
        if not rows.shape[0]:
            return convert(x, dtype)
        first = convert(rows[0], dtype)

        def step(carry, item):
            new = convert(self._call(carry, item), dtype)
            return new, new

        rest = lax.scan(step, first, rows[1:])[1]
        order = list(range(1, x.ndim))
        order.insert(axis, 0)
        return lax.transpose(lax.concatenate([first[None], rest], 0), tuple(order))

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Any:
        """The array with the function applied to the elements at an index.

        Elements that are named several times are changed as many times.

        Args:
            a: an array.
            indices: an index as in `a[indices]`.
            b: the second operand, for functions of two arrays.
            inplace: it must be False, since arrays are immutable.

        Returns:
            An array of the shape of `a`. Sums, differences and products have its dtype, others that
            of the function's results.

        Raises:
            NotImplementedError: `inplace` is True.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 2, 2]), 1.0, inplace=False)
            Array([1., 0., 2.], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(
                f"jnp.{self.__name__}.at cannot change an array in place, as arrays are immutable. "
                f"Write a = jnp.{self.__name__}.at(a, indices, b, inplace=False)."
            )
        rule = self._rules["at"]
        if rule is not None:
            return rule(a, indices) if b is None else rule(a, indices, b)
        return self._at_by_steps(as_operand(f"{self.__name__}.at", a), indices, b)

    def _at_by_steps(self, a, indices, b):
        """`at` by replacing one element after the other, in the dtype of the function's results."""
        places = lax.iota(dtypes.as_dtype("int32"), a.size).reshape(a.shape)[indices]
        flat, order = a.reshape(-1), places.reshape(-1)
        if b is None:
            made = self._call(flat[order])
            dtype = made.dtype
            values = convert(flat, dtype).at[order].set(made)
            if order.size > 1 and not _is_basic(indices):
                values = self._repeated(values, order, dtype)
            return values.reshape(a.shape)
        b = broadcast_to(as_operand(f"{self.__name__}.at", b), places.shape).reshape(-1)
        dtype = eval_shape(self._call, flat[order], b).dtype

        def step(values, row):
            i, item = row
            return values.at[i].set(convert(self._call(values[i], item), dtype)), None

        return lax.scan(step, convert(flat, dtype), (order, b))[0].reshape(a.shape)

    def _repeated(self, values, order, dtype):
        """`values` with the function applied again to the elements that are named several times."""
        counts = lax.full_like(values, 0, np.int32).at[order].add(np.int32(1))[order]

        def step(state):
            done, values = state
            rows = values[order]
            again = convert(self._call(rows), dtype)
            return done + 1, values.at[order].set(lax.select(counts > done, again, rows))

        return lax.while_loop(lambda state: state[0] < counts.max(), step, (np.int32(1), values))[1]

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Any:
        """The function of all pairs of elements, as an array of shape `A.shape + B.shape`.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.add.outer(jnp.arange(2), jnp.arange(3))
            Array([[0, 1, 2],
                   [1, 2, 3]], dtype=int32)
        """
        if self._nin != 2:
            raise ValueError(
                f"jnp.{self.__name__}.outer is only for functions of two arrays; this one takes {self._nin}."
            )
        A, B = (as_operand(f"{self.__name__}.outer", x, i) for i, x in enumerate((A, B)))
        rows, columns = A.shape + (1,) * B.ndim, (1,) * A.ndim + B.shape
        return self._call(
            lax.broadcast_in_dim(A, rows, tuple(range(A.ndim))) if B.ndim else A,
            lax.broadcast_in_dim(B, columns, tuple(range(A.ndim, len(columns)))) if A.ndim else B,
        )

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Any:
        """The results of `reduce` for the parts of an axis that begin at `indices`.

        Where an index is not less than the next one, the result is the single element there.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 3]))
            Array([ 3, 12], dtype=int32)
        """
        self._check_binary("reduceat")
        no_out(f"{self.__name__}.reduceat", out)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError(f"jnp.{self.__name__}.reduceat: axis must be one axis, got {axis}.")
        x = _ready(f"{self.__name__}.reduceat", a, dtype)
        starts = as_operand(f"{self.__name__}.reduceat", indices, 1)
        if starts.ndim != 1:
            raise ValueError(f"jnp.{self.__name__}.reduceat: indices must be a vector, got shape {starts.shape}.")
        rule = self._rules["reduceat"]
        if rule is not None:
            return rule(x, starts, axis=axis)
        return self._reduceat_by_steps(self._truths(x), starts, axis_of(axis, x.ndim))

    def _truths(self, x):
        """`x` as booleans, if the function is one of truth values."""
        truths = self.__name__ in ("logical_and", "logical_or", "logical_xor") and x.dtype != bool
        return lax.ne(x, lax.full((), 0, x.dtype)) if truths else x

    def _reduceat_by_steps(self, x, starts, axis: int):
        rows = _axis_first(x, axis)
        n = rows.shape[0]
        ends = lax.concatenate([starts[1:], lax.full((1,), n, starts.dtype)], 0)
        column = (slice(None), *(None,) * (rows.ndim - 1))

        def step(carry, row):
            i, item = row
            inside = ((i > starts) & (i < ends))[column]
            new = convert(self._call(carry, broadcast_to(item, carry.shape)), x.dtype)
            return lax.select(lax.broadcast_in_dim(inside, new.shape, tuple(range(new.ndim))), new, carry), None

        out = lax.scan(step, rows[starts], (lax.iota(starts.dtype, n), rows))[0]
        order = list(range(1, x.ndim))
        order.insert(axis, 0)
        return lax.transpose(out, tuple(order))


def _ready(name: str, a, dtype):
    x = as_operand(name, a)
    return x if dtype is None else convert(x, dtypes.requested_dtype(dtype, name))


def _axis_first(x, axis):
    """`x` with `axis` first; several axes, or all for None, become one."""
    if axis is None:
        return x.reshape(-1)
    if isinstance(axis, tuple):
        axes = axes_of(axis, x.ndim)
        rest = [i for i in range(x.ndim) if i not in axes]
        return lax.transpose(x, (*axes, *rest)).reshape((-1, *[x.shape[i] for i in rest]))
    axis = axis_of(axis, x.ndim)
    return x if axis == 0 else lax.transpose(x, (axis, *[i for i in range(x.ndim) if i != axis]))


ufunc.__module__ = "gradix.numpy"  # where users find it


def _is_basic(index) -> bool:
    """Whether an index has no arrays, so that it names no element twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in parts)
