"""The cache of compiled programs on disk."""

from gradix.experimental.compilation_cache import compilation_cache as compilation_cache
