"""The operations of MLIR's dialect `math`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("math"), name)


def __dir__():
    return dir(dialect("math"))
