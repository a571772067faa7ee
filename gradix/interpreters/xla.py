"""The evaluation of primitives by compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base.listing import own_names as _own_names
from gradix._core.array import as_array
from gradix._core.library_values import ClassRules, converters
from gradix._runtime.dispatch import compiled
from gradix.core import pytype_aval_mappings as pytype_aval_mappings

# A library makes its class array-like by `mapping[Class] = mapping[numpy.ndarray]`, here and in
# `pytype_aval_mappings`.
canonicalize_dtype_handlers = ClassRules(converters, np.asarray)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive to concrete arrays by a program of it alone; an `impl` for `def_impl`.

    Example:
        >>> from gradix import lax
        >>> from gradix.interpreters import xla
        >>> xla.apply_primitive(lax.neg_p, 2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    return compiled(prim, [as_array(a) for a in args], params)


__dir__ = _own_names(__name__, "canonicalize_dtype_handlers", "pytype_aval_mappings")
