"""What a lower layer is given by a higher one, which it cannot import: each function once.

A lower layer calls `seams.evaluate(...)`; the module named beside a function sets it when it is
imported, by `seams.evaluate = evaluate`. Tests of a lower layer alone may set their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# (primitive, arrays, parameters) -> results: a primitive on concrete arrays; `_runtime.dispatch`
evaluate: Callable[..., Any]
# (array) -> the value of an array on a device as a NumPy array; `_runtime.dispatch`
fetch: Callable[..., Any]
# what copies buffers and puts them on devices; `_runtime.dispatch` sets the module `_runtime.xla`
runtime: Any
# (client, module, devices, options, callbacks) -> executable; `_runtime.xla_compiler`, and
# `compat` where a program replaces the compiler
compile_module: Callable[..., Any]
# (function, types, parameters) -> ClosedJaxpr: the rule `expand` of a primitive; `_api.jit.inner`
trace_expand: Callable[..., Any] | None = None
# (function) -> the function, compiled when it is called; `_api.jit`
jit: Callable[..., Any]
# (array, NamedSharding or None) -> the array divided so over an explicit mesh; `_ops.sharding`
reshard: Callable[..., Any]
# (array, names) -> the array, which varies over these mesh axes too; `_ops.collectives`
vary: Callable[..., Any]
# (array, sharding or None) -> a concrete array on other devices; `_api.placing`
move: Callable[..., Any]
# (array, layout) -> a concrete array in another layout on the same devices; `_api.placing`
lay_out: Callable[..., Any]
# (dimension) -> the array that has its value when the program runs; `_ops.dimension_values`
dimension_as_array: Callable[..., Any] | None = None
# (whole leading axes, mesh axes, function, types, functions before it) -> what the compiler asks for the program in
# which a device calls the function with its parts; `_api.callbacks`
call_by_part: Callable[..., Any]
# (jaxpr, options) -> text; `_core.pretty`
print_jaxpr: Callable[..., Any]
