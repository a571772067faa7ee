"""Where eager work runs: on the host while it is small, by XLA when it is the better engine."""
from __future__ import annotations

from gradix._base import config

config.define("gradix_eager", "auto", ("auto", "xla", "host"), traced=True)
_options = config.state

# What the options ask of eager work, by trace context: the mode, and whether results are checked for NaN or inf.
_modes: dict[tuple, tuple[str, bool, bool]] = {}


def mode_of(context) -> tuple[str, bool, bool]:
    """(where eager work runs, check for NaN, check for inf) under the current options, whose context this is.

    "auto": NumPy up to a primitive's `host_limit` elements, where it is quicker than XLA's dispatch and needs no
    compilation; the limits were measured (docs/performance.md). "host" and "xla" override.
    """
    if len(_modes) > 256:
        _modes.clear()
    found = _modes[context] = (_options.gradix_eager, _options.jax_debug_nans, _options.jax_debug_infs)
    return found


def modes() -> dict:
    return _modes
