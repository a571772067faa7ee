"""The operations of MLIR's dialect `builtin`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("builtin").__getattr__, dialect("builtin").__dir__
