"""`jax._src.lib`: modules of jaxlib."""

import importlib

__path__: list[str] = []  # further modules of it are in the table

_MODULES = {
    "xla_client": "jaxlib.xla_client",
    "_jax": "jaxlib._jax",
    "jax_mlir_ext": "jaxlib.mlir._mlir_libs._jax_mlir_ext",
    "lapack": "jaxlib.lapack",
    "version": "jaxlib.version",
}


def __getattr__(name: str):
    if name == "version_str":
        return importlib.import_module("jaxlib.version").__version__
    if name == "mlir":
        return importlib.import_module("jax._src.lib.mlir")
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'jax._src.lib' has no attribute {name!r}")
