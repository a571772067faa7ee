"""The classes of values, as texts of errors name them."""

from __future__ import annotations

from typing import Any


def class_of(x: Any) -> str:
    """The class of a value as Python shows it, where it is one of this package by its public name.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> class_of(3), class_of(jnp.ones(2)), class_of(gradix.P("x"))
        ("<class 'int'>", "<class 'gradix.Array'>", "<class 'PartitionSpec'>")
    """
    kind = type(x)
    module = kind.__module__
    if not module.startswith("gradix.") or "._" not in module:
        return repr(kind)
    # tracers and arrays are both an Array to users
    public = next((c for c in kind.__mro__ if c.__module__ == "gradix"), None)
    return repr(public) if public is not None else f"<class '{kind.__qualname__}'>"
