"""`x.at[index]`: copies of an array in which the elements at an index are changed."""

from __future__ import annotations

import functools

from gradix import lax
from gradix._api.constraints import divided
from gradix._core.operators import Array
from gradix.numpy.arithmetic import power
from gradix.numpy.division import true_divide
from gradix.numpy.index_updates import apply_at, change_at
from gradix.numpy.indexing import take_index


class IndexUpdateHelper:
    """The value of `x.at`; indexing it gives the elements to change, as in `x.at[2:4].set(0)`."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"

    def __getattr__(self, name: str):
        if not name.startswith("_") and hasattr(IndexUpdateRef, name):
            raise AttributeError(f"x.at needs an index first. Write x.at[index].{name}(...), or x.at[...] for all.")
        raise AttributeError(f"x.at has no attribute {name!r}. Write x.at[index].set(values).")

    def __setitem__(self, index, value):
        raise TypeError("x.at[index] = values changes no array. Write x = x.at[index].set(values), or .add for +=.")

    def __call__(self, *args, **kwargs):
        raise TypeError("x.at takes its index in square brackets, and is not callable. Write x.at[index].set(values).")


class IndexUpdateRef:
    """The elements of an array at an index; each method returns a new array with them changed.

    Arguments of all methods:
        values: an array that broadcasts to the shape of `x[index]`; it is converted to the dtype of
            `x`.
        indices_are_sorted: a promise that the index arrays ascend.
        unique_indices: a promise that no element is named twice. Without it, an element that is
            named several times is changed as many times; `set` keeps one of its values.
        mode: what integers out of bounds change: with "drop" (also "fill", and None) nothing, with
            "clip" the nearest element; "promise_in_bounds" promises that there are none.
        out_sharding: the sharding of the result.
        wrap_negative_indices: whether negative indices count from the end.

    Each method returns an array of the shape and dtype of `x`, except that `divide` of integers
    gives a floating dtype, and that `get` returns the elements.

    The index may be a traced boolean mask, if the values do not depend on how many elements it
    selects.
    """

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def _changed(self, value):
        """Python's operators that change in place, which must not pass as changes of the array."""
        raise TypeError(
            "x.at[index] += values changes no array. Write x = x.at[index].add(values), or .multiply for *=."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _changed

    def __getattr__(self, name):
        known = ", ".join(
            [f".{method}" for method in vars(type(self)) if not method.startswith("_") and method not in self.__slots__]
        )
        raise AttributeError(f"x.at[index] has no attribute {name!r}. It has {known}.")

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        fill_value=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`x[index]`, with a choice of what integers out of bounds give.

        Args:
            indices_are_sorted, unique_indices, out_sharding, wrap_negative_indices: as described
                for the class.
            mode: what integers out of bounds give: with "clip" (also None) the nearest element,
                with "fill" (also "drop") `fill_value`; "promise_in_bounds" promises that there are
                none.
            fill_value: by default NaN, the least signed integer, the largest unsigned one, or True.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.arange(3.0).at[jnp.array([1, 7])].get(mode="fill", fill_value=-1)
            Array([ 1., -1.], dtype=float32)
        """
        if out_sharding is None and mode is None and wrap_negative_indices:
            out = lax._host_get(self.array, self.index)
            if out is not None:
                return out
        take = functools.partial(
            take_index,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )
        if out_sharding is not None:
            return divided(take, out_sharding, self.array, self.index)
        return take(self.array, self.index)

    def set(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements set to `values`.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.zeros(3).at[1].set(5.0)
            Array([0., 5., 0.], dtype=float32)
        """
        return self._with("set", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def add(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `values` added to the elements.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.zeros(3).at[jnp.array([0, 2, 2])].add(1.0)
            Array([1., 0., 2.], dtype=float32)
        """
        return self._with("add", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def subtract(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `values` subtracted from the elements.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.ones(3).at[1].subtract(3.0)
            Array([ 1., -2.,  1.], dtype=float32)
        """
        return self._with("sub", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def multiply(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements multiplied by `values`.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.ones(3).at[1:].multiply(2.0)
            Array([1., 2., 2.], dtype=float32)
        """
        return self._with("mul", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    mul = multiply

    def divide(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements divided by `values`; integers become floating-point numbers.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.ones(3).at[0].divide(2.0)
            Array([0.5, 1. , 1. ], dtype=float32)
        """
        return self._with(
            true_divide, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding
        )

    def power(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements raised to the power `values`.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.arange(3).at[2].power(3)
            Array([0, 1, 8], dtype=int32)
        """
        return self._with(power, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def min(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with each of the elements replaced by its value if that is smaller.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.arange(3).at[:].min(1)
            Array([0, 1, 1], dtype=int32)
        """
        return self._with("min", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def max(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        out_sharding=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with each of the elements replaced by its value if that is larger.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.arange(3).at[:].max(1)
            Array([1, 1, 2], dtype=int32)
        """
        return self._with("max", values, indices_are_sorted, unique_indices, mode, wrap_negative_indices, out_sharding)

    def _with(self, how, values, are_sorted, unique, mode, wrap, out_sharding):
        x, index = self.array, self.index
        if out_sharding is not None:
            options = how, are_sorted, unique, mode, wrap
            return divided(change_at, out_sharding, x, index, values, *options)
        return change_at(x, index, values, how, are_sorted, unique, mode, wrap)

    def apply(
        self,
        func,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `func`, a function of one scalar, applied to the elements.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.arange(3.0).at[1:].apply(jnp.negative)
            Array([ 0., -1., -2.], dtype=float32)
        """
        return apply_at(
            self.array, self.index, func, indices_are_sorted, unique_indices, mode, wrap=wrap_negative_indices
        )
