"""What the samplers share: where a draw runs, and the checks of shapes and dtypes."""

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
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, shared
from gradix._core.aval import make_aval
from gradix._core.key_flow import accounted, is_accounted
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._ops.canonicalization import canonical_shape
from gradix._ops.random.generators import is_composed

# elements up to which composing a draw eagerly is quicker than compiling a program for it
EAGER_LIMIT = 1 << 16
# eager draws of one signature, after which a program for it has paid for itself
COMPILE_AFTER = 256
# elements up to which uniform numbers are quicker on the host than a compiled call
QUICK = 1 << 8
_options = config.state


class _Turn(threading.local):
    """Whether a draw is composed right now: those it is made of are not counted."""

    inside = False


_turn = _Turn()


def sampler(function: Callable, limit: int = EAGER_LIMIT, quick: int = 0) -> Callable:
    """A draw `function(key, *arrays, shape, dtype, ...)`: run eagerly up to `limit` elements, else compiled.

    A signature drawn `COMPILE_AFTER` times is compiled from then on, unless `gradix_eager` is
    "host": counted, so that runs of a program repeat exactly. Up to `quick` elements the host stays
    quicker. Inside a traced function a draw is one equation, `jit[name=_uniform ...]`, traced once
    per signature. The attribute `compiled` is the draw as one program.
    """
    parameters = inspect.signature(function).parameters.values()
    compiled = jit(
        function, static_argnames=[p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    )
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
            # already on the device
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
    """Count a draw of these types, not being part of another; whether there were many before."""
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


# as EAGER_LIMIT, of draws that loop until all elements are accepted
REJECTION_LIMIT = 1 << 9
rejection_sampler = functools.partial(sampler, limit=REJECTION_LIMIT)


def size_of(shape: tuple) -> Any:
    return shape[0] if len(shape) == 1 else prod(shape)


def on_host(key) -> bool:
    """Whether a draw from this key may be computed by NumPy at once."""
    return (
        state.stage is None
        and type(key) is ArrayImpl
        and key.aval.place is None
        and _options.gradix_eager != "xla"
        and (key.aval.dtype is dtypes.KEY or not is_composed(key.aval.dtype))
    )


# -- dtypes ----------------------------------------------------------------------------------------


def float_dtype(
    name: str, dtype, kinds: frozenset = dtypes.FLOAT, what: str = "float", stacklevel: int = 4
):
    """The dtype of a sampler's `dtype=` argument; the default float when None.

    Raises:
        ValueError: it is of another kind.
    """
    if dtype is None:
        return dtypes.python_scalar_dtype(float)
    found = dtypes.requested_dtype(dtype, name, stacklevel=stacklevel)
    if found not in kinds:
        raise ValueError(
            f"dtype argument to `{name}` must be a {what} dtype, got {dtypes.dtype_name(found)}. "
            f"Draw floats and convert them: {name}(key, ...).astype({dtypes.dtype_name(found)!r})."
        )
    return found


def int_dtype(name: str, dtype):
    """As `float_dtype`, for integers."""
    found = (
        dtypes.python_scalar_dtype(int)
        if dtype is None
        else dtypes.requested_dtype(dtype, name, stacklevel=4)
    )
    if found not in dtypes.INTEGER:
        raise ValueError(
            f"dtype argument to `{name}` must be an int dtype, got {dtypes.dtype_name(found)}."
        )
    return found


# -- shapes ----------------------------------------------------------------------------------------


def shape_of(name: str, shape) -> tuple:
    """A sampler's `shape=` argument as a tuple."""
    if type(shape) is not tuple or shape:
        shape = canonical_shape(shape)
        for n in shape:
            if type(n) is int and n < 0:
                raise ValueError(f"{name} got shape {shape}: sizes must not be negative.")
    return shape


def parameter_shape(name: str, shape, *params: Array) -> tuple:
    """The shape of a draw with array parameters: their common shape, or the one asked for, which they must fit.

    Raises:
        ValueError: the parameters do not broadcast to `shape`.
    """
    shapes = [p.aval.shape for p in params]
    if shape is None:
        return _broadcast(shapes)
    shape = shape_of(name, shape)
    if any(shapes) and _broadcast([shape, *shapes]) != shape:
        raise ValueError(
            f"{name} got shape={shape} for parameters of shapes {', '.join(map(str, shapes))}, which "
            f"broadcast to {_broadcast([shape, *shapes])}. The shape of the draw must be that or a "
            "larger one."
        )
    return shape


def _broadcast(shapes) -> tuple:
    filled = [s for s in shapes if s]
    if len(filled) <= 1 or all(s == filled[0] for s in filled):
        return filled[0] if filled else ()
    try:
        return lax.broadcast_shapes(*shapes)
    except (ValueError, TypeError):
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


# -- parameters ------------------------------------------------------------------------------------


def parameter(name: str, x) -> Array:
    """An array parameter of a sampler: a number or an array, no list."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except TypeError:
        raise TypeError(
            f"{name} requires ndarray or scalar arguments, got {type(x)}. Convert it with "
            "gradix.numpy.asarray(...)."
        ) from None


def fitting(name: str, dtype, *params) -> tuple:
    """Parameters of a sampler that promote to `dtype`.

    Raises:
        TypePromotionError: one does not, so that digits would be lost.
    """
    found = tuple([parameter(name, x) for x in params])
    for x in found:
        aval = x.aval
        if aval.dtype is not dtype and dtypes.result_type(aval, dtype) != dtype:
            own, wanted = dtypes.dtype_name(aval.dtype), dtypes.dtype_name(dtype)
            raise dtypes.TypePromotionError(
                f"{name} cannot safely cast a parameter of dtype {own} to dtype={wanted}, "
                f"that of the draw. Convert it with .astype({wanted!r}), or draw in a "
                "wider dtype."
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
    """A parameter in `dtype` and of the rank of `shape`; scalars stay scalars."""
    x = lax.convert_element_type(x, dtype)
    return raise_rank(x, len(shape)) if x.aval.shape else x


def raise_rank(x: Array, rank: int) -> Array:
    """`x` with leading axes of size 1, until it has `rank` axes."""
    own = x.aval.shape
    missing = rank - len(own)
    return (
        lax.broadcast_in_dim(x, (1,) * missing + own, tuple(range(missing, rank))) if missing else x
    )


def number(x, dtype) -> ArrayImpl:
    """A Python number as a scalar of `dtype`, made once."""
    key = (x, dtype)
    found = _numbers.get(key)
    if found is None:
        found = ArrayImpl(np.asarray(x, dtype), make_aval((), dtype))  # never a tracer
        if len(_numbers) < _numbers.limit:
            _numbers.keep(key, shared(found))
    return found


_numbers: BoundedCache[tuple, ArrayImpl] = BoundedCache(4096, drop=0)
