"""The operations of MLIR's dialect `arith`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("arith").__getattr__, dialect("arith").__dir__
