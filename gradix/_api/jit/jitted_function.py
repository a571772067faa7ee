"""`JitFunction`, what `jit` returns: one trace and one compiled program for each signature it is called with."""

from __future__ import annotations

from gradix._api.jit import (
    inner,  # noqa: F401  (installs what runs jitted functions inside of others)
)
