"""What TPUs are made of, by their versions: numbers by which block sizes are chosen."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np

from gradix._core.dtypes import requested_dtype

_MIB = 1 << 20


class _Chip(NamedTuple):
    """What is told of a chip, per core; capacities in bytes, rates per second."""

    generation: int
    cores: int
    can_join: bool  # both cores can be one device
    mxu_size: int
    mxus: int
    accumulators: int
    vmem: int
    cmem: float
    smem: int
    hbm: float
    bandwidth: float
    bf16: float
    int8: float
    fp8: float
    int4: float
    sparse: tuple | None = None


class ChipVersion(enum.Enum):
    """A version of TPUs.

    | version | cores of a chip | cores that can be one device |
    |---|---|---|
    | v2, v3, 7, 7x, 8i | 2 | 1 |
    | v4, v5p | 2 | 2 |
    | v4i, v5e, v6e | 1 | 1 |

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> v5p = pltpu.ChipVersion("v5p")
        >>> v5p.num_physical_tensor_cores_per_chip, v5p.supports_megacore, v5p.is_lite
        (2, True, False)
    """

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    def __str__(self) -> str:
        return self.value

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """The number of cores of a chip."""
        return _CHIPS[self].cores

    @property
    def supports_megacore(self) -> bool:
        """Whether the two cores of a chip can be one device."""
        return _CHIPS[self].can_join

    @property
    def is_lite(self) -> bool:
        """Whether a chip has one core."""
        return _CHIPS[self].cores == 1


# The columns are those of `_Chip`.
_CHIPS = {
    ChipVersion.TPU_V2: _Chip(2, 2, False, 128, 1, 0, 16 * _MIB, 0, 1 << 14, 8e9, 358e9, 23e12, 0, 0, 0),
    ChipVersion.TPU_V3: _Chip(3, 2, False, 128, 2, 0, 16 * _MIB, 0, 1 << 14, 17.2e9, 412.5e9, 70e12, 0, 0, 0),
    ChipVersion.TPU_V4I: _Chip(4, 1, False, 128, 4, 0, 16 * _MIB, 134e6, _MIB, 8.59e9, 614e9, 137e12, 0, 0, 0),
    ChipVersion.TPU_V4: _Chip(4, 2, True, 128, 4, 0, 16 * _MIB, 67e6, _MIB, 17.2e9, 615e9, 137.5e12, 0, 0, 0),
    ChipVersion.TPU_V5E: _Chip(5, 1, False, 128, 4, 0, 128 * _MIB, 0, _MIB, 17.2e9, 820e9, 197e12, 394e12, 0, 788e12),
    ChipVersion.TPU_V5P: _Chip(
        *(5, 2, True, 128, 4, 0, 64 * _MIB, 0, _MIB, 51.5e9, 1.23e12, 229.5e12, 459e12, 0, 920e12),
        (4, 16, 8, 1 << 19, 32),
    ),
    ChipVersion.TPU_V6E: _Chip(
        *(6, 1, False, 256, 2, 0, 128 * _MIB, 0, _MIB, 34.4e9, 1.64e12, 920e12, 1840e12, 920e12, 3680e12),
        (2, 16, 8, 1 << 18, 32),
    ),
    ChipVersion.TPU_7X: _Chip(
        *(7, 2, False, 256, 2, 128, 64 * _MIB, 0, _MIB, 103e9, 3.7e12, 1155e12, 0, 2300e12, 0), (2, 16, 16, 1 << 19, 32)
    ),
    ChipVersion.TPU_8I: _Chip(
        *(8, 2, False, 256, 2, 256, 192 * _MIB, 0, _MIB, 154.5e9, 4.3e12, 550.5e12, 0, 4404e12, 0),
        (1, 4, 16, 1 << 19, 64),
    ),
}
_CHIPS[ChipVersion.TPU_7] = _CHIPS[ChipVersion.TPU_7X]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseCoreInfo:
    """What the sparse cores of a TPU are made of.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V6E, 1).sparse_core.num_subcores
        16
    """

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """What a core of a TPU is made of. Of a chip, it is `num_cores` times as much.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> info = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1)
        >>> info.vmem_capacity_bytes >> 20, info.num_lanes, info.mxu_column_size
        (128, 128, 128)
    """

    chip_version: Any
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one core."""
        return self.chip_version.is_lite

    @property
    def is_megacore(self) -> bool:
        """Whether several cores are one device."""
        return self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether the chip has cores that are other devices."""
        return self.num_cores < self.chip_version.num_physical_tensor_cores_per_chip

    def get_sublane_tiling(self, dtype: Any) -> int:
        """How many rows of a tile of memory a dtype has.

        Raises:
            ValueError: elements have more than 32 bits.
        """
        bits = _bits(dtype)
        if bits > 32:
            raise ValueError(f"get_sublane_tiling: a TPU holds elements of up to 32 bits, got {np.dtype(dtype)}.")
        if bits == 16 and self.generation < 7:
            return self.num_sublanes
        return self.num_sublanes * 32 // bits

    def is_matmul_supported(self, lhs_dtype: Any, rhs_dtype: Any) -> bool:
        """Whether the chip multiplies matrices of those dtypes."""
        pair = requested_dtype(lhs_dtype).name, requested_dtype(rhs_dtype).name
        return any(pair[0] in left and pair[1] in right for left, right in _products(self.generation))


def _bits(dtype: Any) -> int:
    dtype = np.dtype(dtype)
    return {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}.get(dtype.name, dtype.itemsize * 8)


def _products(generation: int) -> list[tuple[set, set]]:
    """The pairs of sets of dtypes of which matrices can be multiplied."""
    wide = {"float32", "bfloat16"}
    if generation < 4:
        return [({"float32"}, {"float32"})]
    if generation == 4:
        return [(wide, {*wide, "int8"})]
    if generation < 7:
        floats = {*wide, "float8_e5m2", "float8_e4m3b11fnuz"}
        return [(floats, floats), ({"int8", "uint8"}, {"int8", "uint8"}), ({"int4", "uint4"}, {"int4", "uint4"})]
    narrow = {"float8_e4m3fn", "float8_e5m2"}
    return [(wide, wide | narrow), (narrow, narrow)]


def get_tpu_info_for_chip(chip_version: ChipVersion, num_tensor_cores_per_logical_device: int) -> TpuInfo:
    """What a core of a version of TPUs is made of.

    Args:
        chip_version: the version, such as `ChipVersion.TPU_V5E`.
        num_tensor_cores_per_logical_device: the number of cores that are one device, 1 or 2.

    Raises:
        ValueError: the chip cannot make one device of so many cores.
        TypeError: `chip_version` is no `ChipVersion`.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> info = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V4, 2)
        >>> info.is_megacore, info.get_sublane_tiling("int8"), info.is_matmul_supported("bfloat16", "bfloat16")
        (True, 32, True)
    """
    n = num_tensor_cores_per_logical_device
    if not isinstance(chip_version, ChipVersion):
        raise TypeError(f"chip_version must be a ChipVersion, such as ChipVersion.TPU_V5E, got {chip_version!r}.")
    if n not in (1, 2) or (n == 2 and not chip_version.supports_megacore):
        raise ValueError(
            f"{n} cores of {chip_version.name} cannot be one device. Write 1: only chips of v4 and v5p join their "
            "two cores."
        )
    chip = _CHIPS[chip_version]
    sparse = SparseCoreInfo(**dict(zip(_SPARSE, chip.sparse))) if chip.sparse else None
    return TpuInfo(
        chip_version=chip_version,
        generation=chip.generation,
        num_cores=n,
        num_lanes=128,
        num_sublanes=8,
        mxu_column_size=chip.mxu_size,
        num_mxus=chip.mxus,
        num_accumulators=chip.accumulators,
        vmem_capacity_bytes=chip.vmem,
        cmem_capacity_bytes=int(chip.cmem),
        smem_capacity_bytes=chip.smem,
        hbm_capacity_bytes=int(chip.hbm),
        mem_bw_bytes_per_second=int(chip.bandwidth),
        bf16_ops_per_second=int(chip.bf16),
        int8_ops_per_second=int(chip.int8),
        fp8_ops_per_second=int(chip.fp8),
        int4_ops_per_second=int(chip.int4),
        sparse_core=sparse,
    )


_SPARSE = [f.name for f in dataclasses.fields(SparseCoreInfo)]


def get_tpu_info() -> TpuInfo:
    """What the TPU is made of that is the default device.

    Raises:
        ValueError: there is none.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.get_tpu_info()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: get_tpu_info: the default device is no TPU. ...
    """
    raise ValueError(
        "get_tpu_info: the default device is no TPU. Choose block sizes without it, such as 128 or 512, or for a "
        "version of TPUs: get_tpu_info_for_chip(ChipVersion.TPU_V5E, 1)."
    )
