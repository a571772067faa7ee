"""Primitives that hold programs: calls, branches, loops, users' derivatives, remat, callbacks."""
