"""TensorFlow: its programs call functions of arrays, and functions of arrays call its programs.

`convert` makes a function of arrays one of TensorFlow's tensors, and `call_tf` the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.callbacks import io_callback, pure_callback
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._api.inspect import eval_shape
from gradix._api.jit.jit import jit
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.lazy import lazy_module
from gradix._base.listing import listing
from gradix._base.tree import tree_flatten, tree_map, tree_unflatten
from gradix._base.tree.prefix import broadcast_prefix
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.dimensions.expression import SymbolicDim
from gradix.export.calling import variables_of
from gradix.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from gradix.export.exporting import export
from gradix.export.shapes import SymbolicScope, symbolic_shape

__all__ = [
    "DisabledSafetyCheck",
    "PolyShape",
    "call_tf",
    "convert",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "split_to_logical_devices",
]

tf = lazy_module("tensorflow")
xla_operations = lazy_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops")
xla_sharding = lazy_module("tensorflow.python.compiler.xla.experimental.xla_sharding")

_NO_GRADIENT = (
    "this function was converted by jax2tf.convert(with_gradient=False) and has no gradient. Convert "
    "it with with_gradient=True"
)


class PolyShape(tuple):
    """A shape with symbolic dimensions, the former alternative to the strings that `convert` takes.

    Example:
        >>> from gradix.experimental.jax2tf import PolyShape
        >>> str(PolyShape("b", 3, ...))
        '(b, 3, ...)'
    """

    def __new__(cls, *dims):
        return tuple.__new__(cls, dims)

    def __str__(self) -> str:
        return f"({', '.join(['...' if d is ... else str(d) for d in self])})"


def dtype_of_val(val: Any) -> Any:
    """TensorFlow's dtype for an array, a tensor or a Python number.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import jax2tf
        >>> jax2tf.dtype_of_val(jnp.ones(2)).name               # doctest: +SKIP
        'float32'
    """
    return tf.as_dtype(np.asarray(val).dtype if not hasattr(val, "dtype") else tf.as_dtype(val.dtype))


# -- functions of arrays in TensorFlow -------------------------------------------------------------


def convert(
    fun: Callable,
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    native_serialization: bool = True,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable:
    """A function of arrays as one of TensorFlow's tensors, also for `tf.function` and SavedModels.

    The function is exported as by `gradix.export`, and TensorFlow runs it by its operation
    `XlaCallModule`.

    Args:
        fun: a function that takes and returns pytrees of arrays.
        polymorphic_shapes: a string such as ``"b, _"``, or None for known shapes; one for all
            positional arguments, or a tree prefix of them. Each size that TensorFlow does not know
            must be a variable.
        polymorphic_constraints: constraints on the variables, as for `symbolic_shape`.
        with_gradient: whether TensorFlow can differentiate the function: to any order, and once in
            SavedModels.
        enable_xla, native_serialization: must be True.
        native_serialization_platforms: the platforms to export for; by default the current one.
        native_serialization_disabled_checks: `disabled_checks` of `export`.

    Returns:
        A function that takes and returns the same pytrees of tensors.

    Raises:
        NotImplementedError: `enable_xla` or `native_serialization` is False.
        ValueError: a size is unknown and has no variable in `polymorphic_shapes`, or sizes do not
            fit the symbolic shapes.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import jax2tf
        >>> sin = jax2tf.convert(jnp.sin, polymorphic_shapes="b")     # tf.function(sin, autograph=False)(tensor)
    """
    if not (enable_xla and native_serialization):
        raise NotImplementedError(
            f"jax2tf.convert makes XLA programs only; got {enable_xla=} and {native_serialization=}. Leave both True."
        )

    def converted(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        leaves = [tf.convert_to_tensor(x, dtype=_tf_dtype(x)) for x in leaves]
        specs = _specs(leaves, args, polymorphic_shapes, polymorphic_constraints)
        given, named = tree_unflatten(tree, specs)
        exported = export(
            jit(fun), platforms=native_serialization_platforms, disabled_checks=native_serialization_disabled_checks
        )(*given, **named)
        _check_sizes(exported, leaves)
        if with_gradient:
            outs = _with_gradient(exported)(*leaves)
        else:
            outs = [tf.raw_ops.PreventGradient(input=x, message=_NO_GRADIENT) for x in _module(exported, leaves)]
        return tree_unflatten(exported.out_tree, outs)

    converted.__name__ = getattr(fun, "__name__", "function")
    return converted


def _tf_dtype(x):
    return None if hasattr(x, "dtype") else tf.as_dtype(as_array(x).dtype)


def _check_sizes(exported, leaves) -> None:
    """Check the shapes that TensorFlow knows; it checks unknown ones when the program runs.

    Raises:
        ValueError: a size does not fit the symbolic shapes.
    """
    if all(x.shape.is_fully_defined() for x in leaves):
        avals = [a.update(shape=tuple(x.shape.as_list())) for x, a in zip(leaves, exported.in_avals)]
        variables_of(exported, avals)


def _texts(leaves, args: tuple, shapes) -> list:
    """The given shape of each leaf; a list with one shape for each argument is allowed."""
    if shapes is None:
        return [None] * len(leaves)
    is_spec = lambda x: x is None or isinstance(x, (str, PolyShape))
    return broadcast_prefix(tuple(shapes) if isinstance(shapes, list) else shapes, args, is_leaf=is_spec)


def _specs(leaves, args, shapes, constraints) -> list:
    """The types to export for: TensorFlow's shapes, with the symbolic dimensions of `shapes`."""
    texts = _texts(tree_flatten(args)[0], args, shapes)
    texts += [None] * (len(leaves) - len(texts))  # of keyword arguments
    scope = SymbolicScope(constraints)
    out = []
    for i, (x, text) in enumerate(zip(leaves, texts)):
        if x.shape.rank is None:
            raise ValueError(
                f"jax2tf.convert: the rank of argument {i} is unknown. Call set_shape on its tensor first."
            )
        text = str(text) if isinstance(text, PolyShape) else text
        shape = symbolic_shape(text, like=tuple(x.shape.as_list()), scope=scope)
        out.append(ShapeDtypeStruct(shape, dtypes.as_dtype(x.dtype.as_numpy_dtype)))
    return out


