"""Activation functions; all are elementwise but `glu`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.array import ArrayImpl
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._ops.canonicalization import canonical_axis
from gradix.nn.composition import fused
from gradix.numpy.arithmetic import maximum, minimum
from gradix.numpy.elementary import exp, expm1, log, log1p, logaddexp, tanh as _tanh
from gradix.numpy.host_implementations import FLOATS, alike
from gradix.numpy.promotion import as_operand, inexact_operand, inexact_operands, numeric_operand
from gradix.numpy.selection import clip, where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

# -- rectifiers ------------------------------------------------------------------------------------


# The derivative at a corner is that of the flat side; that of max and min would be half as steep.
@custom_jvp
def _relu(x):
    return maximum(x, 0)


@_relu.defjvp
def _relu_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _relu(x), where(x > 0, t, 0)


def relu(x: ArrayLike) -> Array:
    """The rectifier max(x, 0), in the dtype of `x`; its derivative at 0 is 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.relu(jnp.array([-1.0, 0.0, 2.0]))
        Array([0., 0., 2.], dtype=float32)
        >>> import gradix
        >>> gradix.grad(nn.relu)(2.0), gradix.grad(nn.relu)(0.0)
        (Array(1., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))

    See also:
        `nn.relu6`, `nn.leaky_relu`, `nn.gelu`, `nn.silu`, `nn.softplus`.
    """
    if type(x) is ArrayImpl and state.stage is None:
        return maximum(x, 0)
    return _relu(as_operand("relu", x))


@custom_jvp
def _relu6(x):
    return minimum(maximum(x, 0), 6.0)


@_relu6.defjvp
def _relu6_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _relu6(x), where((x > 0) & (x < 6), t, 0)


def relu6(x: ArrayLike) -> Array:
    """The rectifier min(max(x, 0), 6) in a floating dtype; its derivative at the corners is 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.relu6(jnp.array([-1.0, 3.0, 8.0]))
        Array([0., 3., 6.], dtype=float32)
    """
    if type(x) is ArrayImpl and state.stage is None:
        return minimum(maximum(x, 0), 6.0)
    return _relu6(as_operand("relu6", x))


@fused
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """The leaky rectifier: x where x ≥ 0, else negative_slope · x, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.leaky_relu(jnp.array([-1.0, 2.0]))
        Array([-0.01,  2.  ], dtype=float32)
    """
    return where(x >= 0, x, negative_slope * x)


@fused
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit: x where x > 0, else alpha · (eˣ − 1), in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.elu(jnp.array([-1.0, 2.0]))
        Array([-0.63212055,  2.        ], dtype=float32)
    """
    # The inner choice avoids an overflow of eˣ where it is not used, and with it NaN derivatives.
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x)))


@fused
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The unit max(x, 0) + min(alpha · (e^(x / alpha) − 1), 0), with a continuous derivative.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.celu(jnp.array([-1.0, 2.0]))
        Array([-0.63212055,  2.        ], dtype=float32)
    """
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x) / alpha))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@fused
def selu(x: ArrayLike) -> Array:
    """`elu` scaled so that layers keep the mean 0 and the variance 1 (Klambauer et al. 2017).

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.selu(jnp.array([1.0]))
        Array([1.050701], dtype=float32)
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """The elements limited to [−1, 1], in the dtype of `x`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.hard_tanh(jnp.array([-3.0, 0.5]))
        Array([-1. ,  0.5], dtype=float32)
    """
    return where(x > 1, 1, where(x < -1, -1, x))


# -- sigmoids --------------------------------------------------------------------------------------


def sigmoid(x: ArrayLike) -> Array:
    """The sigmoid 1 / (1 + e⁻ˣ), in the dtype of `x`.

    Raises:
        TypeError: `x` is neither floating nor complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.sigmoid(jnp.array([0.0, 100.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    return lax.logistic(as_operand("sigmoid", x))


@fused
def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm log(sigmoid(x)), accurate for all x, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.log_sigmoid(jnp.array([-100.0]))
        Array([-100.], dtype=float32)
    """
    return -softplus(-x)


def softplus_by_numpy(x):
    """The host rule of `softplus`; see `gradix.numpy.host_implementations`."""
    if not alike(FLOATS, x):
        return None
    zero = np.zeros((), x.dtype)
    return lambda x: np.logaddexp(x, zero)


@fused(host=softplus_by_numpy)
def softplus(x: ArrayLike) -> Array:
    """The smooth rectifier log(1 + eˣ), in a floating dtype; eˣ does not overflow.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.softplus(jnp.array([0.0, 100.0]))
        Array([  0.6931472, 100.       ], dtype=float32)
    """
    return logaddexp(x, 0)


@custom_jvp
def _soft_sign(x):
    return x / (abs(x) + 1)


