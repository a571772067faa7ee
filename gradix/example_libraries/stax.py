"""Layers of networks as pairs of functions.

The functions are `init_fun(rng, input_shape) -> (output_shape, params)` and `apply_fun(params,
inputs, **kwargs)`. This is a small library for learning and for small programs.

Example:
    >>> from gradix import numpy as jnp, random
    >>> from gradix.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> shape, params = init(random.key(0), (-1, 4))
    >>> shape, apply(params, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradix import lax, numpy as jnp, random
from gradix._api.inspect import eval_shape as _eval_shape
from gradix._api.structs import ShapeDtypeStruct as _ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus
from gradix.nn.initializers import glorot_normal, normal, ones, zeros

glorot, randn, logsoftmax = glorot_normal, normal, log_softmax
_WEIGHTS, _BIAS, _SMALL_BIAS = glorot(), normal(), normal(1e-6)

_Shape = tuple[int, ...]
Layer = tuple[Callable, Callable]


def _no_params(rng, input_shape: _Shape):
    return input_shape, ()


# -- layers with parameters ------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = _WEIGHTS, b_init: Any = _BIAS) -> Layer:
    """An affine layer, which computes `inputs @ W + b`.

    Args:
        out_dim: the number of features of the output.
        W_init, b_init: functions of a key and a shape that make the matrix and the bias.

    Example:
        >>> Dense(3)[0](random.key(0), (-1, 4))[0]
        (-1, 3)
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def _spread(window: Sequence[int], spec: str) -> _Shape:
    """The sizes of spatial axes in the order of a layout, with 1 for the other axes."""
    spatial = [c for c in spec if c not in "NC"]
    if len(window) != len(spatial):
        raise ValueError(
            f"the layout {spec!r} has {len(spatial)} spatial axes, so a window and its strides have as many sizes; "
            f"got {tuple(window)}."
        )
    sizes = iter(window)
    return tuple([1 if c in "NC" else next(sizes) for c in spec])


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL_BIAS,
) -> Layer:
    """A convolution.

    Args:
        dimension_numbers: the layouts of inputs, filters and outputs, such as `("NHWC", "HWIO",
            "NHWC")`.
        out_chan: the number of channels of the output.
        filter_shape: the sizes of a filter's spatial axes.
        strides: the steps along the spatial axes; 1 by default.
        padding: "VALID", "SAME", or pairs of numbers.
        W_init, b_init: functions of a key and a shape that make the filters and the bias.

    Example:
        >>> GeneralConv(("NHWC", "HWIO", "NHWC"), 3, (2, 2))[0](random.key(0), (1, 5, 5, 1))[0]
        (1, 4, 4, 3)
    """
    return _convolution(
        dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init=b_init, run=lax.conv_general_dilated
    )


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL_BIAS,
) -> Layer:
    """A transposed convolution; the arguments are those of `GeneralConv`.

    Example:
        >>> GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 3, (2, 2))[0](random.key(0), (1, 5, 5, 1))[0]
        (1, 6, 6, 3)
    """
    return _convolution(
        dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init=b_init, run=lax.conv_transpose
    )


def _convolution(layouts, out_chan, filter_shape, strides, padding, W_init, *, b_init, run) -> Layer:
    lhs, rhs, out = layouts
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot(rhs.index("I"), rhs.index("O"))

    def convolve(inputs, weights):
        return run(inputs, weights, strides, padding, dimension_numbers=layouts)

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        kernel = tuple(
            [out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes) for c in rhs]
        )
        bias = tuple([out_chan if c == "C" else 1 for c in out])
        k1, k2 = random.split(rng)
        weights = W_init(k1, kernel)
        batch = lhs.index("N")
        known = tuple([1 if i == batch and n < 0 else n for i, n in enumerate(input_shape)])
        shape = _shape_of(lambda x: convolve(x, weights), known, weights.dtype)
        shape = tuple([input_shape[batch] if i == out.index("N") else n for i, n in enumerate(shape)])
        return shape, (weights, b_init(k2, bias))

    def apply_fun(params, inputs, **kwargs):
        weights, bias = params
        return convolve(inputs, weights) + bias

    return init_fun, apply_fun


def _shape_of(function: Callable, shape: _Shape, dtype) -> _Shape:
    return _eval_shape(function, _ShapeDtypeStruct(shape, dtype)).shape


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Batch normalization (Ioffe and Szegedy, 2015), by the mean and variance of the inputs.

    Args:
        axis: the axes over which means are taken.
        epsilon: a number that is added to the variance.
        center: whether an offset is learnt.
        scale: whether a factor is learnt.
        beta_init, gamma_init: functions of a key and a shape that make the offset and the factor.

    Example:
        >>> BatchNorm()[0](random.key(0), (-1, 4, 4, 2))[0]
        (-1, 4, 4, 2)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = [p if isinstance(p, tuple) else jnp.expand_dims(p, axes) for p in params]
        mean = x.mean(axes, keepdims=True)
        z = (x - mean) * lax.rsqrt(jnp.square(x - mean).mean(axes, keepdims=True) + epsilon)
        z = gamma * z if scale else z
        return z + beta if center else z

    return init_fun, apply_fun