def _module(exported, tensors) -> list:
    """The results of TensorFlow's operation that runs an exported program."""
    if exported.explicit_dimensions:
        raise NotImplementedError(
            f"jax2tf.convert: the dimension variables {', '.join(exported.explicit_dimensions)} occur in "
            "no size of an argument that is linear in them, so TensorFlow cannot compute them. Change "
            "polymorphic_shapes so that such a size exists for each."
        )
    taken = [tf.cast(tensors[i], tf.as_dtype(exported.in_avals[i].dtype)) for i in exported.module_kept_var_idx]
    shapes = [[None if type(d) is SymbolicDim else d for d in a.shape] for a in exported.out_avals]
    kinds = [tf.as_dtype(np.dtype(bool) if a.dtype == dtypes.float0 else a.dtype) for a in exported.out_avals]
    if not kinds:
        return []
    names = [{"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM", "tpu": "TPU"}[p] for p in exported.platforms]
    return list(
        xla_operations.xla_call_module(
            args=taken,
            version=exported.calling_convention_version,
            Tout=kinds,
            Sout=shapes,
            platforms=names,
            function_list=[],
            module=exported.mlir_module_serialized,
            has_token_input_output=False,
            disabled_checks=[str(c) for c in exported.disabled_safety_checks],
        )
    )


