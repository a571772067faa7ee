"""`x.at[index]`: copies of an array with some elements set, added to, multiplied, ..."""

from __future__ import annotations

import functools

from gradix import lax
from gradix._api.constraints import divided
from gradix._core.operators import Array
from gradix.numpy.arithmetic import power
from gradix.numpy.division import true_divide
from gradix.numpy.index_updates import (
    apply_at,
    change_at,
)
from gradix.numpy.indexing import take_index


class IndexUpdateHelper:
    """What `x.at` is; index it: `x.at[2:4].set(0)`."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """The elements of an array at an index; each method returns a new array, with these elements changed.

    Arguments all methods share:
        indices_are_sorted: a promise that the index arrays ascend.
        unique_indices: a promise that no element is named twice. Without it, an element named
            repeatedly is changed as often; `set` leaves one of its values.
        mode: what happens at integers out of bounds: "drop" (or "fill", None): nothing; "clip": the
            nearest element is changed; "promise_in_bounds": there are none.
        out_sharding: the sharding of the result.
        wrap_negative_indices: whether negative indices count from the end.

    A traced boolean mask is an index too, where the values do not depend on how many elements it
    holds.
    """

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def __getattr__(self, name):
        known = ", ".join(
            [
                f".{method}"
                for method in vars(type(self))
                if not method.startswith("_") and method not in self.__slots__
            ]
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
        """`x[index]`, with a choice of what integers out of bounds take.

        Args:
            mode: "clip" (or None): the nearest element; "fill" (or "drop"): `fill_value`;
                "promise_in_bounds".
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
        return self._with(
            "set",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        return self._with(
            "add",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        """The array with `values` taken from the elements."""
        return self._with(
            "sub",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        """The array with the elements multiplied by `values`."""
        return self._with(
            "mul",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        """The array with the elements divided by `values`; integers become floating-point numbers."""
        return self._with(
            true_divide,
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
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
        """The array with the elements raised to the power `values`."""
        return self._with(
            power,
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        """The array with the elements brought down to `values` where they are larger."""
        return self._with(
            "min",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

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
        """The array with the elements brought up to `values` where they are smaller."""
        return self._with(
            "max",
            values,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap_negative_indices,
            out_sharding=out_sharding,
        )

    def _with(
        self,
        how,
        values,
        indices_are_sorted,
        unique_indices,
        mode,
        wrap_negative_indices,
        *,
        out_sharding,
    ):
        rest = how, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        if out_sharding is not None:
            return divided(change_at, out_sharding, self.array, self.index, values, *rest)
        return change_at(self.array, self.index, values, *rest)

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
            self.array,
            self.index,
            func,
            indices_are_sorted,
            unique_indices,
            mode,
            wrap=wrap_negative_indices,
        )
