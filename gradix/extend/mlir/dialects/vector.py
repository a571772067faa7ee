"""The operations of MLIR's dialect `vector`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("vector"), name)


def __dir__():
    return dir(dialect("vector"))
