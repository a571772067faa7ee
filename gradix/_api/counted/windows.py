"""Mask rules of convolutions and windows."""

from __future__ import annotations

from gradix._api.counted.masking import refuse, rule
from gradix._ops.reduction_identities import highest, lowest


@rule("conv_general_dilated")
def _convolution(S, e, x, kernel):
    numbers, shape = e.params["dimension_numbers"], e.invars[0].aval.shape
    if S.open(e.invars[1].aval.shape) or any(S.is_open(q) for pair in e.params["padding"] for q in pair):
        raise refuse(
            e, "a convolution with a kernel or a padding whose size values decide", "fix the size of the kernel"
        )
    if S.open(shape, (numbers.lhs_spec[1],)):
        raise refuse(e, "a convolution over features whose number values decide", "fix the number of features")
    return S.same(e, [S.filled(x, shape, numbers.lhs_spec[2:], 0), kernel])


_FILLS = {"sum": lambda dtype: 0, "max": lowest, "min": highest}


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _windows(S, e, x):
    if any(S.is_open(q) for pair in e.params["padding"] for q in pair):
        raise refuse(e, "windows with a padding whose size values decide", "pad the array first, with jnp.pad")
    fill = _FILLS[e.primitive.name.rsplit("_", 1)[1]](x.aval.dtype)
    return S.same(e, [S.filled(x, e.invars[0].aval.shape, range(x.aval.ndim), fill)])
