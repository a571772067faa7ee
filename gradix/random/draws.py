"""Parts of all samplers: where a draw runs, and how shapes and dtypes are checked."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradix import lax
from gradix._api.jit.jit import jit
from gradix._base import config
from gradix._base.bounded import BoundedCache
from gradix._base.errors import class_of
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, as_number, shared
from gradix._core.aval import make_aval
from gradix._core.key_flow import accounted, is_accounted
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._ops.canonicalization import canonical_shape
from gradix._ops.random.generators import is_composed

EAGER_LIMIT = 1 << 16  # Draws of up to so many elements are composed of eager operations.
COMPILE_AFTER = 256  # After so many eager draws of one signature, it is compiled.
QUICK = 1 << 8  # Up to so many elements, uniform numbers are always drawn on the host.
_options = config.state


class _Turn(threading.local):
    """Whether a draw is being composed; the draws of which it consists are not counted."""

    inside = False


_turn = _Turn()


def sampler(function: Callable, limit: int = EAGER_LIMIT, quick: int = 0) -> Callable:
    """A draw `function(key, *arrays, shape, dtype, ...)`, eager up to `limit` elements or compiled.

    After `COMPILE_AFTER` eager draws of a signature with more than `quick` elements, the signature
    is compiled, unless `gradix_eager` is "host". They are counted, not timed, so that runs of a
    program repeat exactly. In a traced function a draw is one equation, such as
    `jit[name=_uniform ...]`, which is traced once for a signature. The attribute `compiled` is the
    draw as one program.
    """
    parameters = inspect.signature(function).parameters.values()
    compiled = jit(function, static_argnames=[p.name for p in parameters if p.kind is p.KEYWORD_ONLY])
    counts: BoundedCache[tuple, int] = BoundedCache(4096)

    @functools.wraps(function)
    def draw(key, *args, shape, **options):
        size = size_of(shape)
        if _options.jax_debug_key_reuse and state.stage is None and not is_accounted():
            return accounted(draw, key, *args, shape=shape, **options)
        if state.stage is not None or size > limit:
            return compiled(key, *args, shape=shape, **options)
        if size <= quick or _turn.inside or type(key) is not ArrayImpl:
            return function(key, *args, shape=shape, **options)
        if is_frequent(counts, args, shape, options):
            # Such numbers are on the device already.
            args = [number(a, options["dtype"]) if type(a) is float else a for a in args]
            return compiled(key, *args, shape=shape, **options)
        _turn.inside = True
        try:
            return function(key, *args, shape=shape, **options)
        finally:
            _turn.inside = False

    draw.compiled = compiled  # type: ignore[attr-defined]
    return draw


def is_frequent(counts: BoundedCache, args: tuple, shape: tuple, options: dict) -> bool:
    """Count a draw of a signature unless it is part of another, and tell if there were many."""
    if _turn.inside:
        return False
    try:
        signature = (shape, *options.values(), *[a if type(a) is float else a.aval for a in args])
    except AttributeError:
        return False
    seen = counts.get(signature, 0)
    if seen >= COMPILE_AFTER:
        return _options.gradix_eager != "host"
    counts.keep(signature, seen + 1)
    return False


REJECTION_LIMIT = 1 << 9  # The same for draws that loop until all elements are accepted.
rejection_sampler = functools.partial(sampler, limit=REJECTION_LIMIT)


def size_of(shape: tuple) -> Any:
    return shape[0] if len(shape) == 1 else prod(shape)


def on_host(key) -> bool:
    """Whether a draw with this key may be computed by NumPy at once."""
    return (
        state.stage is None
        and type(key) is ArrayImpl
        and key.aval.place is None
        and _options.gradix_eager != "xla"
        and (key.aval.dtype is dtypes.KEY or not is_composed(key.aval.dtype))
    )


# -- dtypes ----------------------------------------------------------------------------------------


def float_dtype(name: str, dtype, kinds: frozenset = dtypes.FLOAT, what: str = "float", stacklevel: int = 4):
    """The dtype that a sampler's argument `dtype` stands for; None is the default floating one.

    Raises:
        ValueError: the dtype is none of `kinds`.
    """
    if dtype is None:
        return dtypes.python_scalar_dtype(float)
    found = dtypes.requested_dtype(dtype, name, stacklevel=stacklevel)
    if found not in kinds:
        raise ValueError(
            f"{name}: dtype must be a {what} dtype, got {dtypes.dtype_name(found)}. Convert the "
            f"numbers: {name}(key, ...).astype({dtypes.dtype_name(found)!r})."
        )
    return found


def int_dtype(name: str, dtype):
    """As `float_dtype`, for integers."""
    found = dtypes.python_scalar_dtype(int) if dtype is None else dtypes.requested_dtype(dtype, name, stacklevel=4)
    if found not in dtypes.INTEGER:
        raise ValueError(
            f"{name}: dtype must be an int dtype, got {dtypes.dtype_name(found)}. Convert the "
            f"numbers: {name}(key, ...).astype({dtypes.dtype_name(found)!r})."
        )
    return found


# -- shapes ----------------------------------------------------------------------------------------


def shape_of(name: str, shape) -> tuple:
    """A sampler's argument `shape` as a tuple."""
    if type(shape) is not tuple or shape:
        shape = canonical_shape(shape)
        for n in shape:
            if type(n) is int and n < 0:
                raise ValueError(f"{name}: shape must not hold negative sizes, got {shape}.")
    return shape


