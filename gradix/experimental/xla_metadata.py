"""Attributes on operations, which the compiler hands on to what it makes of them: for its flags, passes and tools."""

from __future__ import annotations

import contextlib

from gradix._api.flat_functions import arrays
from gradix._base.config import override
from gradix._base.name_stack import tagging
from gradix._base.tree import tree_flatten as _flatten
from gradix._core.trace import bind
from gradix._ops.markers import xla_metadata_value_p

__all__ = ["set_xla_metadata"]


class _Tagging(contextlib.ContextDecorator):
    """Attributes for what is recorded inside."""

    def __init__(self, attributes: dict[str, str | None]):
        self.attributes = attributes
        self.entered: list = []

    def _recreate_cm(self):
        return _Tagging(self.attributes)

    def __enter__(self):
        stack = contextlib.ExitStack()
        tags = stack.enter_context(tagging(self.attributes))
        stack.enter_context(override("gradix_xla_metadata", tuple(sorted(tags.items())) or None))
        self.entered.append(stack)

    def __exit__(self, *exc):
        self.entered.pop().close()


def set_xla_metadata(x=None, **kwargs):
    """Give operations attributes that XLA sees, as `mhlo.frontend_attributes`.

    Args:
        x: arrays, in a tree: the operations that give them get the attributes. Without it, the
            result is a context manager and a decorator, for the operations recorded inside, those
            of derivatives and of mapped versions too.
        kwargs: the attributes; a value is written as text, and None takes an attribute away.

    Returns:
        `x`, or a context manager.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.xla_metadata import set_xla_metadata
        >>> @gradix.jit
        ... def f(x):
        ...     with set_xla_metadata(part="encoder"):
        ...         return jnp.sin(x)
        >>> 'mhlo.frontend_attributes = {part = "encoder"}' in f.lower(1.0).as_text()
        True
    """
    attributes = {k: _text(v) for k, v in kwargs.items()}
    if x is None:
        return _Tagging(attributes)
    if callable(x):
        return _Tagging(attributes)(x)
    leaves, tree = _flatten(x)
    kept = {
        "xla_metadata_kvs": tuple(sorted((k, v) for k, v in attributes.items() if v is not None))
    }
    return tree.unflatten(
        [
            bind(xla_metadata_value_p, (leaf,), kept)
            for leaf in arrays("set_xla_metadata", leaves, tree, "x")
        ]
    )


def _text(value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
