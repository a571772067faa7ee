"""Mutable arrays: a `Ref` holds an array, which can be replaced by another of the same type.

Tracing discharges refs. When a `StagingTrace` first meets a `Ref` from outside, the value of the
ref becomes an input of the program. The last value written becomes an output, and the code that
binds the program writes it back. So transformations and the compiler need not know of mutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base import source
from gradix._base.errors import NotAValueError, RefIndexError
from gradix._core import library_values
from gradix._core.array import as_array
from gradix._core.aval import AbstractValue, ShapedArray
from gradix._core.trace import LEAKED, Trace, Tracer, state

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class AbstractRef(AbstractValue):
    """The type of a `Ref`, with the type of the array that it holds.

    Example:
        >>> import gradix
        >>> gradix.typeof(gradix.new_ref(gradix.numpy.ones(2)))
        Ref{float32[2]}
    """

    __slots__ = ("inner_aval", "memory_space", "kind")
    place = None
    vma: frozenset = frozenset()

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    sharding = property(lambda self: self.inner_aval.sharding)

    def update(self, *, inner_aval=None, memory_space=None, kind=None) -> AbstractRef:
        """A copy of the type with some fields replaced."""
        return AbstractRef(inner_aval or self.inner_aval, memory_space or self.memory_space, kind or self.kind)

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()

    def __eq__(self, other) -> bool:
        return type(other) is AbstractRef and self.inner_aval is other.inner_aval and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.kind))


class ForkedKind:
    """The kind of a ref that `vmap` forks into one state for each example."""

    __slots__ = ()

    def fork(self, ref: Ref, size: int):
        """The stacked states of `size` examples; the outer state advances, so later ones differ."""
        raise NotImplementedError


class LocalRef:
    """A `Ref` from outside, as seen in a program being traced: its input, and its current value.

    Inside a mapped function, which records no inputs, `var` is None.
    """

    __slots__ = ("ref", "var", "value", "is_written")

    def __init__(self, ref: Ref, var, value):
        self.ref, self.var, self.value, self.is_written = ref, var, value, False


class Ref:
    """An array that can be changed in place; made by `new_ref`.

    `ref[i]` reads, `ref[i] = x` writes, and `ref[...]` is the whole array. Reading returns an
    ordinary array, which does not change with the ref. A ref works in `jit`, loops, branches and
    derivatives as it does outside.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> ref = gradix.new_ref(jnp.zeros(3))
        >>> ref[1] = 5.0
        >>> ref
        Ref([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("aval", "_value", "_level", "_place", "_dead", "__weakref__")
    __array_priority__ = 1000
    __iter__ = None
    has_one_type = True  # whether it always holds arrays of the same type
    stand_in: type[Ref]  # the type of the ref that functions get in its place

    def __init__(self, aval: AbstractRef, value, level: int | None = None):
        self.aval, self._value = aval, value
        # traces of this level and deeper ones are inside the scope of the ref
        self._level = state.depth if level is None else level
        self._place, self._dead = source.current(), ""

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)
    sharding = property(lambda self: self.read().sharding)
    committed = property(lambda self: getattr(self.read(), "committed", False))
    at = property(lambda self: _At(self))

    # -- the value ---------------------------------------------------------------------------------

    def read(self):
        """The array that the ref holds."""
        local = self._local()
        return self._value if local is None else local.value

    def write(self, value) -> None:
        """Replace the array by another of the same shape and dtype.

        Raises:
            ValueError: the array belongs to a transformation inside of which the ref is not.
        """
        local = self._local()
        level = self._level if local is None else value_level(local)
        if isinstance(value, Tracer) and level <= value._trace.level < LEAKED:
            if self.aval.kind is None:
                raise _inside_of(self, value)
            value = _undifferentiated(value, level)
        if local is None:
            self._value = value
        else:
            local.value, local.is_written = value, True

    def part(self, index):
        """The elements at an index that is not the whole."""
        return self.read()[_checked(index, self)]

    def changed(self, index, value, how: str):
        """The array with the elements at an index "set" to a value, or with it "add"ed to them."""
        return getattr(self.read().at[_checked(index, self)], how)(value)

    def _local(self) -> LocalRef | None:
        """The ref's stand-in in the program being traced; None if the ref is not from outside."""
        if self._dead:
            raise ValueError(f"{self._name()} was given up by {self._dead} and cannot be used any more.")
        s = state
        if s.depth < self._level:  # the function that made it has returned
            self._level = s.depth
        stage: Any = s.stage
        mapped = s.mapped
        if (
            mapped is not None
            and mapped.level >= self._level
            and isinstance(self.aval.kind, ForkedKind)
            and (stage is None or mapped.level > stage.level)
        ):
            return mapped.local(self)
        if stage is not None and stage.level >= self._level:
            return stage.local(self)
        if self._value is None:
            if stage is not None:  # a derivative of a program whose caller knows the ref given
                return stage.local(self)
            raise ValueError(
                f"{self._name()} stands for an argument of a function that has returned. Keep the ref "
                "itself, not the one the traced function sees."
            )
        return None

    def _name(self) -> str:
        return f"the mutable array {self.aval} made at {self._place}"

    # -- what users do with it ---------------------------------------------------------------------

    def __getitem__(self, index):
        return get(self, index)

    def __setitem__(self, index, value) -> None:
        swap(self, index, value, "ref[...] = value", False)

    def get(self, idx=...):
        """The part at `idx`, which is the whole by default."""
        return self[idx]

    def set(self, value, idx=...) -> None:
        """Write the part at `idx`, which is the whole by default."""
        self[idx] = value

    def swap(self, value, idx=...):
        """Write the part at `idx`, which is the whole by default, and return what it was before."""
        before = self[idx]
        self[idx] = value
        return before

    def addupdate(self, x, idx=()) -> None:
        """Add `x` to the part at `idx`, which is the whole by default."""
        addupdate(self, idx, x)

    def unsafe_buffer_pointer(self) -> int:
        return self.read().unsafe_buffer_pointer()

    def block_until_ready(self) -> Ref:
        self.read().block_until_ready()
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a mutable array of shape () has no first axis.")
        return self.shape[0]

    def __jax_array__(self):
        raise NotAValueError(f"{self._name()} is not an array: read its value with ref[...].")

    def __array__(self, dtype=None, copy=None):
        return self.__jax_array__()

    def __repr__(self) -> str:
        if self._dead:
            return f"Ref<{self.aval}, given up by {self._dead}>"
        value = self.read()
        return (
            f"Ref<{self.aval} of a traced program>"
            if isinstance(value, Tracer)
            else "Ref" + repr(value)[len("Array") :]
        )

    def __reduce__(self):
        return new_ref, (self.read(),)


Ref.stand_in = Ref


def _refused(symbol: str):
    def operator(self, *_):
        raise TypeError(f"{self._name()} is not an array: compute {symbol} with its value, ref[...].")

    return operator


_SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
for _operator, _symbol in _SYMBOLS.items():
    for _reflected in ("", "r"):
        setattr(Ref, f"__{_reflected}{_operator}__", _refused(_symbol))
for _operator, _symbol in {"neg": "-", "pos": "+", "abs": "abs", "invert": "~"}.items():
    setattr(Ref, f"__{_operator}__", _refused(_symbol))


def value_level(local: LocalRef) -> int:
    """The level of the traces inside the trace of a stand-in."""
    trace: Any = state.mapped if local.var is None else state.stage
    return trace.level + 1


class _At:
    """`ref.at[i]` is the part of the ref at `i`, to be read and written as a ref."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref):
        self.ref = ref

    def __getitem__(self, index) -> Ref:
        return View(self.ref, index)


class View(Ref):
    """A part of another ref."""

    __slots__ = ("base", "index")

    def __init__(self, base: Ref, index):
        part = get(base, index)
        super().__init__(AbstractRef(part.aval, base.aval.memory_space, base.aval.kind), None, base._level)
        self.base, self.index = base, index

    def read(self):
        return get(self.base, self.index)

    def write(self, value) -> None:
        swap(self.base, self.index, value, "ref.at[...]", False)


def _inside_of(ref: Ref, value) -> ValueError:
    trace: Trace = value._trace
    what = "a vmapped value" if type(trace).__name__.endswith("BatchTrace") else "a differentiated value"
    return ValueError(
        f"performing a set/swap operation with {what} on a mutable array from outside of the transformation: "
        f"{ref._name()}.\n"
        f"  where:   {source.current()}\n"
        "  instead: write lax.stop_gradient(value), make the ref inside the function and return its last value,\n"
        "           or, under vmap, pass the ref as an argument with an axis to map."
    )


def _undifferentiated(value, level: int):
    """The primal of a differentiated value, which a ref of kind "no_grad_no_remat" holds."""
    while isinstance(value, Tracer) and level <= value._trace.level < LEAKED:
        primal = getattr(value, "primal", None)
        if primal is None:
            raise ValueError(
                "a mutable array from outside of vmap cannot hold a value that differs per example. Pass "
                "it as an argument with an axis to map."
            )
        value = primal
    return value


# -- functions -------------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A mutable array whose first value is `init_val`.

    Args:
        init_val: an array or number.
        memory_space: an entry of the type; it has no effect, as there is one memory.
        kind: "no_grad_no_remat" lets differentiated values be written to it from inside of `grad`,
            without their derivative.

    Raises:
        TypeError: the value is a mutable array itself.
        ValueError: `kind` is unknown.

    Example:
        >>> import gradix
        >>> counter = gradix.new_ref(0)
        >>> @gradix.jit
        ... def count():
        ...     counter[...] += 1
        >>> count(), count(), counter
        (None, None, Ref(2, dtype=int32))
    """
    if isinstance(init_val, Ref):
        raise TypeError(
            f"new_ref takes an array, got {init_val._name()}. Write new_ref(ref[...]) for a second ref "
            "with the same value."
        )
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"new_ref: kind must be None or 'no_grad_no_remat', got {kind!r}.")
    if library_values.ref_of_value is not None and type(init_val) in library_values.types:
        return library_values.ref_of_value(init_val)
    value: Any = as_array(init_val)
    if value.aval.weak_type:
        value = value.astype(value.dtype)
    return Ref(AbstractRef(value.aval, memory_space, kind), value)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A mutable array of a type, whose first value is zeros.

    Raises:
        TypeError: `ty` has no shape or no dtype.

    Example:
        >>> import gradix
        >>> gradix.empty_ref(gradix.ShapeDtypeStruct((2,), "float32"))
        Ref([0., 0.], dtype=float32)
    """
    if library_values.ref_of_type is not None and hasattr(ty, "raise_val") and not isinstance(ty, ShapedArray):
        return library_values.ref_of_type(ty)
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(
            f"empty_ref takes a type with a shape and a dtype, got {ty!r}. Write ShapeDtypeStruct(shape, dtype)."
        )
    return new_ref(np.zeros(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Any:
    """The value of a ref, which may not be used after that.

    Example:
        >>> import gradix
        >>> ref = gradix.new_ref(3.0)
        >>> gradix.freeze(ref)
        Array(3., dtype=float32)
    """
    return ref._frozen() if hasattr(ref, "_frozen") else _end(ref, "freeze")


def free_ref(ref: Ref) -> None:
    """Give up a ref, which may not be used after that.

    Raises:
        ValueError: the ref is from outside of the function being traced.

    Example:
        >>> import gradix
        >>> ref = gradix.new_ref(1.0)
        >>> gradix.free_ref(ref)
    """
    _end(ref, "free_ref")


def _end(ref: Ref, by: str):
    _check_ref(by, ref)
    if ref._local() is not None:
        raise ValueError(
            f"{by}: {ref._name()} is from outside of the function being traced, and cannot be given up "
            f"in it. Read it with ref[...], or call {by} where it was made."
        )
    value = ref.read()
    ref._dead, ref._value = f"{by} at {source.current()}", None
    return value


def _check_ref(name: str, ref) -> None:
    if not isinstance(ref, Ref):
        raise TypeError(
            f"{name} expects a Ref as its first argument, got {ref!r} of type {type(ref).__name__}. Make "
            "one with gradix.new_ref(array)."
        )


def get(ref: Ref, idx: Any = None) -> Any:
    """The value of a ref at an index: `ref[idx]`; None is the whole array.

    Raises:
        ValueError: an index that is a Python int is out of range.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.ref.get(gradix.new_ref(jnp.arange(5)), slice(1, 3))
        Array([1, 2], dtype=int32)
    """
    _check_ref("ref_get", ref)
    return ref.read() if _is_whole(idx) else ref.part(idx)


def set(ref: Ref, idx: Any, value: ArrayLike) -> None:
    """Write to a ref at an index, as `ref[idx] = value` does; see `swap` for the arguments.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> ref = gradix.new_ref(jnp.zeros(2))
        >>> gradix.ref.set(ref, 1, 10.0)
        >>> ref
        Ref([ 0., 10.], dtype=float32)
    """
    swap(ref, idx, value, "ref_set", False)


def swap(ref: Ref, idx: Any, value: ArrayLike, _function_name: str = "ref_swap", _wants_old: bool = True) -> Any:
    """Write to a ref at an index, and return the old value there.

    Args:
        idx, value: an index, None for the whole array; a value of the ref's dtype that broadcasts.

    Raises:
        ValueError: `value` does not have the ref's dtype, or does not broadcast to the part.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.ref.swap(gradix.new_ref(jnp.arange(5)), 3, 10)
        Array(3, dtype=int32)
    """
    _check_ref(_function_name, ref)
    old = get(ref, idx) if _wants_old else None
    value = _fitting(_function_name, ref, value)
    if not _is_whole(idx):
        value = ref.changed(idx, value, "set")
    elif value.shape != ref.shape:
        value = _broadcast(_function_name, ref, value)
    ref.write(value)
    return old


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to a ref at an index; see `swap` for the arguments.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> ref = gradix.new_ref(jnp.arange(5))
        >>> gradix.ref.addupdate(ref, 2, 10)
        >>> ref
        Ref([ 0,  1, 12,  3,  4], dtype=int32)
    """
    _check_ref("ref_addupdate", ref)
    x = _fitting("ref_addupdate", ref, x)
    ref.write(ref.read() + _broadcast("ref_addupdate", ref, x) if _is_whole(idx) else ref.changed(idx, x, "add"))


