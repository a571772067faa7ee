"""The operations of MLIR's dialect `stablehlo`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("stablehlo").__getattr__, dialect("stablehlo").__dir__
