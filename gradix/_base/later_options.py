"""Options of modules that are loaded when they are needed; the options are known from the start."""

from __future__ import annotations

from gradix._base import config


def _attributes(name: str, value):
    """Check the value, which `set_xla_metadata` sets."""
    if value is not None and not isinstance(value, tuple):
        raise ValueError(f"option {name} is set by gradix.experimental.xla_metadata.set_xla_metadata; got {value!r}.")
    return value


def _seconds(name: str, value):
    if isinstance(value, str):  # of an environment variable
        value = None if value.lower() == "none" else float(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0):
        raise ValueError(f"{name} must be a number of seconds, or None for no limit; got {value!r}.")
    return value


config.define("gradix_xla_metadata", None, _attributes, traced=True)
config.define("gradix_collective_timeout", 600.0, _seconds)
config.define("gradix_check", "")  # its names are checked where a function is jitted
config.define("gradix_host_kernels", True, traced=True)
