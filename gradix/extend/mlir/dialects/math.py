"""The operations of MLIR's dialect `math`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("math").__getattr__, dialect("math").__dir__
