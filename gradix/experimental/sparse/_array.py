"""`JAXSparse`: the base class of all sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._api.devices import block_until_ready


class JAXSparse:
    """The base class of sparse arrays: a shape, specified elements and their indices.

    All other elements are zero.

    Attributes:
        data: the specified elements.
        shape: the shape of the whole array.
        nse: the number of specified elements.

    Example:
        >>> from gradix.experimental import sparse
        >>> x = sparse.eye(3)
        >>> isinstance(x, sparse.JAXSparse), x.shape, x.nse
        (True, (3, 3), 3)
    """

    data: Any
    shape: tuple[int, ...]
    nse: Any
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy's arrays leave operators to this class.

    def __init__(self, args: tuple, *, shape):
        self.shape = tuple(shape)

    @property
    def dtype(self):
        return self.data.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self):
        return self.transpose()

    def block_until_ready(self):
        """Wait until the elements are computed, and return the array."""
        block_until_ready(self.tree_flatten()[0])
        return self

    def tree_flatten(self):
        raise self._missing("tree_flatten")

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The array of these parts, which need not be arrays while a transformation runs."""
        made = object.__new__(cls)
        made._set(children, **aux_data)
        return made

    def _set(self, *args, **kwargs) -> None:
        raise self._missing("_set")

    def todense(self):
        raise self._missing("todense")

    def transpose(self, axes=None):
        raise self._missing("transpose")

    def sum(self, *args, **kwargs):
        raise self._missing("sum")

    def __repr__(self) -> str:
        try:
            kind = f"{np.dtype(self.dtype).name}[{', '.join(map(str, self.shape))}], nse={self.nse}"
            layout = "".join(f", {n}={getattr(self, n)}" for n in ("n_batch", "n_dense") if getattr(self, n, 0))
        except Exception:  # A transformation may have replaced the parts by other objects.
            return f"{type(self).__name__}(<invalid>)"
        return f"{type(self).__name__}({kind}{layout})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __neg__(self):
        raise self._missing("__neg__")

    def __pos__(self):
        return self

    def __matmul__(self, other):
        raise self._missing("__matmul__")

    def __rmatmul__(self, other):
        raise self._missing("__rmatmul__")

    def __mul__(self, other):
        raise self._missing("__mul__")

    def __rmul__(self, other):
        raise self._missing("__rmul__")

    def __add__(self, other):
        raise self._missing("__add__")

    def __radd__(self, other):
        raise self._missing("__radd__")

    def __sub__(self, other):
        raise self._missing("__sub__")

    def __rsub__(self, other):
        raise self._missing("__rsub__")

    def __getitem__(self, item):
        raise self._missing("__getitem__")

    def _missing(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}.{name} is not defined. Convert the array by to_bcoo() or todense() first."
        )


def as_arrays(parts) -> tuple:
    """The parts of a sparse array: numbers and lists are made arrays, other objects are kept."""
    return tuple(
        [jnp.asarray(x) if isinstance(x, (np.ndarray, np.generic, int, float, complex, list)) else x for x in parts]
    )
