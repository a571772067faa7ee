"""The exceptions of tracing and of running compiled programs."""

from gradix._base.errors import (
    CallbackResultError,
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    JAXIndexError,
    JaxprTypeError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    NotAValueError,
    RetraceError,
    RetraceWarning,
    ShardingTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from gradix._core.named_sharding import DuplicateSpecError, IndivisibleError

__all__ = [
    "CallbackResultError",
    "ConcretizationTypeError",
    "DuplicateSpecError",
    "InconclusiveDimensionOperation",
    "IndivisibleError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "NotAValueError",
    "RetraceError",
    "RetraceWarning",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]
