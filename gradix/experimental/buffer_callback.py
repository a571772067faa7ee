"""`buffer_callback`: calls of Python functions that write their results into given buffers."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.callbacks import io_callback, pure_callback
from gradix._base.errors import JaxRuntimeError
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_flatten

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """The stage of a program at which a callback is called; here it is always EXECUTE.

    Example:
        >>> from gradix.experimental.buffer_callback import ExecutionStage
        >>> ExecutionStage(3)
        <ExecutionStage.EXECUTE: 3>
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """The first argument of a callback, which describes the program that calls it.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.buffer_callback import buffer_callback
        >>> def fill(ctx, out):
        ...     print(type(ctx).__name__, ctx.stage.name)
        ...     out.__array__()[...] = 7
        >>> buffer_callback(fill, gradix.ShapeDtypeStruct((2,), jnp.int32))()
        ExecutionContext EXECUTE
        Array([7, 7], dtype=int32)
    """

    @property
    def stage(self) -> ExecutionStage:
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """Not available, because callbacks run on the CPU: it raises JaxRuntimeError."""
        raise JaxRuntimeError("ctx.stream is not available: the callback runs on the CPU, which has no streams.")


class Buffer:
    """The memory of an array during a callback; NumPy and DLPack use it without a copy.

    Example:
        >>> import numpy as np
        >>> from gradix.experimental.buffer_callback import Buffer
        >>> memory = np.zeros(2)
        >>> buffer = Buffer(memory)
        >>> np.asarray(buffer)[0] = 5
        >>> memory, buffer.shape, buffer.writeable
        (array([5., 0.]), (2,), True)
    """

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray):
        self._array = array

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    writeable = property(lambda self: self._array.flags.writeable)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        want = self._array.dtype if dtype is None else np.dtype(dtype)
        if copy is False and want != self._array.dtype:
            raise ValueError(
                f"A buffer of dtype {self._array.dtype} needs a copy to become an array of dtype "
                f"{want}, but copy=False was given. Leave copy out, or do not change the dtype."
            )
        return np.array(self._array, want, copy=True) if copy else self._array.astype(want, copy=False)

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that calls a Python function, which writes the results into buffers.

    Args:
        callback: a function that is called as `callback(ctx, out, *args, **kwargs)`, with an
            `ExecutionContext` and with `Buffer`s in the pytrees of the results and the arguments.
            It writes to every buffer of `out`, and returns None.
        result_shape_dtypes: the shapes and dtypes of the results, `ShapeDtypeStruct`s in a pytree.
        has_side_effect: whether to call `callback` even if its results are not used; `vmap` then
            calls it once for each example.
        vmap_method: how `vmap` calls `callback`, as for `gradix.pure_callback`. If it is called
            once for all examples, buffers have a leading axis of the examples.
        input_output_aliases: a map from arguments to results that lie in the memory of these
            arguments, and so start with their values; both by their numbers among the leaves.
        command_buffer_compatible: not used; it is for GPUs.

    Returns:
        A function of pytrees of arrays that returns the results.

    Raises:
        TypeError: `callback` is not a function, or it does not return None.
        ValueError: an alias names an argument or a result that does not exist, or their types
            differ.

    Example:
        >>> import numpy as np, gradix, gradix.numpy as jnp
        >>> from gradix.experimental.buffer_callback import buffer_callback
        >>> def add_one(ctx, out, x):
        ...     np.asarray(out)[...] = np.asarray(x) + 1
        >>> x = jnp.array(41)
        >>> gradix.jit(buffer_callback(add_one, gradix.ShapeDtypeStruct.like(x)))(x)
        Array(42, dtype=int32)
    """
    if not callable(callback):
        raise TypeError(f"buffer_callback expects a function, got {callback!r}.")
    types, out_tree = tree_flatten(result_shape_dtypes)

    def call(*args, **kwargs):
        given = [np.ndim(x) for x in tree_flatten((args, kwargs))[0]]

        def run(*args, **kwargs):
            leaves, tree = tree_flatten((args, kwargs))
            inputs = [np.asarray(x) for x in leaves]
            # In one call for many examples, all results have the axis of the examples first.
            examples = np.broadcast_shapes(*[x.shape[: x.ndim - n] for x, n in zip(inputs, given)], ())
            outs = [np.empty((*examples, *t.shape), t.dtype) for t in types]
            for source, result in (input_output_aliases or {}).items():
                _check_alias(source, result, inputs, outs)
                outs[result][...] = inputs[source]
                inputs[source] = outs[result]
            buffers, named = tree.unflatten([Buffer(_read_only(x)) for x in inputs])
            found = callback(ExecutionContext(), out_tree.unflatten([Buffer(o) for o in outs]), *buffers, **named)
            if found is not None:
                raise TypeError(
                    "The callback of buffer_callback must write to its buffers and return None, but "
                    f"it returned a value of type {type(found).__name__}."
                )
            return out_tree.unflatten(outs)

        if has_side_effect:
            return io_callback(run, result_shape_dtypes, *args, **kwargs)
        return pure_callback(run, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.view()
    x.flags.writeable = False
    return x


def _check_alias(source: int, result: int, inputs: list, outs: list) -> None:
    if not (0 <= source < len(inputs) and 0 <= result < len(outs)):
        raise ValueError(
            f"input_output_aliases has {{{source}: {result}}}, but there are {len(inputs)} arguments "
            f"and {len(outs)} results."
        )
    x, y = inputs[source], outs[result]
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(
            f"input_output_aliases joins argument {source} of {x.dtype}{list(x.shape)} and result "
            f"{result} of {y.dtype}{list(y.shape)}. Join an argument and a result of the same type."
        )


__dir__ = _own_names(__name__)
