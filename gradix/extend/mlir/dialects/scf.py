"""The operations of MLIR's dialect `scf`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("scf"), name)


def __dir__():
    return dir(dialect("scf"))
