"""The operations of MLIR's dialect `mpmd`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("mpmd"), name)


def __dir__():
    return dir(dialect("mpmd"))
