"""The operations of MLIR's dialect `mpmd`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("mpmd").__getattr__, dialect("mpmd").__dir__
