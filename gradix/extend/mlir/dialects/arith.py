"""The operations of MLIR's dialect `arith`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("arith"), name)


def __dir__():
    return dir(dialect("arith"))
