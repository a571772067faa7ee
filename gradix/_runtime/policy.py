"""Where eager operations run: by NumPy on the host if they are small, by XLA otherwise."""

from __future__ import annotations

from gradix._base import config
from gradix._base.bounded import BoundedCache

config.define("gradix_eager", "auto", ("auto", "xla", "host"), traced=True)
_options = config.state
# the limit on devices whose memory is not the host's, where some primitives have a larger one
APART_LIMIT = 1 << 17

# For each trace context: the eager mode, and whether results are checked for NaN and for infinity.
_modes: BoundedCache[tuple, tuple[str, bool, bool]] = BoundedCache(256)


def mode_of(context) -> tuple[str, bool, bool]:
    """The eager mode, and whether to check for NaN and infinity, for the current trace context.

    With "auto", NumPy evaluates operations on up to a primitive's `host_limit` elements, where it
    is faster than XLA and needs no compilation (docs/performance.md has the measurements). "host"
    and "xla" override the limit.
    """
    return _modes.keep(context, (_options.gradix_eager, _options.jax_debug_nans, _options.jax_debug_infs))


def modes() -> dict:
    """The table that `mode_of` fills, which eager operations read directly."""
    return _modes
