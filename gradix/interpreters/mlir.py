"""Lowering rules as libraries register them: functions of arrays, or rules that build MLIR."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.listing import own_names as _own_names
from gradix._control.callbacks import io_callback_p, pure_callback_p
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.trace import bind
from gradix._runtime import xla_mlir
from gradix._stablehlo.literals import dense
from gradix._stablehlo.types import element_type, tensor_type
from gradix.interpreters._lowering import (
    LoweredFunction,
    LoweringRuleContext as LoweringRuleContext,
    ModuleContext as ModuleContext,
    flat_values,
    lower_of,
)

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike

LoweringRule = Callable[..., Any]
Value = Any

ir = xla_mlir.ir


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweredFunction:
    """A lowering rule made of a function of arrays, which uses other primitives.

    Inside another rule it can be called with the context and MLIR values, and returns a list of
    MLIR values.

    Args:
        fun: the function.
        multiple_results: whether it returns a sequence of arrays instead of one.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> third_p = Primitive("third_of")
        >>> _ = third_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(third_p, mlir.lower_fun(lambda x: x / 3, multiple_results=False))
        >>> gradix.jit(third_p.bind)(6.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Any, rule: LoweringRule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> None:
    """Set the lowering rule of a primitive.

    Args:
        prim: the primitive.
        rule: the result of `lower_fun`, or a function `rule(ctx, *values, **params)` that builds
            operations with MLIR's Python bindings (`gradix.extend.mlir`) and returns a list of
            their results.
        platform: the platform of the rule. Rules for other platforms than the CPU are ignored.
        inline, cacheable: not used.

    Example:
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> import gradix
        >>> triple_p = Primitive("triple")
        >>> _ = triple_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(triple_p, mlir.lower_fun(lambda x: 3 * x, multiple_results=False))
        >>> gradix.jit(triple_p.bind)(2.0)
        Array(6., dtype=float32, weak_type=True)
    """
    if platform not in (None, "cpu"):
        return
    if isinstance(rule, LoweredFunction):
        prim.lower, prim.expand = None, rule.fun
    else:
        prim.expand, prim.lower = None, lower_of(prim, rule)


# -- building MLIR ---------------------------------------------------------------------------------


def aval_to_ir_type(*args: Any) -> Any:
    """The MLIR type of an aval, which is the last argument; a module context may come first.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.aval_to_ir_type(gradix.typeof(jnp.ones((2, 3)))))
        tensor<2x3xf32>
    """
    return xla_mlir.type_of(args[-1])


def aval_to_ir_types(*args: Any) -> tuple:
    """The result of `aval_to_ir_type` in a tuple.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(len(mlir.aval_to_ir_types(gradix.typeof(jnp.ones((2, 3))))))
        1
    """
    return (aval_to_ir_type(*args),)


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
    """The MLIR type of an element of this dtype.

    Example:
        >>> import numpy as np
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.dtype_to_ir_type(np.dtype("int8")))
        i8
    """
    with xla_mlir.context():
        return ir.Type.parse(element_type(np.dtype(dtype)))


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant operation at the current insertion point.

    Example:
        >>> import numpy as np, gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> half_p = Primitive("half")
        >>> _ = half_p.def_abstract_eval(lambda: gradix.typeof(np.float32(0)))
        >>> mlir.register_lowering(half_p, lambda ctx: [mlir.ir_constant(np.float32(0.5))])
        >>> gradix.jit(half_p.bind)()
        Array(0.5, dtype=float32)
    """
    array: Any = as_array(val)
    host, stablehlo = array.host, xla_mlir.dialect("stablehlo")
    if host.dtype.kind == "c":  # The bindings have no attributes of complex numbers.
        return stablehlo.complex(ir_constant(host.real), ir_constant(host.imag))
    return stablehlo.constant(_elements(host, array.dtype))


def ir_constants(val: Any, **options: Any) -> tuple:
    """The result of `ir_constant` in a tuple.

    Example:
        >>> import numpy as np, gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> table_p = Primitive("table")
        >>> _ = table_p.def_abstract_eval(lambda: gradix.typeof(np.zeros(2, "float32")))
        >>> mlir.register_lowering(table_p, lambda ctx: mlir.ir_constants(np.array([1.5, 2.5], "float32")))
        >>> gradix.jit(table_p.bind)()
        Array([1.5, 2.5], dtype=float32)
    """
    return (ir_constant(val, **options),)


def _elements(host: np.ndarray, dtype):
    """An array as an attribute, parsed from the text of a constant."""
    with xla_mlir.context():
        return ir.Attribute.parse(f"{dense(host)} : {tensor_type(make_aval(host.shape, dtype))}")


def dense_int_elements(xs: Any) -> Any:
    """Integers as a tensor attribute of 64 bits.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.dense_int_elements([1, 2]))
        dense<[1, 2]> : tensor<2xi64>
    """
    return ir.DenseElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(xs: Any) -> Any:
    """Integers as an array attribute of 64 bits.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.dense_int_array([1, 2]))
        array<i64: 1, 2>
    """
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs])


def i32_attr(i: int) -> Any:
    """An integer as an attribute of 32 bits.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.i32_attr(7))
        7 : i32
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """An integer as an attribute of 64 bits.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.i64_attr(7))
        7 : i64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def ir_attribute(val: Any) -> Any:
    """A Python value or an array as an attribute.

    Raises:
        TypeError: there is no attribute for the value.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.ir_attribute(True))
        true
    """
    if isinstance(val, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, (int, np.integer)):
        return i64_attr(int(val)) if not isinstance(val, np.int32) else i32_attr(int(val))
    if isinstance(val, (float, np.floating)):
        dtype = np.dtype("float64") if isinstance(val, float) else val.dtype
        return ir.FloatAttr.get(dtype_to_ir_type(dtype), float(val))
    if isinstance(val, str):
        return ir.StringAttr.get(val)
    if isinstance(val, np.ndarray):
        array: Any = as_array(val)
        return _elements(array.host, array.dtype)
    if isinstance(val, dict):
        return ir.DictAttr.get({k: ir_attribute(v) for k, v in val.items()})
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(v) for v in val])
    raise TypeError(
        f"ir_attribute: val must be a bool, number, str, array, or a list or dict of these; got {val!r} "
        f"of type {type(val).__name__}. Convert it first."
    )


def shape_tensor(ctx: Any, sizes: Any) -> Any:
    """Sizes as a constant vector of int32.

    Example:
        >>> import numpy as np, gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> sizes_p = Primitive("sizes")
        >>> _ = sizes_p.def_abstract_eval(lambda: gradix.typeof(np.zeros(2, "int32")))
        >>> mlir.register_lowering(sizes_p, lambda ctx: [mlir.shape_tensor(ctx, (4, 2))])
        >>> gradix.jit(sizes_p.bind)()
        Array([4, 2], dtype=int32)
    """
    return ir_constant(np.asarray(sizes, np.int32))


def flatten_ir_values(xs: Any) -> list:
    """The MLIR values in nested sequences, as a list.

    Example:
        >>> from gradix.interpreters import mlir
        >>> mlir.flatten_ir_values([("a", "b"), "c"])
        ['a', 'b', 'c']
    """
    return flat_values(list(xs))


def flatten_ir_types(xs: Any) -> list:
    """The MLIR types in nested sequences, as a list.

    Example:
        >>> from gradix.interpreters import mlir
        >>> mlir.flatten_ir_types([("a", "b"), "c"])
        ['a', 'b', 'c']
    """
    return [t for x in xs for t in (x if isinstance(x, (list, tuple)) else (x,))]


def make_ir_context() -> Any:
    """The MLIR context in which XLA's dialects are registered.

    Example:
        >>> import numpy as np
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.dtype_to_ir_type(np.dtype("float64")))
        f64
    """
    return xla_mlir.context()


def module_to_string(module: Any, enable_debug_info: Any = None) -> str:
    """The text of a module.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import mlir
        >>> module = gradix.jit(lambda x: x + 1).lower(1.0).compiler_ir("stablehlo")
        >>> "stablehlo.add" in mlir.module_to_string(module)
        True
    """
    return str(module)


def module_to_bytecode(module: Any) -> bytes:
    """The module in MLIR's binary form.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import mlir
        >>> module = gradix.jit(lambda x: x + 1).lower(1.0).compiler_ir("stablehlo")
        >>> mlir.module_to_bytecode(module)[:2]
        b'ML'
    """
    with io.BytesIO() as output:
        module.operation.write_bytecode(file=output)
        return output.getvalue()


def token_type() -> Any:
    """The MLIR type of a token that orders side effects; to be called within a context.

    Example:
        >>> from gradix.interpreters import mlir
        >>> with mlir.make_ir_context():
        ...     print(mlir.token_type())
        !stablehlo.token
    """
    return ir.Type.parse("!stablehlo.token")


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable,
    token: Any,
    operands: Any,
    operand_avals: Any,
    result_avals: Any,
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> Any:
    """Build a call of a Python function.

    Args:
        ctx: the lowering context.
        callback: a function that takes NumPy arrays and returns a sequence of NumPy arrays.
        token: a value that is returned unchanged.
        operands: the arguments, as MLIR values.
        operand_avals, result_avals: the types of arguments and results.
        has_side_effect: whether the call must be kept even if its results are not used.
        returns_token, partitioned, sharding: not used.

    Returns:
        The results as MLIR values, the token, and None.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> def lowering(ctx, x):
        ...     results, token, _ = mlir.emit_python_callback(
        ...         ctx, lambda x: (x * 10,), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        ...     )
        ...     return results
        >>> ten_p = Primitive("ten_times")
        >>> _ = ten_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(ten_p, lowering)
        >>> gradix.jit(ten_p.bind)(jnp.float32(4))
        Array(40., dtype=float32)
    """

    def calling(*xs):
        params = {"callback": lambda *arrays: list(callback(*arrays)), "result_avals": tuple(result_avals)}
        if has_side_effect:
            return bind(io_callback_p, list(xs), {**params, "sharding": None, "ordered": False})
        return bind(pure_callback_p, list(xs), {**params, "sharding": None, "vmap_method": None})

    rule = LoweredFunction(calling, True)
    return (rule(ctx.replace(avals_in=list(operand_avals), avals_out=list(result_avals)), *operands), token, None)


__dir__ = _own_names(__name__, "LoweringRule", "LoweringRuleContext", "ModuleContext", "Value", "ir")
