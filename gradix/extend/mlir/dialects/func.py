"""The operations of MLIR's dialect `func`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("func").__getattr__, dialect("func").__dir__
