"""Modules below `jax._src.random`."""
