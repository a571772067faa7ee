"""Initializers: functions `(key, shape, dtype) -> array` that make first values of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gradix import lax, numpy as jnp, random
from gradix._api.constraints import divided
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.random.floats import split_keys
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Size

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(Protocol):
    """The type of functions `(key, shape, dtype=...) -> array` that make a parameter's value.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> def layer(key, init: initializers.Initializer):
        ...     return init(key, (2, 3))
        >>> layer(random.key(0), initializers.ones)
        Array([[1., 1., 1.],
               [1., 1., 1.]], dtype=float32)
    """

    def __call__(self, key, shape, dtype: Any = None, out_sharding: Any = None): ...


def zeros(
    key: KeyLike | None, shape: Sequence[Size], dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """An initializer itself: zeros of the given shape, in the default floating dtype by default.

    Args:
        key: it has no effect.
        shape: the shape.
        dtype: the dtype.
        out_sharding: the sharding of the result.

    Example:
        >>> from gradix.nn import initializers
        >>> initializers.zeros(None, (2,))
        Array([0., 0.], dtype=float32)
    """
    if out_sharding is not None:
        return divided(zeros, out_sharding, key, shape, dtype)
    return jnp.zeros(shape, dtype)


def ones(key: KeyLike | None, shape: Sequence[Size], dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An initializer itself: ones of the given shape, in the default floating dtype by default.

    Args:
        key: it has no effect.
        shape: the shape.
        dtype: the dtype.
        out_sharding: the sharding of the result.

    Example:
        >>> from gradix.nn import initializers
        >>> initializers.ones(None, (2,))
        Array([1., 1.], dtype=float32)
    """
    if out_sharding is not None:
        return divided(ones, out_sharding, key, shape, dtype)
    return jnp.ones(shape, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that fills the parameter with `value`, in the dtype given here or in the call.

    Example:
        >>> from gradix.nn import initializers
        >>> initializers.constant(7.0)(None, (2,))
        Array([7., 7.], dtype=float32)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        return jnp.full(shape, value, dtype=_dtype(dtype, default))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniform numbers from [0, scale).

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> initializers.uniform(10.0)(random.key(0), (2, 3)).shape
        (2, 3)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype = _dtype(dtype, default)
        return random.uniform(key, shape, dtype) * _number(scale, dtype)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws normal numbers with the standard deviation `stddev`.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> initializers.normal(5.0)(random.key(0), (2, 3)).shape
        (2, 3)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype = _dtype(dtype, default)
        return random.normal(key, shape, dtype) * _number(stddev, dtype)

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """An initializer that draws normal numbers between two bounds, scaled by `stddev`.

    Args:
        stddev: the factor; the standard deviation of the numbers is smaller, because of the bounds.
        dtype: the dtype if the call gives none; the default floating one if None.
        lower, upper: the bounds, in units of `stddev`.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> initializers.truncated_normal(5.0)(random.key(0), (2, 3)).shape
        (2, 3)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype = _dtype(dtype, default)
        return random.truncated_normal(key, lower, upper, shape, dtype) * _number(stddev, dtype)

    return init


def _dtype(dtype, default):
    """The dtype of the call, or that of the initializer, or the default floating one."""
    dtype = default if dtype is None else dtype
    return dtypes.python_scalar_dtype(float) if dtype is None else dtypes.requested_dtype(dtype, "an initializer")


def _number(x, dtype):
    return lax.convert_element_type(x, dtype) if not isinstance(x, (int, float)) else lax.full((), x, dtype)


# -- scaled by the size of a layer -----------------------------------------------------------------

# These are the standard deviations of a normal distribution cut off at 2, a real and a complex one.
_CUT_REAL, _CUT_COMPLEX = 0.87962566103423978, 0.95311164380491208
_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer that draws numbers with the variance `scale / n` for a size n of the layer.

    Args:
        scale: a positive number.
        mode: the size n: "fan_in" for the number of inputs of one output, "fan_out" for that of the
            outputs of one input, "fan_avg" for their mean, "fan_geo_avg" for their geometric mean.
        distribution: "normal", "truncated_normal" or "uniform".
        in_axis, out_axis: the axes of inputs and outputs; the other axes are those of a receptive
            field.
        batch_axis: the axes of independent parameters.
        dtype: the dtype if the call gives none; the default floating one if None.

    Returns:
        A function `(key, shape, dtype)`, which raises ValueError if `mode` or `distribution` is
        unknown, or the shape has less than two axes where both `in_axis` and `out_axis` name some.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> initializers.variance_scaling(2.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
        (2, 3)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype, shape = _dtype(dtype, default), tuple(shape)
        if mode not in _MODES:
            raise ValueError(f"variance_scaling: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}.")
        variance = lax.full((), scale / _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis)), dtype)
        return _scaled(distribution, key, variance, shape, dtype)

    return init


def _scaled(distribution: str, key, variance, shape, dtype):
    is_complex = dtype in dtypes.COMPLEX
    if distribution == "normal":
        return random.normal(key, shape, dtype) * lax.sqrt(variance)
    if distribution == "uniform":
        if is_complex:
            return _disk(key, shape, dtype) * lax.sqrt(variance)
        return random.uniform(key, shape, dtype, -1, 1) * lax.sqrt(_number(3.0, dtype) * variance)
    if distribution == "truncated_normal":
        deviation = lax.sqrt(variance) / _number(_CUT_COMPLEX if is_complex else _CUT_REAL, dtype)
        drawn = _cut_normal(key, 2, shape, dtype) if is_complex else random.truncated_normal(key, -2, 2, shape, dtype)
        return drawn * deviation
    raise ValueError(
        f"variance_scaling: distribution must be 'normal', 'truncated_normal' or 'uniform', got {distribution!r}."
    )


def _fans(shape, in_axis, out_axis, batch_axis) -> tuple[float, float]:
    """The number of inputs of one output, and the number of outputs of one input."""
    if len(shape) <= 1 and in_axis not in ((), []) and out_axis not in ((), []):
        raise ValueError(
            "variance_scaling: the parameter must have at least two axes, for inputs and outputs, "
            f"got shape {shape}. Use initializers.normal for others."
        )
    inputs, outputs, batch = [_sizes(shape, axis) for axis in (in_axis, out_axis, batch_axis)]
    field = math.prod(shape) / inputs / outputs / batch
    return inputs * field, outputs * field


def _sizes(shape, axis) -> int:
    return shape[axis] if isinstance(axis, int) else math.prod([shape[i] for i in axis])


def _disk(key, shape, dtype):
    """Complex random numbers with variance 1 that are uniform on a disk."""
    radius_key, angle_key = split_keys(take_key("uniform", key), 2)
    part = dtypes.real_dtype(dtype)
    radius = lax.sqrt(_number(2, part) * random.uniform(radius_key, shape, part))
    return lax.convert_element_type(radius, dtype) * _unit_circle(angle_key, shape, dtype, part)


def _cut_normal(key, upper, shape, dtype):
    """Standard complex normal numbers with absolute values up to `upper`."""
    radius_key, angle_key = split_keys(take_key("truncated_normal", key), 2)
    part = dtypes.real_dtype(dtype)
    inside = _number(1, dtype) - lax.exp(_number(-(float(upper) ** 2), dtype))
    t = inside * lax.convert_element_type(random.uniform(radius_key, shape, part), dtype)
    return lax.sqrt(-lax.log(_number(1, dtype) - t)) * _unit_circle(angle_key, shape, dtype, part)


def _unit_circle(key, shape, dtype, part):
    angle = lax.convert_element_type(random.uniform(key, shape, part), dtype) * _number(2 * np.pi, dtype)
    return lax.exp(lax.full((), 1j, dtype) * angle)


def _named(name: str, scale: float, mode: str, distribution: str, summary: str) -> Callable[..., Initializer]:
    def function(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        in_axis, out_axis: the axes of inputs and outputs.
        batch_axis: the axes of independent parameters.
        dtype: the dtype if the call gives none; the default floating one if None.

    Returns:
        A function `(key, shape, dtype)`, which raises ValueError if the shape has less than two
        axes.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> initializers.{name}()(random.key(0), (2, 3)).shape
        (2, 3)
    """
    return function


glorot_uniform = _named(
    "glorot_uniform",
    1.0,
    "fan_avg",
    "uniform",
    "An initializer with uniform numbers of variance 2 / (inputs + outputs) (Glorot, Bengio 2010).",
)
glorot_normal = _named(
    "glorot_normal",
    1.0,
    "fan_avg",
    "truncated_normal",
    "An initializer with normal numbers of variance 2 / (inputs + outputs), within two deviations.",
)
lecun_uniform = _named(
    "lecun_uniform", 1.0, "fan_in", "uniform", "An initializer with uniform numbers of variance 1 / inputs."
)
lecun_normal = _named(
    "lecun_normal",
    1.0,
    "fan_in",
    "truncated_normal",
    "An initializer with normal numbers of variance 1 / inputs, within two deviations.",
)
he_uniform = _named(
    "he_uniform",
    2.0,
    "fan_in",
    "uniform",
    "An initializer with uniform numbers of variance 2 / inputs (He et al. 2015).",
)
he_normal = _named(
    "he_normal",
    2.0,
    "fan_in",
    "truncated_normal",
    "An initializer with normal numbers of variance 2 / inputs, within two deviations.",
)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# -- orthogonal ------------------------------------------------------------------------------------


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with uniform random orthogonal matrices (Saxe, McClelland and Ganguli 2014).

    If the matrix is not square, its rows or its columns are orthonormal, whichever are fewer.

    Args:
        scale: the factor by which the matrix is multiplied.
        column_axis: the axis of the outputs; all others together are the inputs.
        dtype: the dtype if the call gives none; the default floating one if None.

    Returns:
        A function `(key, shape, dtype)`, which raises ValueError if the shape has less than two
        axes.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> w = initializers.orthogonal()(random.key(0), (2, 3))
        >>> bool(jnp.allclose(w @ w.T, jnp.eye(2), atol=1e-6))
        True
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype = _dtype(dtype, default)
        if len(shape) < 2:
            raise ValueError(f"initializers.orthogonal: shape must have at least two axes, got {tuple(shape)}.")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        matrix = random.orthogonal(key, rows, dtype=dtype, m=columns)
        others = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        return _number(scale, dtype) * jnp.moveaxis(matrix.reshape((*others, columns)), -1, column_axis)

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of convolutions with an orthogonal matrix at the centre and zeros elsewhere.

    It is that of Xiao et al. (2018).

    Args:
        scale: the factor by which the matrix is multiplied.
        column_axis: the axis of the outputs.
        dtype: the dtype if the call gives none; the default floating one if None.

    Returns:
        A function `(key, shape, dtype)` for shapes (..., inputs, outputs) with one to three spatial
        axes; it raises ValueError for others, and for more inputs than outputs.

    Example:
        >>> from gradix import random
        >>> from gradix.nn import initializers
        >>> w = initializers.delta_orthogonal()(random.key(0), (3, 2, 4))
        >>> bool(jnp.allclose(w[1] @ w[1].T, jnp.eye(2), atol=1e-6)), bool(w[0].any())
        (True, False)
    """
    default = dtype

    def init(key, shape, dtype=None, out_sharding=None):
        if out_sharding is not None:
            return divided(init, out_sharding, key, shape, dtype)
        dtype = _dtype(dtype, default)
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                "delta_orthogonal: shape must have one to three spatial axes, then inputs and "
                f"outputs, got {tuple(shape)}."
            )
        *space, inputs, outputs = shape
        if inputs > outputs:
            raise ValueError(
                "delta_orthogonal: the number of inputs must not be larger than that of outputs, "
                f"got {inputs} and {outputs} in shape={tuple(shape)}."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, (inputs, outputs))
        centre = tuple([(n - 1) // 2 for n in space])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return init


__dir__ = listing(__name__)
