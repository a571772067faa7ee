"""`platform_dependent`: a function for each platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._api.boundary import arrays
from gradix._api.control import branches_on
from gradix._api.tracing import flat_body
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten
from gradix._core.trace import state
from gradix._ops.platform import chosen, platform_index
from gradix._runtime import xla


@boundary
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """The result of the function for the platform on which the program runs.

    Traced code holds all functions, which must agree in tree, shapes and dtypes. When it is lowered
    for one platform, the compiler sees only the function for that platform. Eager code calls the
    function for the default platform.

    Args:
        *args: pytrees of arrays, with which the function is called.
        default: the function for platforms that are not named.
        **per_platform: functions by the name of a platform: `cpu`, `cuda`, `rocm`, `tpu`.

    Raises:
        ValueError: a name stands for several platforms, as `gpu` does.
        TypeError: the results of the functions differ.
        NotImplementedError: there is no function for the platform.

    Example:
        >>> from gradix import lax
        >>> lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x)
        Array(4, dtype=int32, weak_type=True)
    """
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda' or 'rocm' for lax.platform_dependent, not 'gpu', which stands for both.")
    functions, platforms = list(per_platform.values()), tuple([(name,) for name in per_platform])
    if default is not None:
        functions, platforms = [*functions, default], (*platforms, None)
    for f in functions:
        if not callable(f):
            raise TypeError(f"lax.platform_dependent takes functions for platforms, got {f!r}.")
    if state.stage is None or not functions:
        leaves, tree = flatten(args)
        function = functions[chosen(platforms, xla.default_platform())]
        flat = flat_body("platform_dependent", function, tree)
        outs = flat(*arrays("platform_dependent", leaves, tree, "argument "))
        return flat.out_tree.unflatten(outs)
    names = tuple([*per_platform, "default"][: len(functions)])
    return branches_on(platform_index(platforms), functions, args, "platform_dependent", names, range(len(functions)))
