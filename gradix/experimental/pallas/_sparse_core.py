"""Functions of kernels for the sparse cores of TPUs: scattered accesses, masked scans, packing."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.refs import Ref
from gradix.experimental.pallas._programs import loop


@dataclasses.dataclass(frozen=True)
class Indices:
    """Indices for a gather or a scatter, of which those equal to `ignored_value` are left out.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.Indices(jnp.array([2, -1, 0]), ignored_value=-1).ignored_value
        -1
    """

    values: Any
    ignored_value: int | None = None


class PackFormat(enum.Enum):
    """Whether two packed arrays alternate, or the second follows the first.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> a, b = jnp.array([1, 2]), jnp.array([3, 4])
        >>> {f.value: tpu_sc.pack(a, b, format=f).tolist() for f in tpu_sc.PackFormat}
        {'interleaved': [1, 3, 2, 4], 'compressed': [1, 2, 3, 4]}
    """

    INTERLEAVED = "interleaved"
    COMPRESSED = "compressed"


# -- references ------------------------------------------------------------------------------------


def load_gather(ref: Any, indices: Sequence[Any], *, mask: Any = None) -> Any:
    """The elements of a reference at indices, given for each of its axes.

    Args:
        mask: booleans; where false, the memory is not read, and the result is 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def pick(ref):
        ...     ref[...] = tpu_sc.load_gather(ref, [jnp.array([2, 0, 1])], mask=jnp.array([True, True, False]))
        >>> pl.run_state(pick)(jnp.array([10, 20, 30]))
        Array([30, 10,  0], dtype=int32)
    """
    value = ref.read()
    if mask is None:
        return value[tuple(indices)]
    return value.at[_kept(value.shape, indices, mask)].get(mode="fill", fill_value=0)


def store_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """Write elements to a reference at indices, given for each of its axes.

    Args:
        mask: booleans; where false, nothing is written.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def put(ref):
        ...     tpu_sc.store_scatter(ref, [jnp.array([2, 0])], jnp.array([7, 8]))
        >>> pl.run_state(put)(jnp.zeros(3, "int32"))
        Array([8, 0, 7], dtype=int32)
    """
    value = ref.read()
    index = tuple(indices) if mask is None else _kept(value.shape, indices, mask)
    ref.write(value.at[index].set(x, mode="drop"))


def addupdate_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """As `store_scatter`, but add to what is there; elements named twice get both summands.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def histogram(ref):
        ...     tpu_sc.addupdate_scatter(ref, [jnp.array([2, 0, 2])], jnp.ones(3, "int32"))
        >>> pl.run_state(histogram)(jnp.zeros(3, "int32"))
        Array([1, 0, 2], dtype=int32)
    """
    value = ref.read()
    index = tuple(indices) if mask is None else _kept(value.shape, indices, mask)
    ref.write(value.at[index].add(x, mode="drop"))


def _kept(shape, indices, mask) -> tuple:
    """The indices, those that the mask leaves out moved beyond the end."""
    first, *rest = [jnp.asarray(i) for i in indices]
    return (jnp.where(mask, first, shape[0]), *rest)


def addupdate(ref: Any, x: Any) -> None:
    """Add an array to a reference of the same shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> pl.run_state(lambda ref: tpu_sc.addupdate(ref, jnp.array([1, 2])))(jnp.array([10, 20]))
        Array([11, 22], dtype=int32)
    """
    ref.write(ref.read() + x)


def _places(mask) -> Any:
    """The number of true elements before each element of a mask."""
    return jnp.cumsum(mask.astype(np.int32)) - 1


def load_expanded(ref: Any, *, mask: Any) -> Any:
    """The first elements of a reference, put where a mask is true; 0 elsewhere.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def expand(ref):
        ...     ref[...] = tpu_sc.load_expanded(ref, mask=jnp.array([False, True, False, True]))
        >>> pl.run_state(expand)(jnp.array([1, 2, 3, 4]))
        Array([0, 1, 0, 2], dtype=int32)
    """
    mask = jnp.asarray(mask)
    return load_gather(ref, [_places(mask)], mask=mask)


def store_compressed(ref: Any, x: Any, *, mask: Any) -> None:
    """Write the elements of an array where a mask is true, one after another from the first.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> x, mask = jnp.array([1, 2, 3, 4]), jnp.array([False, True, False, True])
        >>> pl.run_state(lambda ref: tpu_sc.store_compressed(ref, x, mask=mask))(jnp.zeros(4, "int32"))
        Array([2, 4, 0, 0], dtype=int32)
    """
    mask = jnp.asarray(mask)
    store_scatter(ref, [_places(mask)], x, mask=mask)


def addupdate_compressed(ref: Any, x: Any, *, mask: Any) -> None:
    """As `store_compressed`, but add to what is there.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> x, mask = jnp.array([1, 2, 3, 4]), jnp.array([False, True, False, True])
        >>> pl.run_state(lambda ref: tpu_sc.addupdate_compressed(ref, x, mask=mask))(jnp.array([10, 20, 30, 40]))
        Array([12, 24, 30, 40], dtype=int32)
    """
    mask = jnp.asarray(mask)
    addupdate_scatter(ref, [_places(mask)], x, mask=mask)


# -- scans and counts ------------------------------------------------------------------------------


def cumsum(x: Any, *, mask: Any = None) -> Any:
    """The sums of the elements up to each one along the last axis, of those where a mask is true.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.cumsum(jnp.array([1, 2, 3]), mask=jnp.array([True, False, True]))
        Array([1, 1, 4], dtype=int32)
    """
    x = jnp.asarray(x)
    return jnp.cumsum(x if mask is None else jnp.where(mask, x, 0), -1, dtype=x.dtype)


def cummax(x: Any, *, mask: Any = None) -> Any:
    """The maximum of the elements up to each one along the last axis, of those where a mask is true.

    Elements before the first true one are given back as they are.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.cummax(jnp.array([1, 9, 2, 3]), mask=jnp.array([True, False, True, True]))
        Array([1, 1, 2, 3], dtype=int32)
    """
    x = jnp.asarray(x)
    if mask is None:
        return lax.cummax(x, x.ndim - 1)
    least = -np.inf if jnp.issubdtype(x.dtype, np.floating) else jnp.iinfo(x.dtype).min
    top = lax.cummax(jnp.where(mask, x, least), x.ndim - 1)
    return jnp.where(jnp.cumsum(jnp.asarray(mask, np.int32), -1) > 0, top, x)


def all_reduce_population_count(x: Any, *, reduce: int = 1) -> Any:
    """The number of true elements of a row of booleans, an int32 for each `reduce` elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.all_reduce_population_count(jnp.array([True, False, True, True]), reduce=2)
        Array([3, 3], dtype=int32)
    """
    return jnp.full(x.size // reduce, jnp.sum(x, dtype=np.int32))


def all_reduce_ffs(x: Any, *, reduce: int = 1) -> Any:
    """The index of the first true element of a row, or its size, an int32 for each `reduce` elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.all_reduce_ffs(jnp.array([False, False, True, True]), reduce=4)
        Array([2], dtype=int32)
        >>> tpu_sc.all_reduce_ffs(jnp.array([False, False]), reduce=2)
        Array([2], dtype=int32)
    """
    first = jnp.where(jnp.any(x), jnp.argmax(x), x.size).astype(np.int32)
    return jnp.full(x.size // reduce, first)


def scan_count(x: Any, mask: Any = None) -> tuple[Any, Any]:
    """How often each element of a row stood in it so far, itself counted, and which are the last ones.

    Args:
        mask: booleans; elements where it is false are not counted.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.scan_count(jnp.array([5, 7, 5, 5]))
        (Array([1, 1, 2, 3], dtype=int32), Array([False,  True, False,  True], dtype=bool))
    """
    n = x.shape[0]
    counted = jnp.ones(n, bool) if mask is None else jnp.asarray(mask)
    alike = (x[:, None] == x[None, :]) & counted[None, :]
    up_to = np.arange(n)[None, :] <= np.arange(n)[:, None]
    counts = jnp.sum(alike & up_to, 1, dtype=np.int32)
    return counts, counted & ~jnp.any(alike & ~up_to, 1)


def sort_key_val(keys: Any, values: Any, *, mask: Any = None, descending: bool = False) -> Any:
    """Keys in order with their values; those where a mask is false come last.

    Returns:
        The keys and the values, and with a mask also that of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
        (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
        >>> tpu_sc.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]), mask=jnp.array([True, False, True]))[2]
        Array([ True,  True, False], dtype=bool)
    """
    valid = jnp.ones(keys.shape, bool) if mask is None else jnp.asarray(mask)
    order = jnp.argsort(keys, descending=descending)
    order = order[jnp.argsort(~valid[order], stable=True)]
    out = keys[order], values[order]
    return out if mask is None else (*out, valid[order])


# -- packing ---------------------------------------------------------------------------------------

_NARROWER = {"float32": "bfloat16", "int32": "int16", "uint32": "uint16", "int16": "int8", "uint16": "uint8"}


def pack(a: Any, b: Any, /, *, format: PackFormat, preferred_element_type: Any = None) -> Any:
    """Two arrays as one of a dtype of half the width, of twice as many elements.

    Raises:
        ValueError: there is no dtype of half the width, and none is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.pack(jnp.array([1, 2]), jnp.array([3, 4]), format=tpu_sc.PackFormat.INTERLEAVED)
        Array([1, 3, 2, 4], dtype=int16)
    """
    narrow = preferred_element_type or _NARROWER.get(a.dtype.name)
    if narrow is None:
        raise ValueError(f"pack: give preferred_element_type for arrays of dtype {a.dtype}.")
    a, b = a.astype(narrow), b.astype(narrow)
    if format is PackFormat.INTERLEAVED:
        return jnp.stack([a, b], -1).reshape(*a.shape[:-1], -1)
    return jnp.concatenate([a, b], -1)


def unpack(ab: Any, /, *, format: PackFormat, preferred_element_type: Any = None) -> tuple:
    """The two arrays that `pack` made one of, of a dtype of twice the width.

    Raises:
        ValueError: there is no dtype of twice the width, and none is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.unpack(jnp.array([1, 3, 2, 4], "int16"), format=tpu_sc.PackFormat.INTERLEAVED)
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    wide = preferred_element_type or {v: k for k, v in _NARROWER.items()}.get(ab.dtype.name)
    if wide is None:
        raise ValueError(f"unpack: give preferred_element_type for an array of dtype {ab.dtype}.")
    if format is PackFormat.INTERLEAVED:
        parts = ab[..., 0::2], ab[..., 1::2]
    else:
        parts = tuple(jnp.split(ab, 2, -1))
    return tuple([p.astype(wide) for p in parts])


