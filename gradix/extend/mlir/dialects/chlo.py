"""The operations of MLIR's dialect `chlo`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("chlo"), name)


def __dir__():
    return dir(dialect("chlo"))