def _with_gradient(exported) -> Callable:
    """The operation that runs an exported program, with the exported gradient as its derivative."""

    @tf.custom_gradient
    def run(*tensors):
        def gradient(*cts, variables=None):
            back = exported.vjp()
            pull = _with_gradient(back)
            given = [
                tf.zeros(ct.shape, bool) if a.dtype not in dtypes.INEXACT else _conjugate(ct)
                for ct, a in zip(cts, exported.out_avals)
            ]
            found = pull(*tensors, *given)
            grads = [_conjugate(g) if a.dtype in dtypes.INEXACT else None for g, a in zip(found, exported.in_avals)]
            return grads if variables is None else (grads, [None for _ in variables])

        return tuple(_module(exported, tensors)), gradient

    return run


def _conjugate(x):
    """A cotangent in the other library's convention: TensorFlow's are the conjugates of ours."""
    return tf.math.conj(x) if x.dtype.is_complex else x


def eval_polymorphic_shape(fun_jax: Callable, *, polymorphic_shapes: Any = None) -> Callable:
    """A function that gives the types of results, and their shapes as strings, for symbolic shapes.

    Args:
        fun_jax: a function that takes and returns pytrees of arrays.
        polymorphic_shapes: symbolic shapes of the arguments, as for `convert`.

    Returns:
        A function of arrays or `ShapeDtypeStruct`s that returns two pytrees: types and strings.

    Example:
        >>> import numpy as np
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import jax2tf
        >>> double = lambda x: jnp.concatenate([x, x])
        >>> types, shapes = jax2tf.eval_polymorphic_shape(double, polymorphic_shapes="b")(np.ones(3))
        >>> shapes
        '(2*b,)'
    """

    def evaluate(*args):
        leaves, tree = tree_flatten(args)
        texts = _texts(leaves, args, polymorphic_shapes)
        scope = SymbolicScope()
        specs = [
            ShapeDtypeStruct(
                symbolic_shape(None if t is None else str(t), like=np.shape(x), scope=scope), as_array(x).dtype
            )
            for x, t in zip(leaves, texts)
        ]
        types = eval_shape(fun_jax, *tree_unflatten(tree, specs))
        return types, tree_map(lambda t: str(t.shape), types)

    return evaluate


def split_to_logical_devices(tensor: Any, partition_dimensions: Sequence[int] | None) -> Any:
    """A TensorFlow tensor with an annotation for XLA of how it is divided over devices.

    Args:
        tensor: a tensor, in a function that TensorFlow compiles.
        partition_dimensions: the number of parts along each axis, whose product is the number of
            devices; None for a copy on each device.

    Raises:
        ValueError: `partition_dimensions` is not one positive number for each axis.

    Example:
        >>> import tensorflow as tf                                          # doctest: +SKIP
        >>> from gradix.experimental import jax2tf
        >>> rows = tf.function(lambda x: jax2tf.split_to_logical_devices(x, (2, 1)))   # doctest: +SKIP
        >>> rows.get_concrete_function(tf.TensorSpec((4, 3))).output_shapes                # doctest: +SKIP
        TensorShape([4, 3])
    """
    if partition_dimensions is None:
        return xla_sharding.replicate(tensor, use_sharding_op=True)
    parts = tuple(partition_dimensions)
    if len(parts) != len(tensor.shape) or any(n < 1 for n in parts):
        raise ValueError(
            "partition_dimensions must have a positive number for each axis of the tensor, of shape "
            f"{tuple(tensor.shape)}; got {parts}."
        )
    return xla_sharding.tile(tensor, np.arange(math.prod(parts)).reshape(parts), use_sharding_op=True)


# -- TensorFlow's functions of arrays --------------------------------------------------------------


