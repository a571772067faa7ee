"""The operations of MLIR's dialect `func`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("func"), name)


def __dir__():
    return dir(dialect("func"))
