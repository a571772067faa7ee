"""`vectorize`: functions of small arrays made functions of arrays that broadcast."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from gradix import lax
from gradix._api.mapping.vmap import vmap
from gradix._base.tracebacks import boundary
from gradix.numpy.promotion import as_operand

_NAME = r"\w+"
_DIMENSIONS = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_LIST = rf"{_DIMENSIONS}(?:,{_DIMENSIONS})*"
_SIGNATURE = re.compile(rf"^(?:{_LIST})?->{_LIST}$")


def vectorize(pyfunc: Callable, *, excluded=frozenset(), signature: str | None = None) -> Callable:
    """A function that applies `pyfunc` along the leading axes of its arguments, which broadcast.

    Args:
        pyfunc: a function of arrays.
        excluded: positions and names of arguments that are passed on as they are.
        signature: the axes `pyfunc` works on, as in `'(n,m),(m)->(n)'`; scalars by default.

    Raises:
        ValueError: the signature is not well formed, or the arguments do not fit it.

    Example:
        >>> import gradix.numpy as jnp
        >>> mean_of = jnp.vectorize(jnp.mean, signature="(n)->()")
        >>> mean_of(jnp.arange(6.0).reshape(2, 3))
        Array([1., 4.], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            "gradix.numpy.vectorize can only exclude integer or string arguments, but "
            f"excluded={excluded!r}."
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(
            f"excluded={excluded!r} contains negative numbers: count positions from 0."
        )
    axes = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    @boundary
    def vectorized(*args, **kwargs):
        function, positions, arrays = _bound(pyfunc, args, kwargs, excluded)
        given = axes
        if any(x is None for x in arrays):  # None is not mapped over, but is handed on
            absent = [i for i, x in zip(positions, arrays) if x is None]
            if axes is not None and len(axes[0]) == len(arrays):
                given = [core for core, x in zip(axes[0], arrays) if x is not None], axes[1]
            function, positions, arrays = _bound(pyfunc, args, kwargs, {*excluded, *absent})
        return _mapped(
            function, [as_operand("vectorize", x, i) for i, x in zip(positions, arrays)], given
        )

    return vectorized


def _parse(signature: str) -> tuple[list, list]:
    text = signature.replace(" ", "")
    if not _SIGNATURE.match(text):
        raise ValueError(
            f"not a valid gufunc signature: {signature!r}. Write for example '(n,m),(m)->(n)'."
        )
    sides = []
    for side in text.split("->"):
        groups = re.findall(rf"\(((?:{_NAME}(?:,{_NAME})*)?)\)", side)
        sides.append([tuple(g.split(",")) if g else () for g in groups])
    return sides[0], sides[1]


def _bound(pyfunc, args, kwargs, excluded):
    """The function of the arguments to map over, their positions, and these arguments."""
    names = [k for k in kwargs if k not in excluded]
    positions = [i for i in range(len(args)) if i not in excluded]

    def function(*arrays):
        full, named = list(args), dict(kwargs)
        for i, x in zip(positions, arrays):
            full[i] = x
        for k, x in zip(names, arrays[len(positions) :]):
            named[k] = x
        return pyfunc(*full, **named)

    return function, [*positions, *names], [args[i] for i in positions] + [kwargs[k] for k in names]


def _mapped(function, arrays, axes):
    core = [()] * len(arrays) if axes is None else axes[0]
    if len(core) != len(arrays):
        raise ValueError(
            f"wrong number of positional arguments: expected {len(core)}, got {len(arrays)}."
        )
    sizes: dict = {}
    leads = [_lead(x, names, sizes) for x, names in zip(arrays, core)]
    shape = lax.broadcast_shapes(*leads) if leads else ()
    call = _checked(function, axes, sizes) if axes is not None else function
    squeezed = []
    in_axes: list[list] = [[] for _ in shape]
    for x, lead in zip(arrays, leads):
        missing = len(shape) - len(lead)
        kept = [i for i, n in enumerate(lead) if n != 1 or shape[missing + i] == 1]
        drop = tuple([i for i in range(len(lead)) if i not in kept])
        squeezed.append(lax.squeeze(x, drop) if drop else x)
        for i in range(len(shape)):
            in_axes[i].append(0 if i - missing in kept else None)
    for spec, size in zip(reversed(in_axes), reversed(shape)):
        call = vmap(call, in_axes=tuple(spec), axis_size=size)
    return call(*squeezed)


def _lead(x, names: tuple, sizes: dict) -> tuple:
    """The shape in front of the axes the function works on; their sizes are noted by name."""
    if x.ndim < len(names):
        raise ValueError(
            f"input with shape {x.shape} does not have enough dimensions for all core dimensions {names} "
            "on vectorized function."
        )
    lead, own = x.shape[: x.ndim - len(names)], x.shape[x.ndim - len(names) :]
    for name, size in zip(names, own):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {size} and {sizes[name]}."
            )
    return lead


def _checked(function, axes, sizes):
    """The function with its results compared with the signature."""

    def checked(*arrays):
        out = function(*arrays)
        results = out if isinstance(out, (tuple, list)) else (out,)
        if len(results) != len(axes[1]):
            raise TypeError(
                f"wrong number of outputs from the vectorized function: expected {len(axes[1])}, "
                f"got {len(results)}."
            )
        for value, names in zip(results, axes[1]):
            value = as_operand("vectorize", value)
            if value.ndim != len(names):
                raise ValueError(
                    f"output of shape {value.shape} does not have the core dimensions {names}."
                )
            for name, size in zip(names, value.shape):
                if sizes.get(name, size) != size:
                    raise ValueError(
                        f"inconsistent size for core dimension {name!r}: {size} and {sizes[name]}."
                    )
        return out

    return checked