@_soft_sign.defjvp
def _soft_sign_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    part = 1 / (abs(x) + 1)
    return _soft_sign(x), t * (part * part)


@fused
def soft_sign(x: ArrayLike) -> Array:
    """The quotient x / (|x| + 1), in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.soft_sign(jnp.array([1.0, -3.0]))
        Array([ 0.5 , -0.75], dtype=float32)
    """
    return _soft_sign(x)


@fused
def silu(x: ArrayLike) -> Array:
    """The product x · sigmoid(x), also called swish, in the dtype of `x`.

    Raises:
        TypeError: `x` is neither floating nor complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.silu(jnp.array([0.0, 1.0]))
        Array([0.       , 0.7310586], dtype=float32)
    """
    return x * sigmoid(x)


swish = silu


@fused
def hard_sigmoid(x: ArrayLike) -> Array:
    """The piecewise linear sigmoid relu6(x + 3) / 6, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.hard_sigmoid(jnp.array([0.0, 9.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    return relu6(x + 3.0) / 6.0


@fused
def hard_silu(x: ArrayLike) -> Array:
    """The product x · hard_sigmoid(x), also called hard_swish, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.hard_silu(jnp.array([-3.0, 3.0]))
        Array([-0.,  3.], dtype=float32)
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@fused
def mish(x: ArrayLike) -> Array:
    """The product x · tanh(softplus(x)), in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.mish(jnp.array([0.0, 1.0]))
        Array([0.       , 0.8650984], dtype=float32)
    """
    return x * _tanh(softplus(x))


@fused
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """The algebraic `softplus` (x + √(x² + b)) / 2, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.squareplus(jnp.array([0.0]))
        Array([1.], dtype=float32)
    """
    x, b = inexact_operands("squareplus", numeric_operand("squareplus", x), b)
    return (x + lax.sqrt(lax.square(x) + b)) / 2


@fused
def sparse_plus(x: ArrayLike) -> Array:
    """The smooth rectifier that is 0 for x ≤ −1, x for x ≥ 1, and (x + 1)² / 4 between them.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
        Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    return where(x <= -1.0, 0.0, where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@fused
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of `sparse_plus`, (x + 1) / 2 limited to [0, 1].

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * clip(x + 1.0, 0.0, 2.0)


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.tanh(jnp.array([0.0]))
        Array([0.], dtype=float32)
    """
    return _tanh(x)


# -- others ----------------------------------------------------------------------------------------


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """The product x · Φ(x), where Φ is the normal distribution function, in a floating dtype.

    Args:
        x: an array.
        approximate: whether to approximate Φ by a hyperbolic tangent; results differ by up to 5e-4.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.gelu(jnp.array([0.0, 1.0]), approximate=False)
        Array([0.       , 0.8413447], dtype=float32)
    """
    x = inexact_operand("gelu", x)
    x = lax.convert_element_type(x, x.aval.dtype)
    if approximate:
        return x * (0.5 * (1.0 + lax.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * lax.integer_pow(x, 3)))))
    return (0.5 * x) * lax.erfc(-x * math.sqrt(0.5))


@fused
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The product a · sigmoid(b) for the two halves a and b of x along an axis.

    Args:
        x: an array.
        axis: an axis of even size.

    Returns:
        An array in a floating dtype, in which the axis has half its size.

    Raises:
        ValueError: the axis has an odd size.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.glu(jnp.array([2.0, 0.0]))
        Array([1.], dtype=float32)
    """
    shape = x.aval.shape
    axis = canonical_axis(axis, len(shape))
    if shape[axis] % 2:
        raise ValueError(
            f"glu: the size of axis {axis} must be divisible by 2, got shape {shape}. Take an axis of even size, "
            f"such as x[..., : 2 * (n // 2)] of a size n."
        )
    a, b = lax.split(x, (shape[axis] // 2,) * 2, axis)
    return a * sigmoid(b)


@custom_jvp
def _log1mexp(x):
    return where(x < math.log(2.0), log(-expm1(-x)), log1p(-exp(-x)))


@_log1mexp.defjvp
def _log1mexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log1mexp(x), t * (exp(-x) / -expm1(-x))  # e⁻ˣ / (1 − e⁻ˣ)


def log1mexp(x: ArrayLike) -> Array:
    """The value log(1 − e⁻ˣ) for x > 0, computed by the accurate one of two formulas.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.log1mexp(jnp.array([1.0])).round(4)
        Array([-0.4587], dtype=float32)
    """
    return _log1mexp(inexact_operand("log1mexp", x))


def identity(x: Any) -> Array:
    """The argument itself, as an array.

    Example:
        >>> from gradix import nn
        >>> nn.identity(2)
        Array(2, dtype=int32, weak_type=True)
    """
    return as_operand("identity", x)
