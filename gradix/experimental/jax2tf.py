"""TensorFlow: functions of arrays as functions of its tensors and in SavedModels, and its functions called here."""

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
    "jax2tf.convert(with_gradient=False) leaves gradients out: convert with with_gradient=True"
)


class PolyShape(tuple):
    """A shape with symbolic dimensions, as the older form of the texts that `convert` takes.

    Example:
        >>> from gradix.experimental.jax2tf import PolyShape
        >>> str(PolyShape("b", 3, ...))
        '(b, 3, ...)'
    """

    def __new__(cls, *dims):
        return tuple.__new__(cls, dims)

    def __str__(self) -> str:
        return f"({', '.join(['...' if d is ... else str(d) for d in self])})"


def dtype_of_val(val):
    """TensorFlow's dtype of a value."""
    return tf.as_dtype(
        np.asarray(val).dtype if not hasattr(val, "dtype") else tf.as_dtype(val.dtype)
    )


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
    """A function of arrays as one of TensorFlow's tensors, for calls, `tf.function` and SavedModels.

    The program is exported, as by `gradix.export`, and run by TensorFlow's operation
    `XlaCallModule`.

    Args:
        fun: takes and returns pytrees of arrays.
        polymorphic_shapes: a text such as ``"b, _"``, or None for shapes that are known, for all
            positional arguments or as a prefix of their tree. A size that TensorFlow does not know needs a
            variable.
        polymorphic_constraints: what holds of the variables, as for `symbolic_shape`.
        with_gradient: whether TensorFlow can differentiate the function, as often as it likes; in
            SavedModels once.
        enable_xla, native_serialization: True; programs without XLA are not made.
        native_serialization_platforms: to export for, by default the platform that is there.
        native_serialization_disabled_checks: as `disabled_checks` of `export`.

    Raises:
        NotImplementedError: `enable_xla` or `native_serialization` is False.
        ValueError: a size is unknown where `polymorphic_shapes` has no variable, or sizes do not
            fit the symbolic shapes.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import jax2tf
        >>> sin = jax2tf.convert(jnp.sin, polymorphic_shapes="b")     # tf.function(sin, autograph=False)(tensor)
    """
    if not (enable_xla and native_serialization):
        raise NotImplementedError(
            "jax2tf.convert writes programs of XLA only: leave enable_xla and "
            "native_serialization True."
        )

    def converted(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        leaves = [tf.convert_to_tensor(x, dtype=_tf_dtype(x)) for x in leaves]
        specs = _specs(leaves, args, polymorphic_shapes, polymorphic_constraints)
        given, named = tree_unflatten(tree, specs)
        exported = export(
            jit(fun),
            platforms=native_serialization_platforms,
            disabled_checks=native_serialization_disabled_checks,
        )(*given, **named)
        _check_sizes(exported, leaves)
        if with_gradient:
            outs = _with_gradient(exported)(*leaves)
        else:
            outs = [
                tf.raw_ops.PreventGradient(input=x, message=_NO_GRADIENT)
                for x in _module(exported, leaves)
            ]
        return tree_unflatten(exported.out_tree, outs)

    converted.__name__ = getattr(fun, "__name__", "function")
    return converted


def _tf_dtype(x):
    return None if hasattr(x, "dtype") else tf.as_dtype(as_array(x).dtype)


def _check_sizes(exported, leaves) -> None:
    """Raise where sizes that TensorFlow knows do not fit the symbolic shapes; it checks the others when it runs.

    Raises:
        ValueError: they do not.
    """
    if all(x.shape.is_fully_defined() for x in leaves):
        avals = [
            a.update(shape=tuple(x.shape.as_list())) for x, a in zip(leaves, exported.in_avals)
        ]
        variables_of(exported, avals)


def _texts(leaves, args: tuple, shapes) -> list:
    """The shape asked for of each leaf; one for each argument may stand in a list too."""
    if shapes is None:
        return [None] * len(leaves)
    is_spec = lambda x: x is None or isinstance(x, (str, PolyShape))
    return broadcast_prefix(
        tuple(shapes) if isinstance(shapes, list) else shapes, args, is_leaf=is_spec
    )


def _specs(leaves, args, shapes, constraints) -> list:
    """The types to export for: TensorFlow's shapes, with symbolic dimensions as the texts say."""
    texts = _texts(tree_flatten(args)[0], args, shapes)
    texts += [None] * (len(leaves) - len(texts))  # of keyword arguments
    scope = SymbolicScope(constraints)
    out = []
    for i, (x, text) in enumerate(zip(leaves, texts)):
        if x.shape.rank is None:
            raise ValueError(
                f"jax2tf.convert: argument {i} has a shape of unknown rank; give its tensor a rank with "
                "set_shape."
            )
        text = str(text) if isinstance(text, PolyShape) else text
        shape = symbolic_shape(text, like=tuple(x.shape.as_list()), scope=scope)
        out.append(ShapeDtypeStruct(shape, dtypes.as_dtype(x.dtype.as_numpy_dtype)))
    return out


def _module(exported, tensors) -> list:
    """TensorFlow's operation that runs an exported program."""
    if exported.explicit_dimensions:
        raise NotImplementedError(
            f"the dimension variables {', '.join(exported.explicit_dimensions)} are roots of "
            "sizes, or of no argument, which TensorFlow cannot find; let a size be linear in "
            "each."
        )
    taken = [
        tf.cast(tensors[i], tf.as_dtype(exported.in_avals[i].dtype))
        for i in exported.module_kept_var_idx
    ]
    shapes = [[None if type(d) is SymbolicDim else d for d in a.shape] for a in exported.out_avals]
    kinds = [
        tf.as_dtype(np.dtype(bool) if a.dtype == dtypes.float0 else a.dtype)
        for a in exported.out_avals
    ]
    if not kinds:
        return []
    names = [
        {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM", "tpu": "TPU"}[p] for p in exported.platforms
    ]
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
    """The operation, differentiated by the exported gradient."""

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
            grads = [
                _conjugate(g) if a.dtype in dtypes.INEXACT else None
                for g, a in zip(found, exported.in_avals)
            ]
            return grads if variables is None else (grads, [None for _ in variables])

        return tuple(_module(exported, tensors)), gradient

    return run


def _conjugate(x):
    """A cotangent as the other library has it: TensorFlow's are the conjugates of ours."""
    return tf.math.conj(x) if x.dtype.is_complex else x


def eval_polymorphic_shape(fun_jax: Callable, *, polymorphic_shapes: Any = None) -> Callable:
    """What gives the types of a function's results, and their shapes as texts, for arguments with symbolic shapes.

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
                symbolic_shape(None if t is None else str(t), like=np.shape(x), scope=scope),
                as_array(x).dtype,
            )
            for x, t in zip(leaves, texts)
        ]
        types = eval_shape(fun_jax, *tree_unflatten(tree, specs))
        return types, tree_map(lambda t: str(t.shape), types)

    return evaluate


def split_to_logical_devices(tensor, partition_dimensions: Sequence[int] | None):
    """A tensor of TensorFlow's, with a note for XLA of how it is divided among devices.

    Args:
        tensor: a tensor, within a function that TensorFlow compiles.
        partition_dimensions: into how many parts each axis is divided, their product the number of
            devices; None for a copy on each.

    Raises:
        ValueError: there is not one positive number for each axis.
    """
    if partition_dimensions is None:
        return xla_sharding.replicate(tensor, use_sharding_op=True)
    parts = tuple(partition_dimensions)
    if len(parts) != len(tensor.shape) or any(n < 1 for n in parts):
        raise ValueError(
            "partition_dimensions has a positive number for each axis of the tensor, of shape "
            f"{tuple(tensor.shape)}; got "
            f"{parts}."
        )
    return xla_sharding.tile(
        tensor, np.arange(math.prod(parts)).reshape(parts), use_sharding_op=True
    )


# -- TensorFlow's functions here -------------------------------------------------------------------


def call_tf(
    callable_tf: Callable,
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = None,
    call_tf_graph: bool = False,
) -> Callable:
    """A function of TensorFlow's tensors as one of arrays, differentiable in reverse mode.

    A compiled program calls back into the process to run it, so that it cannot be exported.

    Args:
        callable_tf: takes and returns pytrees of tensors.
        has_side_effects: False lets calls be left out or repeated; True keeps each, and such a
            function has no gradient under `jit`.
        ordered: whether the calls keep their order.
        output_shape_dtype: a pytree of `ShapeDtypeStruct`s of the results; by default TensorFlow's
            tracing tells.
        call_tf_graph: False; graphs of TensorFlow are not put into programs.

    Raises:
        NotImplementedError: `call_tf_graph` is True.
        ValueError: TensorFlow does not know a size of a result.
    """
    if call_tf_graph:
        raise NotImplementedError(
            "call_tf runs TensorFlow's function in a callback; call_tf_graph=True is not supported."
        )
    function = tf.function(callable_tf, autograph=False)

    def call(*args):
        leaves, tree = tree_flatten(args)
        leaves = [as_array(x) for x in leaves]
        types = (
            output_shape_dtype
            if output_shape_dtype is not None
            else _result_types(function, tree, leaves)
        )
        return _differentiable(function, tree, types, has_side_effects and ordered)(*leaves)

    return call


def _result_types(function, tree, leaves):
    specs = [tf.TensorSpec(x.shape, tf.as_dtype(x.dtype)) for x in leaves]
    outs = function.get_concrete_function(*tree_unflatten(tree, specs)).structured_outputs
    if any(None in x.shape.as_list() for x in tree_flatten(outs)[0]):
        raise ValueError(
            f"call_tf: TensorFlow does not know the shapes of the results, {outs}. Pass "
            "output_shape_dtype."
        )
    return tree_map(
        lambda x: ShapeDtypeStruct(
            tuple(x.shape.as_list()), dtypes.as_dtype(x.dtype.as_numpy_dtype)
        ),
        outs,
    )


def _differentiable(function, tree, types, ordered: bool) -> Callable:
    def on_host(*values):
        return tree_map(
            lambda x: x.numpy(),
            function(*tree_unflatten(tree, [tf.constant(np.asarray(x)) for x in values])),
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
        found = _differentiable(back, tree_flatten((*leaves, *cts))[1], wanted, False)(
            *leaves, *cts
        )
        given = dict(zip(where, found))
        return tuple(
            [
                given[i] if i in given else np.zeros(x.shape, dtypes.float0)
                for i, x in enumerate(leaves)
            ]
        )

    run.defvjp(forward, backward)
    return run


def _pulled(function, tree, count: int, where: list[int]) -> Callable:
    """The cotangents of the arguments `where`, by TensorFlow's reverse mode: of all arguments and the cotangents."""

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
