"""`vectorize`: a function of scalars or small arrays becomes one of arrays that broadcast."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection

from gradix import lax
from gradix._api.mapping.vmap import vmap
from gradix._base.tracebacks import boundary
from gradix.numpy.promotion import as_operand, check_rank_promotion

_NAME = r"\w+"
_DIMENSIONS = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_LIST = rf"{_DIMENSIONS}(?:,{_DIMENSIONS})*"
_SIGNATURE = re.compile(rf"^(?:{_LIST})?->{_LIST}$")


def vectorize(
    pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable:
    """A function that applies `pyfunc` along the leading axes of its arguments, which broadcast.

    Args:
        pyfunc: a function of arrays.
        excluded: positions and names of arguments that are passed on as they are.
        signature: the last axes of each argument and result of `pyfunc`, as in
            `'(n,m),(m)->(n)'`; by default, all are scalars.

    Returns:
        A function with the arguments of `pyfunc`; its results have the broadcast leading axes, then
        those of `pyfunc`.

    Raises:
        TypeError: `excluded` holds something other than integers and strings; or the function is
            called with another number of arguments than the signature has.
        ValueError: `signature` is not well formed or `excluded` holds negative positions; or, when
            the function is called, arguments do not fit the signature, one that has axes there is
            None, or their ranks differ and the option `jax_numpy_rank_promotion` is "raise".

    Example:
        >>> import gradix.numpy as jnp
        >>> mean_of = jnp.vectorize(jnp.mean, signature="(n)->()")
        >>> mean_of(jnp.arange(6.0).reshape(2, 3))
        Array([1., 4.], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"vectorize: excluded must hold positions and names (integers and strings), got {excluded!r}.")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: excluded must not hold negative positions, got {excluded!r}. Count from 0.")
    axes = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    @boundary
    def vectorized(*args, **kwargs):
        function, positions, arrays = _bound(pyfunc, args, kwargs, excluded)
        given = axes
        if axes is not None and len(axes[0]) != len(arrays):
            raise TypeError(
                f"vectorize: the signature {signature!r} is for {len(axes[0])} arguments, got {len(arrays)}."
            )
        if any(x is None for x in arrays):  # None is passed on as it is.
            absent = [i for i, x in zip(positions, arrays) if x is None]
            if axes is not None:
                misfits = [i for i, names, x in zip(positions, axes[0], arrays) if x is None and names]
                if misfits:
                    raise ValueError(
                        f"vectorize: the signature {signature!r} has axes for argument {misfits[0]!r}, "
                        "which is None. Pass an array, or give it () in the signature."
                    )
                given = [core for core, x in zip(axes[0], arrays) if x is not None], axes[1]
            function, positions, arrays = _bound(pyfunc, args, kwargs, {*excluded, *absent})
        return _mapped(function, [as_operand("vectorize", x, i) for i, x in zip(positions, arrays)], given)

    return vectorized


def _parse(signature: str) -> tuple[list, list]:
    text = signature.replace(" ", "")
    if not _SIGNATURE.match(text):
        raise ValueError(f"vectorize: signature must have a form such as '(n,m),(m)->(n)', got {signature!r}.")
    sides = []
    for side in text.split("->"):
        groups = re.findall(rf"\(((?:{_NAME}(?:,{_NAME})*)?)\)", side)
        sides.append([tuple(g.split(",")) if g else () for g in groups])
    return sides[0], sides[1]


def _bound(pyfunc, args, kwargs, excluded):
    """A function of the mapped arguments alone, their positions and names, and the arguments."""
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
    sizes: dict = {}
    leads = [_lead(x, names, sizes) for x, names in zip(arrays, core)]
    ranks = {len(lead) for x, lead in zip(arrays, leads) if x.ndim}
    if len(ranks) > 1:
        check_rank_promotion("vectorize", arrays)
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
    """The shape of the leading axes; sizes of the others are added to `sizes` by name."""
    if x.ndim < len(names):
        raise ValueError(
            f"vectorize: an argument of shape {x.shape} has too few axes for ({','.join(names)}) of the signature."
        )
    lead, own = x.shape[: x.ndim - len(names)], x.shape[x.ndim - len(names) :]
    for name, size in zip(names, own):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"vectorize: axis {name!r} of the signature has inconsistent sizes {sizes[name]} and {size}."
            )
    return lead


def _checked(function, axes, sizes):
    """The function, which raises for results that do not fit the signature."""

    def checked(*arrays):
        out = function(*arrays)
        results = out if isinstance(out, (tuple, list)) else (out,)
        if len(results) != len(axes[1]):
            raise TypeError(
                f"vectorize: the signature is for {len(axes[1])} results, but the function returned {len(results)}."
            )
        for value, names in zip(results, axes[1]):
            # A result may be a tree of arrays that has a shape as a whole.
            shape = value.shape if hasattr(value, "shape") else as_operand("vectorize", value).shape
            if len(shape) != len(names):
                raise ValueError(
                    f"vectorize: a result has shape {shape}, but the axes ({','.join(names)}) in the signature."
                )
            for name, size in zip(names, shape):
                if sizes.get(name, size) != size:
                    raise ValueError(
                        f"vectorize: axis {name!r} of the signature has inconsistent sizes {sizes[name]} and {size}."
                    )
        return out

    return checked
