"""Where eager work runs: on the host while it is small, by XLA when it is the better engine."""

from __future__ import annotations

from gradix._base import config
from gradix._base.bounded import BoundedCache

config.define("gradix_eager", "auto", ("auto", "xla", "host"), traced=True)
_options = config.state

# What the options ask of eager work, by trace context: the mode, and whether results are checked
# for NaN or inf.
_modes: BoundedCache[tuple, tuple[str, bool, bool]] = BoundedCache(256)


def mode_of(context) -> tuple[str, bool, bool]:
    """(where eager work runs, check for NaN, check for inf) under the current options, whose context this is.

    "auto": NumPy up to a primitive's `host_limit` elements, where it is quicker than XLA's dispatch
    and needs no compilation; the limits were measured (docs/performance.md). "host" and "xla"
    override.
    """
    return _modes.keep(
        context, (_options.gradix_eager, _options.jax_debug_nans, _options.jax_debug_infs)
    )


def modes() -> dict:
    return _modes
