"""`xla_metadata_call`: a function as one call of the program, with attributes for XLA's passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradix._api.boundary import arrays
from gradix._api.tracing import flat_body
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_flatten as _flatten
from gradix._control.composite import xla_metadata_call_p
from gradix._core.trace import bind
from gradix.experimental.xla_metadata import text_of

__all__ = ["scheduling_group", "xla_metadata_call"]


def xla_metadata_call(f: Callable | None = None, **meta: Any) -> Callable:
    """The function `f` as one call of the program, which XLA sees with attributes.

    Calls of its derivatives have the same attributes.

    Args:
        f: a function of pytrees of arrays; without it the result is a decorator.
        meta: the attributes; values are converted to strings.

    Returns:
        A function with the arguments and results of `f`; it may close over those by keyword.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.scheduling_groups import xla_metadata_call
        >>> wave = xla_metadata_call(jnp.sin, part="encoder")
        >>> 'mhlo.frontend_attributes = {part = "encoder"}' in gradix.jit(wave).lower(1.0).as_text()
        True
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    function = f
    attributes = tuple([(k, text_of(v)) for k, v in sorted(meta.items()) if v is not None])

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, tree = _flatten((args,))
        leaves = arrays("xla_metadata_call", leaves, tree, "argument ")
        body = flat_body("xla_metadata_call", lambda given: function(*given, **kwargs), tree)
        closed, consts = body.stage_open([x.aval for x in leaves])
        outs = bind(
            xla_metadata_call_p,
            [*consts, *leaves],
            {"jaxpr": closed, "name": "xla_metadata_call", "attributes": attributes},
        )
        return body.out_tree.unflatten(outs)

    return call


def scheduling_group(name: str) -> Callable:
    """A decorator: XLA schedules the operations of the function together, as the group `name`.

    Args:
        name: the name of the group.

    Example:
        >>> import gradix
        >>> from gradix.experimental.scheduling_groups import scheduling_group
        >>> @scheduling_group("forward")
        ... def f(x):
        ...     return 2 * x
        >>> f(1.5)
        Array(3., dtype=float32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


__dir__ = _own_names(__name__)
