"""The names of the module `passmanager` of MLIR's Python bindings."""

from gradix._runtime import xla_mlir


def __getattr__(name: str):
    return getattr(xla_mlir.passmanager, name)


def __dir__():
    return dir(xla_mlir.passmanager)
