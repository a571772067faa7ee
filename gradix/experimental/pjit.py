"""`pjit`, the former name of `jit` with shardings."""

from gradix._api.jit.jit import jit as pjit

__all__ = ["pjit"]
