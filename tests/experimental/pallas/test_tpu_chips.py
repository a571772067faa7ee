"""What is told of the versions of TPUs."""

import dataclasses

import numpy as np
import pytest

from gradix.experimental.pallas import tpu as pltpu

DTYPES = (
    "float32 bfloat16 float16 int32 int16 int8 uint8 int4 uint4 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz".split()
)


def test_cores_that_are_one_device():
    for version in pltpu.ChipVersion:
        one = pltpu.get_tpu_info_for_chip(version, 1)
        assert one.is_lite == version.is_lite == (not one.is_split_chip)
        assert not one.is_megacore
        if version.supports_megacore:
            two = pltpu.get_tpu_info_for_chip(version, 2)
            assert two.is_megacore and not two.is_split_chip
            assert dataclasses.replace(two, num_cores=1) == one
        else:
            with pytest.raises(ValueError, match=f"2 cores of {version.name} cannot be one device. Write 1"):
                pltpu.get_tpu_info_for_chip(version, 2)


def test_wrong_versions_and_counts_are_told():
    with pytest.raises(TypeError, match="must be a ChipVersion.*got 'v5e'"):
        pltpu.get_tpu_info_for_chip("v5e", 1)
    with pytest.raises(ValueError, match="0 cores of TPU_V4"):
        pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V4, 0)
    info = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V6E, 1)
    with pytest.raises(ValueError, match="up to 32 bits, got float64"):
        info.get_sublane_tiling(np.float64)
    with pytest.raises(ValueError, match="default device is no TPU.*get_tpu_info_for_chip"):
        pltpu.get_tpu_info()


@pytest.mark.parity
def test_chips_are_those_of_jax(peer):
    from jax.experimental.pallas import tpu as other

    for ours in pltpu.ChipVersion:
        theirs = other.ChipVersion(ours.value)
        assert (ours.name, str(ours)) == (theirs.name, str(theirs))
        for name in ("num_physical_tensor_cores_per_chip", "supports_megacore", "is_lite"):
            assert getattr(ours, name) == getattr(theirs, name)
        for n in (1, 2) if theirs.supports_megacore else (1,):
            found, want = pltpu.get_tpu_info_for_chip(ours, n), other.get_tpu_info_for_chip(theirs, n)
            for field in dataclasses.fields(want)[1:]:
                a, b = getattr(found, field.name), getattr(want, field.name)
                assert (dataclasses.asdict(a) == dataclasses.asdict(b)) if dataclasses.is_dataclass(a) else a == b
            for left in DTYPES if theirs.value != "8i" else ():  # versions of JAX differ in what this one multiplies
                for right in DTYPES:
                    assert found.is_matmul_supported(left, right) == want.is_matmul_supported(left, right), (ours, left)
            if theirs.value != "8i":
                for dtype in map(peer.numpy.dtype, ("float32", "bfloat16", "int8", "int4")):
                    assert found.get_sublane_tiling(dtype) == want.get_sublane_tiling(dtype)
