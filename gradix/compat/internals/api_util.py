"""`jax._src.api_util`: arguments of functions by their positions and names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from gradix.api_util import (
    argnums_partial as argnums_partial,
    debug_info as debug_info,
    donation_vector as donation_vector,
    flatten_axes as flatten_axes,
    flatten_fun as flatten_fun,
    flatten_fun_nokwargs as flatten_fun_nokwargs,
    rebase_donate_argnums as rebase_donate_argnums,
    shaped_abstractify as shaped_abstractify,
)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of arguments, where None stands for those given by the other one.

    Args:
        sig: the signature of the function.
        argnums: positions, or None.
        argnames: names, or None.

    Example:
        >>> infer_argnums_and_argnames(inspect.signature(lambda x, y: x), None, "y")
        ((1,), ('y',))
    """
    numbers = (argnums,) if isinstance(argnums, int) else None if argnums is None else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else None if argnames is None else tuple(argnames)
    kinds = {name: p.kind for name, p in sig.parameters.items()}
    listed = [
        n for n, k in kinds.items() if k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if names is None:
        found = [listed[i] for i in numbers or () if -len(listed) <= i < len(listed)]
        names = tuple([n for n in found if kinds[n] is not inspect.Parameter.POSITIONAL_ONLY])
    if numbers is None:
        numbers = tuple([listed.index(n) for n in names if n in listed])
    return numbers, names
