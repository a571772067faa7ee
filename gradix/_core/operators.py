"""`Array`: the base of concrete and traced arrays; `gradix.numpy` installs most of its members."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from gradix._core.array_interface import ArrayMembers as _Members
else:
    _Members = object

# What users of other libraries look for on an array, and what to write instead.
_CHANGED = "write x = x + y, x = x.at[index].set(values) and the like, which make new arrays"
_SPARSE = "sparse arrays have it: gradix.experimental.sparse.BCOO.fromdense(x), or BCSR, COO or CSR"
_FOREIGN = {
    "abs": "write abs(x) or jnp.abs(x)",
    "add_": _CHANGED,
    "append": "write jnp.append(x, values), which returns a new array",
    "backward": "derivatives are taken of functions: gradix.grad(f)(x)",
    "clamp": "write jnp.clip(x, min, max)",
    "contiguous": "arrays have no strides, so x itself serves",
    "copy_": _CHANGED,
    "cpu": "write gradix.device_put(x, gradix.devices('cpu')[0])",
    "cuda": "write gradix.device_put(x, gradix.devices('cuda')[0])",
    "detach": "write gradix.lax.stop_gradient(x)",
    "dim": "write x.ndim",
    "div_": _CHANGED,
    "double": "write x.astype(jnp.float64)",
    "exp": "write jnp.exp(x)",
    "expand": "write jnp.broadcast_to(x, shape)",
    "fill_": _CHANGED,
    "fill": "write jnp.full_like(x, value)",
    "float": "write x.astype(jnp.float32)",
    "grad": "derivatives are taken of functions: gradix.grad(f)(x)",
    "half": "write x.astype(jnp.float16)",
    "iloc": "arrays have no labels, write x[i]",
    "int": "write x.astype(jnp.int32)",
    "long": "write x.astype(jnp.int64)",
    "log": "write jnp.log(x)",
    "masked_fill": "write jnp.where(mask, value, x)",
    "matmul": "write x @ y",
    "mm": "write x @ y",
    "mul_": _CHANGED,
    "norm": "write jnp.linalg.norm(x)",
    "numel": "write x.size",
    "n_batch": _SPARSE,
    "n_sparse": _SPARSE,
    "numpy": "write np.asarray(x)",
    "permute": "write x.transpose(axes)",
    "pow": "write x**y",
    "relu": "write gradix.nn.relu(x)",
    "requires_grad": "gradix.grad says of which arguments it takes derivatives: argnums",
    "requires_grad_": "gradix.grad says of which arguments it takes derivatives: argnums",
    "sigmoid": "write gradix.nn.sigmoid(x)",
    "resize": "write jnp.resize(x, shape), which returns a new array",
    "softmax": "write gradix.nn.softmax(x, axis)",
    "sqrt": "write jnp.sqrt(x)",
    "sub_": _CHANGED,
    "tanh": "write jnp.tanh(x)",
    "to_bcoo": _SPARSE,
    "todense": _SPARSE,
    "to": "write gradix.device_put(x, device) for a device, x.astype(dtype) for a dtype",
    "to_numpy": "write np.asarray(x)",
    "type": "write x.astype(dtype)",
    "unsqueeze": "write jnp.expand_dims(x, axis)",
    "zero_": _CHANGED,
}


class _Foreign:
    """A member that arrays lack: looking it up raises an error that says what to write."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, x, owner=None):
        # without the object, for whose other names Python would offer one that is close
        raise AttributeError(f"arrays have no attribute {self.name!r}: {_FOREIGN[self.name]}.", name=self.name)


class Array(_Members):
    """An immutable n-dimensional array, concrete or traced.

    Operators, methods and properties such as `x + y`, `x.sum()`, `x.T` and `x.at[...]` come from
    `gradix.numpy`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> isinstance(jnp.ones(3), gradix.Array)
        True
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # None makes isinstance(x, Hashable) false
    aval: Any

    if TYPE_CHECKING:

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)

    @property
    def shape(self) -> tuple:
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    @property
    def __numpy_dtype__(self):
        """The dtype that NumPy, from version 2.4 on, takes the array for where it asks for one."""
        warnings.warn(
            "Implicit conversion of an array to a dtype is deprecated: write x.dtype, as in dtype=x.dtype.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        shape = self.aval.shape
        if not shape:
            raise TypeError("len() of unsized object: an array of shape () has no first axis.")
        return shape[0]

    def __dir__(self):
        return [name for name in super().__dir__() if name not in _FOREIGN]

    def __setitem__(self, index, value):
        raise TypeError(
            f"{type(self).__name__} object is immutable and does not support item assignment (x[{_show(index)}] = "
            f"...). Write y = x.at[{_show(index)}].set(...) instead, which returns the updated array; there "
            "are .add, .multiply, .min, .max and .apply, too."
        )

    def __delitem__(self, index):
        raise TypeError(
            "Arrays are immutable: elements cannot be deleted. Write gradix.numpy.delete(x, i), which "
            "returns a new array without them."
        )


for _name in _FOREIGN:
    setattr(Array, _name, _Foreign(_name))


def _show(index) -> str:
    return "idx" if len(text := _index_text(index)) > 40 else text


def _index_text(index) -> str:
    if isinstance(index, slice):
        ends = ["" if e is None else str(e) for e in (index.start, index.stop)]
        return ":".join(ends) + ("" if index.step is None else f":{index.step}")
    if index is Ellipsis:
        return "..."
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    return "idx" if isinstance(index, Array) else repr(index)


def install(members: dict[str, Any]) -> None:
    """Set operators, methods and properties on `Array`; `gradix.numpy` does this once, at import.

    A subclass's own definition takes precedence, so that concrete and traced arrays can differ.
    """
    for name, member in members.items():
        setattr(Array, name, member)