def _is_whole(idx) -> bool:
    return idx is None or idx is Ellipsis or (isinstance(idx, tuple) and not idx)


def _checked(idx, ref: Ref):
    """The index, after a check that its ints are in range."""
    parts = idx if isinstance(idx, tuple) else (idx,)
    if Ellipsis not in [p for p in parts if type(p) is type(Ellipsis)]:
        for n, (i, size) in enumerate(zip([p for p in parts if p is not None], ref.shape)):
            if type(i) is int and not -size <= i < size:
                raise RefIndexError(f"Out of bound indexer: idx={i}, dim={size}, on axis {n} of {ref._name()}.")
    return idx


def _fitting(name: str, ref: Ref, given):
    """The value as an array of the ref's dtype."""
    value: Any = as_array(given)
    dtype = ref.dtype
    if value.dtype == dtype:
        return value.astype(dtype) if value.aval.weak_type else value
    order = "biufc"
    if value.aval.weak_type and isinstance(dtype, np.dtype) and _rank(value.dtype, order) <= _rank(dtype, order):
        return value.astype(dtype)
    raise ValueError(
        f"Invalid dtype for `{name}`. Ref dtype: {dtype}. Value dtype: {value.dtype}. A mutable array "
        f"keeps its dtype: write value.astype({dtype}), or make the ref with dtype {value.dtype}."
    )


def _rank(dtype, order: str) -> int:
    return order.index(dtype.kind) if dtype.kind in order else order.index("f")


def _broadcast(name: str, ref: Ref, value):
    ndim = len(ref.shape)
    if value.shape == ref.shape:
        return value
    if value.ndim > ndim or any(m not in (1, n) for m, n in zip(value.shape[::-1], ref.shape[::-1])):
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Value shape: {value.shape}. A mutable "
            "array keeps its shape: write a value that broadcasts to it."
        )
    return ref.read().at[...].set(value)
