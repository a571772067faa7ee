"""`compute_on`: parts of a program that an accelerator leaves to its host, or the reverse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gradix._api.arguments import stand_in
from gradix._api.placing import device_put
from gradix._base.listing import own_names as _own_names
from gradix.experimental.xla_metadata import set_xla_metadata

__all__ = ["compute_on", "compute_on2"]

# The attributes by which XLA recognizes each compute type; "device" needs none.
_ATTRIBUTES = {
    "device": {},
    "device_host": {"_xla_compute_type": "host"},
    "tpu_sparsecore": {"_xla_compute_type": "sparse"},
}


def compute_on(compute_type: str) -> Any:
    """A context manager and decorator: operations traced inside run on the given compute type.

    It has an effect on accelerators only; on the CPU, which is the host, nothing changes.

    Args:
        compute_type: "device"; "device_host", which is the CPU of the machine; "tpu_sparsecore";
            or "gpu_stream:N", which is the stream with number N.

    Raises:
        ValueError: `compute_type` is none of these.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.compute_on import compute_on
        >>> @gradix.jit
        ... def f(x):
        ...     with compute_on("device_host"):
        ...         return jnp.sin(x)
        >>> '_xla_compute_type = "host"' in f.lower(1.0).as_text()
        True
    """
    attributes = _ATTRIBUTES.get(compute_type)
    if attributes is None:
        found = re.fullmatch(r"gpu_stream:(\d+)", str(compute_type))
        if found is None:
            raise ValueError(
                f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
                "`device`, `tpu_sparsecore`, and `gpu_stream:#`."
            )
        attributes = {"_xla_stream_annotation": found[1], "inlineable": "false"}
    return set_xla_metadata(**attributes)


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: dict | None = None
) -> Any:
    """The function `f`, run on a compute type, with its results in the given memory spaces.

    Args:
        f: a function of pytrees of arrays; without it, `compute_on2` returns a decorator.
        compute_type: as for `compute_on`.
        out_memory_spaces: a `gradix.memory.Space`, or a pytree of them that is a prefix of the
            results.
        compiler_options: not used, because a part of a program is compiled like the whole.

    Returns:
        A function with the arguments and results of `f`.

    Raises:
        ValueError: `compute_type` is none of those that `compute_on` supports.

    Example:
        >>> import gradix
        >>> from gradix.experimental.compute_on import compute_on2
        >>> place = gradix.memory.Space.Device
        >>> compute_on2(lambda x: x * 2, compute_type="device_host", out_memory_spaces=place)(3)
        Array(6, dtype=int32, weak_type=True)
    """
    inside = compute_on(compute_type)

    def decorate(f: Callable):
        def computed(*args, **kwargs):
            with inside:
                outs = f(*args, **kwargs)
            return device_put(outs, out_memory_spaces)

        stand_in(computed, f)
        return computed

    return decorate if f is None else decorate(f)


__dir__ = _own_names(__name__)