def parameter_shape(name: str, shape, *params: Array) -> tuple:
    """The shape of a draw with array parameters: `shape`, or the one to which they broadcast.

    Raises:
        ValueError: the parameters do not broadcast to `shape`.
    """
    shapes = [p.aval.shape for p in params]
    if shape is None:
        return _broadcast(name, shapes)
    shape = shape_of(name, shape)
    if any(shapes) and _broadcast(name, [shape, *shapes]) != shape:
        raise ValueError(
            f"{name}: parameters of shapes {', '.join(map(str, shapes))} do not broadcast to "
            f"shape={shape}. Give shape={_broadcast(name, [shape, *shapes])}, or a larger one."
        )
    return shape


def _broadcast(name: str, shapes) -> tuple:
    filled = [s for s in shapes if s]
    if len(filled) <= 1 or all(s == filled[0] for s in filled):
        return filled[0] if filled else ()
    try:
        return lax.broadcast_shapes(*shapes)
    except (ValueError, TypeError):
        raise ValueError(
            f"{name}: incompatible shapes for broadcasting: {', '.join(map(str, shapes))}. Axes are "
            "matched from the last one, and must agree or have size 1."
        ) from None


# -- parameters ------------------------------------------------------------------------------------


def parameter(name: str, x) -> Array:
    """A parameter of a sampler, a number or an array, as an array."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except TypeError:
        instead = "Convert it with jnp.asarray(...)"
        if isinstance(x, (list, tuple)) and name == "choice":
            instead += ", or choose the place in a list: x[choice(key, len(x))]"
        raise TypeError(f"{name} takes arrays and numbers, got {class_of(x)}. {instead}.") from None


def fitting(name: str, dtype, *params) -> tuple:
    """Parameters of a sampler that promote to `dtype`.

    Raises:
        TypePromotionError: a parameter does not, so that digits would be lost.
    """
    found = tuple([parameter(name, x) for x in params])
    for x in found:
        aval = x.aval
        if aval.dtype is not dtype and dtypes.result_type(aval, dtype) != dtype:
            own, wanted = dtypes.dtype_name(aval.dtype), dtypes.dtype_name(dtype)
            raise dtypes.TypePromotionError(
                f"{name} cannot safely cast a parameter of dtype {own} to dtype={wanted} of the "
                f"draw. Convert it with .astype({wanted!r}), or draw in a wider dtype."
            )
    return found


def spread(x, dtype, shape: tuple):
    """A parameter in `dtype`, broadcast to `shape`."""
    x = lax.convert_element_type(x, dtype)
    own = x.aval.shape
    if own == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))


def converted(x, dtype, shape: tuple):
    """A parameter in `dtype` with the rank of `shape`; scalars stay scalars."""
    x = lax.convert_element_type(x, dtype)
    return raise_rank(x, len(shape)) if x.aval.shape else x


def raise_rank(x: Array, rank: int) -> Array:
    """`x` with leading axes of size 1, until it has `rank` axes."""
    own = x.aval.shape
    missing = rank - len(own)
    return lax.broadcast_in_dim(x, (1,) * missing + own, tuple(range(missing, rank))) if missing else x


def of_one_rank(*xs: Array) -> list[Array]:
    """Arrays with the highest rank among them; scalars stay scalars."""
    rank = max([x.aval.ndim for x in xs])
    return [raise_rank(x, rank) if x.aval.shape else x for x in xs]


def number(x, dtype) -> ArrayImpl:
    """A Python number as a scalar of `dtype`; it is made once and kept."""
    key = (x, dtype)
    found = _numbers.get(key)
    if found is None:
        found = as_number(ArrayImpl(np.asarray(x, dtype), make_aval((), dtype)))  # It is never a tracer.
        if len(_numbers) < _numbers.limit:
            _numbers.keep(key, shared(found))
    return found


_numbers: BoundedCache[tuple, ArrayImpl] = BoundedCache(4096, drop=0)
