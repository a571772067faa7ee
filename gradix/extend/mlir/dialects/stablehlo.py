"""The operations of MLIR's dialect `stablehlo`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("stablehlo"), name)


def __dir__():
    return dir(dialect("stablehlo"))
