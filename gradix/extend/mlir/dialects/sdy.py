"""The operations of MLIR's dialect `sdy`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("sdy"), name)


def __dir__():
    return dir(dialect("sdy"))
