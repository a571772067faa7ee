"""The directory in which compiled programs are kept on disk."""

from __future__ import annotations

import os
from typing import Any

from gradix._base.config import config
from gradix._base.listing import own_names as _own_names
from gradix._runtime import disk_cache

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: Any) -> None:
    """Keep compiled programs in this directory; it sets the option `jax_compilation_cache_dir`.

    Example:
        >>> import gradix
        >>> from gradix.experimental.compilation_cache import compilation_cache
        >>> before = gradix.config.jax_compilation_cache_dir
        >>> compilation_cache.set_cache_dir("/tmp/programs")
        >>> gradix.config.jax_compilation_cache_dir
        '/tmp/programs'
        >>> gradix.config.update("jax_compilation_cache_dir", before)
    """
    config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Open the directory again at the next compilation; its files are kept.

    Example:
        >>> from gradix.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.reset_cache()
    """
    disk_cache.reset()


__dir__ = _own_names(__name__)
