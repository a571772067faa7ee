"""The operations of MLIR's dialect `memref`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("memref"), name)


def __dir__():
    return dir(dialect("memref"))
