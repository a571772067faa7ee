"""MLIR's Python bindings from jaxlib, for lowering rules that build operations."""

from gradix._runtime.xla_mlir import bindings as _bindings
from gradix.extend.mlir import dialects as dialects, ir as ir, passmanager as passmanager

_FUNCTIONS = (
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "refine_polymorphic_shapes",
    "serialize_portable_artifact",
)


def __getattr__(name: str):
    if name in _FUNCTIONS:
        return getattr(_bindings, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_FUNCTIONS])
