"""The operations of MLIR's dialect `sdy`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("sdy").__getattr__, dialect("sdy").__dir__
