"""Where compiled programs are kept on disk."""

import os

from gradix._base.config import config
from gradix._runtime import disk_cache

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path) -> None:
    """Keep compiled programs in this directory, as the option jax_compilation_cache_dir does."""
    config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Look at the directory anew at the next compilation; the files in it stay."""
    disk_cache.reset()