def bitcast(x: Any, dtype: Any) -> Any:
    """The bits of an array as another dtype; the last axis grows or shrinks with its width.

    Raises:
        ValueError: the last axis cannot be divided by the number of elements that become one.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu_sc
        >>> tpu_sc.bitcast(jnp.array([1, 65536]), "int16")
        Array([1, 0, 0, 1], dtype=int16)
    """
    old, new = x.dtype.itemsize, np.dtype(dtype).itemsize
    if new > old:
        if x.shape[-1] % (new // old):
            raise ValueError(
                f"a bitcast from {x.dtype} to {np.dtype(dtype)} joins {new // old} elements, but the shape is "
                f"{x.shape}."
            )
        x = x.reshape(*x.shape[:-1], -1, new // old)
    y = lax.bitcast_convert_type(x, dtype)
    return y.reshape(*y.shape[:-2], -1) if new < old else y


# -- control ---------------------------------------------------------------------------------------


def parallel_loop(lower: Any, upper: Any, step: Any = 1, *, unroll: int = 1, carry: Any = None) -> Any:
    """A decorator that runs a function for each number from `lower` to `upper`, as `pl.loop`.

    Args:
        carry: the first carry; with it, the function takes the number and the carry, and returns
            the next carry.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def total(ref):
        ...     @tpu_sc.parallel_loop(0, 5)
        ...     def _(i):
        ...         ref[...] += i
        >>> pl.run_state(total)(0)
        Array(10, dtype=int32)
    """
    return loop(lower, upper, step=step, init_carry=carry)


def fetch_and_add(x_ref: Any, value: Any, *, subcore_id: Any) -> Any:
    """Add to a reference of this subcore, and return what was there.

    Raises:
        NotImplementedError: the subcore is another one.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def count(refs):
        ...     refs["old"][...] = tpu_sc.fetch_and_add(refs["n"], 2, subcore_id=0)
        >>> pl.run_state(count)({"n": 5, "old": 0})
        {'n': Array(7, dtype=int32), 'old': Array(5, dtype=int32)}
    """
    if not isinstance(x_ref, Ref) or not isinstance(subcore_id, int) or subcore_id:
        raise NotImplementedError(
            "fetch_and_add reaches the memory of another subcore, which cores that run one after another do not have. "
            "Add to an output reference, which all of them share."
        )
    old = x_ref.read()
    x_ref.write(old + value)
    return old
