"""Where eager work runs: on the host while it is small, by XLA when it is the better engine."""
from __future__ import annotations

from gradix._base import config

config.define("gradix_eager", "auto", ("auto", "xla", "host"))
_options = config.state


def on_host(prim, avals, out) -> bool:
    """Whether a primitive with a host rule runs by it.

    Up to the primitive's `host_limit` elements NumPy is quicker than XLA's dispatch and needs no compilation; the
    limits were measured (see docs/performance.md). The option `gradix_eager` overrides: "xla" or "host".
    """
    mode = _options.gradix_eager
    if mode != "auto":
        return mode == "host"
    limit = prim.host_limit
    size = out.size if not prim.multiple_results else sum(o.size for o in out)
    for a in avals:
        size += a.size
    return size <= limit
