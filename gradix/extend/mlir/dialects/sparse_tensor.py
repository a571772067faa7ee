"""The operations of MLIR's dialect `sparse_tensor`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("sparse_tensor"), name)


def __dir__():
    return dir(dialect("sparse_tensor"))
