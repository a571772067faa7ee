"""The names of the module `ir` of MLIR's Python bindings."""

from gradix._runtime import xla_mlir


def __getattr__(name: str):
    return getattr(xla_mlir.ir, name)


def __dir__():
    return dir(xla_mlir.ir)
