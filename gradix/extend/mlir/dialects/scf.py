"""The operations of MLIR's dialect `scf`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("scf").__getattr__, dialect("scf").__dir__
