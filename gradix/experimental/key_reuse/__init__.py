"""`check_key_reuse` checks that a function uses no random key twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._api.inspect import make_jaxpr
from gradix._base.errors import KeyReuseError as KeyReuseError
from gradix._base.listing import own_names as _own_names
from gradix._core.key_flow import key_flow


def check_key_reuse(fun: Callable, /, *args: Any) -> None:
    """Check that a function uses no random key twice, without computing anything.

    Keys are followed element by element through `jit`, `vmap`, branches and loops. Draws and
    `split` use a key and `fold_in` does not. `random.clone` gives a key that may be used again. The
    option `jax_debug_key_reuse` checks all programs in this way.

    Args:
        fun: the function.
        *args: its arguments, of which only shapes and dtypes matter.

    Raises:
        KeyReuseError: a key is used twice; the message names both uses.

    Example:
        >>> from gradix import random
        >>> from gradix.experimental import key_reuse
        >>> key_reuse.check_key_reuse(lambda key: random.normal(key) + random.uniform(key), random.key(0))
        Traceback (most recent call last):
            ...
        gradix.errors.KeyReuseError: In uniform, argument 0 is a key that is already consumed.
          first:   by normal at ...
          again:   by uniform at ...
          instead: make a key for each use: key, subkey = random.split(key), or random.fold_in(key, i) in a loop;
                   to repeat a draw on purpose, use random.clone(key).
    """
    key_flow(make_jaxpr(fun)(*args))


__dir__ = _own_names(__name__, "KeyReuseError")
