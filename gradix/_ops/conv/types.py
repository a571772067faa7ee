"""Which operands a convolution takes, and the dtypes in which it is computed and returned."""

from __future__ import annotations

import numpy as np

from gradix._core import dtypes

_WIDE = np.dtype("float32")


def work_dtype(dtype, out):
    """The dtype to compute in where operand and result differ, or the host lacks arithmetic."""
    wide = (
        out
        if dtype in dtypes.INTEGER | dtypes.BOOL
        or out in dtypes.COMPLEX
        or dtypes.itemsize_bits(out) > dtypes.itemsize_bits(dtype)
        else dtype
    )
    if wide in dtypes.FLOAT and wide.itemsize < 4:
        return _WIDE
    return np.dtype("int32") if wide in dtypes.NARROW_INTEGER else wide


def result_dtype(dtype, preferred):
    if preferred is None:
        return dtype
    if dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for operands of {dtype}. Convert the result instead."
        )
    if dtype not in dtypes.BOOL and not any(dtype in own and preferred in wanted for own, wanted in _COMPATIBLE):
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`: integers can give integers or floats, "
            "floats only floats, and complex numbers only complex numbers; got preferred_element_type of "
            f"{preferred} for operands of {dtype}. Convert the result instead."
        )
    if dtype in dtypes.SIGNED and preferred in dtypes.UNSIGNED:
        raise TypeError(
            "`preferred_element_type` must have the same signedness as the original type, got "
            f"preferred_element_type of {preferred} for operands of {dtype}. Convert the result instead."
        )
    return preferred


_COMPATIBLE = (
    (dtypes.INTEGER, dtypes.INTEGER | dtypes.FLOAT),
    (dtypes.FLOAT, dtypes.FLOAT),
    (dtypes.COMPLEX, dtypes.COMPLEX),
)


def _if_features_are_last(lhs: tuple, rhs: tuple) -> str:
    """What to write if the features are the last axis of the images, and those of the kernel the last but one."""
    if len(lhs) not in (3, 4, 5) or lhs[-1] != rhs[-2]:
        return ""
    space = ("W", "HW", "DHW")[len(lhs) - 3]
    return f" With the features last, write dimension_numbers=('N{space}C', '{space}IO', 'N{space}C')."


def check_operands(lhs, rhs, numbers, feature_groups, batch_groups) -> None:
    name = "conv_general_dilated"
    if lhs.dtype != rhs.dtype:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {dtypes.dtype_name(lhs.dtype)}, "
            f"{dtypes.dtype_name(rhs.dtype)}. Convert one of them with .astype(...)."
        )
    for what, count in (("feature", feature_groups), ("batch", batch_groups)):
        if count < 1:
            raise ValueError(f"{name} {what}_group_count must be a positive integer, got {count}.")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_groups} and feature_group_count={feature_groups}."
        )
    batch, features = lhs.shape[numbers.lhs_spec[0]], lhs.shape[numbers.lhs_spec[1]]
    out_features, in_features = rhs.shape[numbers.rhs_spec[0]], rhs.shape[numbers.rhs_spec[1]]
    for what, count, side, of, n in (
        ("feature", feature_groups, "lhs", "feature", features),
        ("batch", batch_groups, "lhs", "batch", batch),
        ("feature", feature_groups, "rhs", "output feature", out_features),
        ("batch", batch_groups, "rhs", "output feature", out_features),
    ):
        if n % count:
            raise ValueError(
                f"{name} {what}_group_count must divide {side} {of} dimension size, but {count} does not divide {n}."
            )
    if features // feature_groups != in_features:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs input "
            f"feature dimension size, but {features} // {feature_groups} != {in_features}. The shapes are "
            f"{lhs.shape} and {rhs.shape}, with {numbers}.{_if_features_are_last(lhs.shape, rhs.shape)}"
        )