def call_tf(
    callable_tf: Callable,
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = None,
    call_tf_graph: bool = False,
) -> Callable:
    """A function of TensorFlow's tensors as one of arrays, differentiable in reverse mode.

    A compiled program calls back into this process, so it cannot be exported.

    Args:
        callable_tf: a function that takes and returns pytrees of tensors.
        has_side_effects: whether calls have side effects. It matters with `ordered` only.
        ordered: whether calls with side effects are kept and run in their order; such a function
            has no gradient under `jit`. Other calls may be left out or repeated.
        output_shape_dtype: a pytree of `ShapeDtypeStruct`s of the results; by default TensorFlow
            finds them by tracing the function.
        call_tf_graph: must be False; TensorFlow's graphs are not embedded in programs.

    Returns:
        A function that takes and returns the same pytrees of arrays.

    Raises:
        NotImplementedError: `call_tf_graph` is True.
        ValueError: TensorFlow does not know a size of a result.

    Example:
        >>> import tensorflow as tf                           # doctest: +SKIP
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import jax2tf
        >>> f = jax2tf.call_tf(tf.math.square)                # doctest: +SKIP
        >>> gradix.grad(lambda x: f(x).sum())(jnp.array([1.0, 3.0]))   # doctest: +SKIP
        Array([2., 6.], dtype=float32)
    """
    if call_tf_graph:
        raise NotImplementedError(
            "call_tf: call_tf_graph=True is not supported, because TensorFlow's function runs in a "
            "callback. Leave it False."
        )
    function = tf.function(callable_tf, autograph=False)

    def call(*args):
        leaves, tree = tree_flatten(args)
        leaves = [as_array(x) for x in leaves]
        types = output_shape_dtype if output_shape_dtype is not None else _result_types(function, tree, leaves)
        return _differentiable(function, tree, types, has_side_effects and ordered)(*leaves)

    return call


def _result_types(function, tree, leaves):
    specs = [tf.TensorSpec(x.shape, tf.as_dtype(x.dtype)) for x in leaves]
    outs = function.get_concrete_function(*tree_unflatten(tree, specs)).structured_outputs
    if any(None in x.shape.as_list() for x in tree_flatten(outs)[0]):
        raise ValueError(
            f"call_tf: TensorFlow does not know all sizes of the results, {outs}. Pass their types as "
            "output_shape_dtype."
        )
    return tree_map(lambda x: ShapeDtypeStruct(tuple(x.shape.as_list()), dtypes.as_dtype(x.dtype.as_numpy_dtype)), outs)


def _differentiable(function, tree, types, ordered: bool) -> Callable:
    def on_host(*values):
        return tree_map(
            lambda x: x.numpy(), function(*tree_unflatten(tree, [tf.constant(np.asarray(x)) for x in values]))
        )

    @custom_vjp
    def run(*leaves):
        if ordered:
            return io_callback(on_host, types, *leaves, ordered=True)
        return pure_callback(on_host, types, *leaves, vmap_method="sequential")

    def forward(*leaves):
        return run(*leaves), leaves

    def backward(leaves, cts):
        where = [i for i, x in enumerate(leaves) if x.dtype in dtypes.INEXACT]
        cts = [ct for ct in tree_flatten(cts)[0] if ct.dtype != dtypes.float0]
        wanted = [ShapeDtypeStruct(leaves[i].shape, leaves[i].dtype) for i in where]

        back = tf.function(_pulled(function, tree, len(leaves), where), autograph=False)
        found = _differentiable(back, tree_flatten((*leaves, *cts))[1], wanted, False)(*leaves, *cts)
        given = dict(zip(where, found))
        return tuple([given[i] if i in given else np.zeros(x.shape, dtypes.float0) for i, x in enumerate(leaves)])

    run.defvjp(forward, backward)
    return run


def _pulled(function, tree, count: int, where: list[int]) -> Callable:
    """The pullback by TensorFlow's reverse mode, as a function of all arguments and the cotangents.

    It returns the cotangents of the arguments whose numbers are in `where`.
    """

    def pulled(*tensors):
        args, cts = list(tensors[:count]), tensors[count:]
        taken = [args[i] for i in where]
        with tf.GradientTape() as tape:
            tape.watch(taken)
            outs = [
                x
                for x in tree_flatten(function(*tree_unflatten(tree, args)))[0]
                if x.dtype.is_floating or x.dtype.is_complex
            ]
        found = tape.gradient(
            outs,
            taken,
            output_gradients=[_conjugate(ct) for ct in cts],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [_conjugate(g) for g in found]

    return pulled


__dir__ = listing(__name__)
