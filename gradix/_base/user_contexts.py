"""Values of the user's own on which traced programs depend: `make_user_context`."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

from gradix._base import config as _config

_numbers = itertools.count()


class UserContext:
    """A value that traced programs may depend on; calling it with another value gives a context manager.

    `make_user_context` makes one. Functions under `jit` are traced anew where the value differs.
    """

    __slots__ = ("_option",)

    def __init__(self, default_value: Hashable = None):
        self._option = f"gradix_user_context_{next(_numbers)}"
        _config.define(self._option, _checked(self._option, default_value), _checked, traced=True)

    def __call__(self, new_value: Hashable) -> Any:
        """A context manager, or decorator, in which the value in this thread is `new_value`.

        Raises:
            TypeError: `new_value` is not hashable.
        """
        return _config.override(self._option, new_value)

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return _config.config.read(self._option)

    def get_global(self) -> Any:
        """The value of the process, which context managers of a thread override."""
        return _config.process_wide(self._option)

    def set_global(self, value: Hashable) -> None:
        """Set the value of the process.

        Raises:
            TypeError: `value` is not hashable.
        """
        _config.config.update(self._option, value)

    def __repr__(self) -> str:
        return f"<user context {self._option.rpartition('_')[2]}: {self.value!r}>"


def _checked(name: str, value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"the value of a user context must be hashable, as programs are kept by it; got {value!r} of type "
            f"{type(value).__name__}. Pass a tuple or a frozen dataclass, for instance."
        ) from None
    return value


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A value of the user's own by which jitted functions are traced, and their programs kept.

    Args:
        default_value: its first value in the process.

    Returns:
        An object whose `value` is the present one; called with another value, it is a context
        manager in which that holds in this thread. `set_global` sets it for the process.

    Raises:
        TypeError: a value is not hashable.

    Example:
        >>> import gradix
        >>> scale = gradix.make_user_context(1.0)
        >>> f = gradix.jit(lambda x: x * scale.value)
        >>> with scale(2.0):
        ...     f(3.0)
        Array(6., dtype=float32, weak_type=True)
        >>> f(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return UserContext(default_value)
