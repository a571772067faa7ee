"""`ffi_call`: calls of compiled functions that users register with XLA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradix._api.boundary import arrays
from gradix._api.tokens import Token
from gradix._base.tree import tree_flatten as flatten
from gradix._control.foreign_call import VMAP_METHODS, ArrayAttribute, ffi_call_p
from gradix._core import dtypes
from gradix._core.array_layouts import Layout
from gradix._core.aval import AbstractToken, make_aval
from gradix._core.operators import Array
from gradix._core.trace import bind

FfiLayoutOptions = Sequence[int] | Layout | None


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[FfiLayoutOptions] | None = None,
    output_layouts: FfiLayoutOptions | Sequence[FfiLayoutOptions] = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Array | Sequence[Array]]:
    """A function that calls the compiled function registered as `target_name`.

    It has no derivative; wrap it in `custom_jvp` or `custom_vjp` to give it one.

    Args:
        target_name: the name given to `register_ffi_target`.
        result_shape_dtypes: an object with the shape and dtype of the result, such as a
            `ShapeDtypeStruct`, or `core.abstract_token` for a token; for several results a sequence of
            these. Dtypes of 64 bits are those of the result whatever `jax_enable_x64` says, as the
            function writes them.
        has_side_effect: whether the call is kept if its results are not used.
        vmap_method: how `vmap` calls the function. "sequential" and "sequential_unrolled" call it
            once for each example. The other methods call it once: "expand_dims" adds a leading
            axis of size 1 to unbatched arguments, "broadcast_all" broadcasts them to the batch
            size, and "legacy_vectorized" passes them unchanged. With None, `vmap` raises.
        input_layouts: for each argument the order of its axes in memory, from major to minor; None
            for C order.
        output_layouts: the same for the results.
        input_output_aliases: a map from arguments to the results that may reuse their memory, by
            number.
        custom_call_api_version: 4 for handlers of XLA's typed interface; smaller numbers are for
            older interfaces.
        legacy_backend_config: a string that is passed to handlers of older interfaces.

    Returns:
        A function of arrays that returns an array, or a tuple of arrays. Where it takes or returns
        tokens (`lax.create_token`), its calls happen in order. Its keyword arguments
        become attributes of the call; they are strings, booleans, Python and NumPy numbers, NumPy
        arrays, and dictionaries of these.

    Raises:
        ValueError: an option is not one of those above.
        TypeError: a keyword argument cannot become an attribute.
        JaxRuntimeError: nothing is registered under the name, or the function fails.

    Example:
        >>> import numpy as np
        >>> import gradix
        >>> call = gradix.ffi.ffi_call("my_kernel", gradix.ShapeDtypeStruct((3,), "float32"))
        >>> text = gradix.jit(lambda x: call(x, scale=np.float32(2))).lower(np.ones(3, "f")).as_text()
        >>> "@my_kernel(" in text and "scale = 2.0" in text
        True
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {[*VMAP_METHODS, None]}, got {vmap_method!r}.")
    is_several = isinstance(result_shape_dtypes, Sequence)
    wanted = list(result_shape_dtypes) if is_several else [result_shape_dtypes]
    given_tokens = [i for i, x in enumerate(wanted) if isinstance(x, AbstractToken)]
    avals = tuple([_aval(i, x) for i, x in enumerate(wanted) if i not in given_tokens])
    given_layouts: Any = output_layouts if is_several else [output_layouts]
    if is_several and output_layouts is None:
        given_layouts = None
    elif given_tokens:  # tokens have none
        given_layouts = [o for i, o in enumerate(given_layouts) if i not in given_tokens]
    outs = _layouts("output_layouts", given_layouts, avals)
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError(
            "legacy_backend_config is for a custom_call_api_version below 4, got version "
            f"{custom_call_api_version}. Pass attributes by keyword to the function that ffi_call returns."
        )

    def call(*args: Any, **kwargs: Any):
        every, tree = flatten(args, lambda x: isinstance(x, Token))
        taken = [i for i, x in enumerate(every) if isinstance(x, Token)]
        leaves = [x for x in every if not isinstance(x, Token)]
        operands = arrays(f"ffi_call to {target_name}", leaves, flatten(leaves)[1] if taken else tree, "argument ")
        attributes = tuple([(k, _attribute(k, kwargs[k])) for k in sorted(kwargs)])
        if attributes and custom_call_api_version < 4:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least 4; "
                f"got custom_call_api_version={custom_call_api_version}. Older handlers take the "
                "string legacy_backend_config."
            )
        params = {
            "target_name": target_name,
            "result_avals": avals,
            "attributes": attributes,
            "has_side_effect": bool(has_side_effect),
            "vmap_method": vmap_method,
            "input_layouts": _layouts("input_layouts", input_layouts, operands),
            "output_layouts": outs,
            "input_output_aliases": _aliases(input_output_aliases, operands, avals),
            "custom_call_api_version": custom_call_api_version,
            "legacy_backend_config": legacy_backend_config,
            "tokens": (tuple(taken), tuple(given_tokens)),
        }
        results = bind(ffi_call_p, operands, params)
        for i in given_tokens:
            results.insert(i, Token())
        return tuple(results) if is_several else results[0]

    return call


def _aval(position: int, x: Any):
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
            f"{x!r} at position {position}; write gradix.ShapeDtypeStruct(shape, dtype)."
        )
    return make_aval(tuple(x.shape), dtypes.as_dtype(x.dtype), False)  # as wide as the function writes it


def _layouts(name: str, given: Sequence[FfiLayoutOptions] | None, values) -> tuple:
    """The layout of each value: the order of its axes, from major to minor."""
    if given is None:
        given = [None] * len(values)
    if len(given) != len(values):
        raise ValueError(f"ffi_call: {name} has {len(given)} entries for {len(values)} arrays; give one for each.")
    out = []
    for i, (order, x) in enumerate(zip(given, values)):
        ndim = len(x.shape)
        if order is None:
            axes = tuple(range(ndim))
        else:
            axes = order.major_to_minor if isinstance(order, Layout) else tuple(order)
        if sorted(axes) != list(range(ndim)):
            raise ValueError(
                f"ffi_call: {name}[{i}] = {axes} is not an order of the axes of an array of shape "
                f"{x.shape}; it must hold each of 0 to {ndim - 1} once."
            )
        out.append(axes)
    return tuple(out)


def _aliases(given: Mapping[int, int] | None, operands, avals) -> tuple:
    pairs = sorted((given or {}).items())
    for i, o in pairs:
        for what, number, count in (("input", i, len(operands)), ("output", o, len(avals))):
            if not 0 <= number < count:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {what} index "
                    f"{number} outside the range [0, {count})."
                )
        have, want = operands[i].aval, avals[o]
        if have.shape != want.shape or have.dtype != want.dtype:
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}', but argument {i} is "
                f"{have.str_short()} and result {o} is {want.str_short()}: they must be alike."
            )
    return tuple(pairs)


def _attribute(name: str, value: Any):
    """A keyword argument in a form that can be compared and lowered."""
    if isinstance(value, np.ndarray):
        return ArrayAttribute(value)
    if isinstance(value, Mapping):
        return tuple([(k, _attribute(f"{name}[{k!r}]", value[k])) for k in sorted(value)])
    if isinstance(value, (bool, int, float, str, np.generic)):
        return value
    raise TypeError(
        f"ffi_call: keyword argument {name}={value!r} of type {type(value).__name__} cannot be an "
        "attribute. Pass a string, bool, Python or NumPy number, a NumPy array, or a dictionary of "
        "these; pass arrays to compute with by position."
    )
