"""`set_xla_metadata`: attributes on operations, for the passes and tools of XLA."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from gradix._api.boundary import arrays
from gradix._base.config import override
from gradix._base.listing import own_names as _own_names
from gradix._base.name_stack import tagging
from gradix._base.tree import tree_flatten as _flatten
from gradix._core.trace import bind
from gradix._ops.markers import xla_metadata_value_p

__all__ = ["set_xla_metadata"]


class _Tagging(contextlib.ContextDecorator):
    """A context manager and decorator that gives attributes to the operations recorded inside."""

    def __init__(self, attributes: dict[str, str | None]):
        self.attributes = attributes
        self.entered: list = []

    def _recreate_cm(self):
        return _Tagging(self.attributes)

    def __call__(self, function):
        return _Tagged(function, self) if hasattr(function, "lower") else super().__call__(function)

    def __enter__(self):
        stack = contextlib.ExitStack()
        tags = stack.enter_context(tagging(self.attributes))
        stack.enter_context(override("gradix_xla_metadata", tuple(sorted(tags.items())) or None))
        self.entered.append(stack)

    def __exit__(self, *exc):
        self.entered.pop().close()


class _Tagged:
    """A jitted function that is called, traced and lowered with attributes."""

    def __init__(self, function, tagging: _Tagging):
        functools.update_wrapper(self, function)
        self._function, self._tagging = function, tagging

    def __call__(self, *args, **kwargs):
        with self._tagging:
            return self._function(*args, **kwargs)

    def trace(self, *args, **kwargs):
        with self._tagging:
            return self._function.trace(*args, **kwargs)

    def lower(self, *args, **kwargs):
        with self._tagging:
            return self._function.lower(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        with self._tagging:
            return self._function.eval_shape(*args, **kwargs)

    def __getattr__(self, name: str):
        return getattr(self._function, name)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give operations attributes that XLA sees, as `mhlo.frontend_attributes`.

    Args:
        x: a pytree of arrays, whose operations get the attributes, or a function to decorate.
            Without it the result is a context manager and decorator for all operations recorded
            inside, including those of their derivatives and of vmap.
        kwargs: the attributes. Values are converted to strings; None removes an attribute.

    Returns:
        The arrays `x` with attributes, the decorated function, or a context manager.

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
    attributes = {k: text_of(v) for k, v in kwargs.items()}
    if x is None:
        return _Tagging(attributes)
    if callable(x):
        return _Tagging(attributes)(x)
    leaves, tree = _flatten(x)
    kept = {"xla_metadata_kvs": tuple(sorted((k, v) for k, v in attributes.items() if v is not None))}
    return tree.unflatten(
        [bind(xla_metadata_value_p, (leaf,), kept) for leaf in arrays("set_xla_metadata", leaves, tree, "x")]
    )


def text_of(value) -> str | None:
    """The value of an attribute as text."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


__dir__ = _own_names(__name__)