# -- layers without parameters ---------------------------------------------------------------------


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A layer that applies a function to its inputs.

    Example:
        >>> elementwise(jnp.clip, max=2.0)[1]((), 3.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return _no_params, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
LogSoftmax, Softmax = elementwise(logsoftmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid = elementwise(softplus), elementwise(sigmoid)
Elu, LeakyRelu, Selu, Gelu = (elementwise(elu), elementwise(leaky_relu), elementwise(selu), elementwise(gelu))


def _pooling(window_shape, strides, padding, spec, init, reducer, *, is_mean=False) -> Layer:
    spec = spec or "NH" + "WXYZ"[: len(window_shape) - 1] + "C"
    window, steps = _spread(window_shape, spec), _spread(strides or (1,) * len(window_shape), spec)

    def pool(x):
        return lax.reduce_window(x, jnp.asarray(init, x.dtype), reducer, window, steps, padding)

    def init_fun(rng, input_shape):
        known = tuple([1 if n < 0 else n for n in input_shape])
        shape = _shape_of(pool, known, jnp.float32)
        return tuple([n if n < 0 else m for n, m in zip(input_shape, shape)]), ()

    def apply_fun(params, inputs, **kwargs):
        out = pool(inputs)
        return out / pool(jnp.ones_like(inputs)) if is_mean else out

    return init_fun, apply_fun


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """A layer that computes the maximum of each window.

    Args:
        window_shape: the sizes of a window's spatial axes.
        strides: the steps along the spatial axes; 1 by default.
        padding: "VALID", "SAME", or pairs of numbers.
        spec: the layout as letters, where N and C are not spatial axes; by default as "NHWC".

    Example:
        >>> MaxPool((2, 2))[0](None, (1, 5, 5, 3))[0]
        (1, 4, 4, 3)
    """
    return _pooling(window_shape, strides, padding, spec, -jnp.inf, lax.max)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """A layer that computes the sum of each window; the arguments are those of `MaxPool`.

    Example:
        >>> SumPool((2, 2))[1]((), jnp.ones((1, 2, 2, 1))).item()
        4.0
    """
    return _pooling(window_shape, strides, padding, spec, 0.0, lax.add)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """A layer that computes the mean of each window without padding; arguments as for `MaxPool`.

    Example:
        >>> AvgPool((2, 2), padding="SAME")[1]((), jnp.ones((1, 2, 2, 1))).ravel().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    return _pooling(window_shape, strides, padding, spec, 0.0, lax.add, is_mean=True)


def _flatten_shape(rng, input_shape):
    return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()


Flatten: Layer = (_flatten_shape, lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)))
Identity: Layer = _no_params, lambda params, inputs, **kwargs: inputs


def FanOut(num: int) -> Layer:
    """A layer that returns its input `num` times, as a list.

    Example:
        >>> FanOut(2)[1]((), 1)
        [1, 1]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Layer = (lambda rng, input_shape: (input_shape[0], ()), lambda params, inputs, **kwargs: sum(inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """A layer that concatenates its inputs along an axis.

    Example:
        >>> FanInConcat()[0](None, [(-1, 2), (-1, 3)])[0]
        (-1, 5)
    """

    def init_fun(rng, input_shape):
        ax = axis % len(input_shape[0])
        return (*input_shape[0][:ax], sum([s[ax] for s in input_shape]), *input_shape[0][ax + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """A layer that keeps each input with probability `rate`, divided by `rate`, and drops others.

    Its `apply_fun` takes a random key as `rng`.

    Args:
        rate: the probability to keep an input.
        mode: "train" to drop inputs; with any other value all inputs are kept.

    Raises:
        ValueError: `apply_fun` was called without a key.

    Example:
        >>> Dropout(0.5, mode="test")[1]((), 1.0, rng=None)
        1.0
    """

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if mode != "train":
            return inputs
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. Instead of "
                "apply_fun(params, inputs) write apply_fun(params, inputs, rng=key), with a key made by "
                "gradix.random.key."
            )
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _no_params, apply_fun


# -- layers of layers ------------------------------------------------------------------------------


def serial(*layers: Layer) -> Layer:
    """A layer that applies the layers one after the other.

    Example:
        >>> serial(Flatten, Dense(2))[0](random.key(0), (5, 2, 3))[0]
        (5, 2)
    """

    def init_fun(rng, input_shape):
        params = []
        for init, _ in layers:
            rng, key = random.split(rng)
            input_shape, param = init(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for (_, apply), param, key in zip(layers, params, _keys(kwargs, len(layers))):
            inputs = apply(param, inputs, **{**kwargs, "rng": key})
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """A layer that applies each layer to its own input, and returns a list of outputs.

    Example:
        >>> serial(FanOut(2), parallel(Dense(2), Identity), FanInConcat())[0](random.key(0), (5, 3))[0]
        (5, 5)
    """

    def init_fun(rng, input_shape):
        pairs = [init(key, shape) for (init, _), key, shape in zip(layers, random.split(rng, len(layers)), input_shape)]
        return [shape for shape, _ in pairs], tuple([params for _, params in pairs])

    def apply_fun(params, inputs, **kwargs):
        return [
            apply(p, x, **{**kwargs, "rng": key})
            for (_, apply), p, x, key in zip(layers, params, inputs, _keys(kwargs, len(layers)))
        ]

    return init_fun, apply_fun


def _keys(kwargs: dict, count: int):
    rng = kwargs.get("rng")
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its input is known.

    Args:
        make_layer: a function of the shape of the input, or a list of shapes, that returns a layer.

    Example:
        >>> shape_dependent(lambda shape: Dense(2 * shape[-1]))[0](random.key(0), (5, 3))[0]
        (5, 6)
    """

    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        shape = [x.shape for x in inputs] if isinstance(inputs, (list, tuple)) else inputs.shape
        return make_layer(shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


__dir__ = _own_names(
    __name__,
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Elu",
    "Exp",
    "FanInSum",
    "Flatten",
    "Gelu",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
)
