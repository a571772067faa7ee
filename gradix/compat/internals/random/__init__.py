"""The modules of `jax._src.random` that libraries import."""
