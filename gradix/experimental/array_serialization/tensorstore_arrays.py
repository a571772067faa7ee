"""Arrays in TensorStore's formats, as checkpoints of several libraries hold them.

TensorStore is a package of its own, which only these functions need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np

from gradix._api.array_assembly import make_array_from_callback
from gradix._api.placing import as_sharding
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl, as_array
from gradix._core.array_layouts import Format
from gradix._core.dtypes import as_dtype, is_extended

tensorstore: Any = lazy_module("tensorstore")

_BUCKET = re.compile(r"(gs|s3)://([^/]+)/(.*)")
_DRIVERS = {"gs": "gcs", "s3": "s3"}
_AT_ONCE = 8  # arrays read at once
_COMPRESSOR = {"id": "zstd", "level": 1}


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike,
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr=None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """What TensorStore is told of where an array is kept.

    Args:
        ckpt_path: the array's own folder, or its name in a bucket: `gs://bucket/name`,
            `s3://bucket/name`.
        ocdbt: keep it in a database in the folder above, under the last part of the path.
        process_idx: whose part of the database it is.
        arr: an array whose shape and dtype are to be written down too.
        driver: the format: "zarr" or "zarr3".

    Raises:
        ValueError: the path of a database is not absolute.

    Example:
        >>> get_tensorstore_spec("/checkpoints/3/w")
        {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/checkpoints/3/w'}}
    """
    path = os.path.normpath(os.fspath(ckpt_path)).replace("gs:/", "gs://").replace("s3:/", "s3://")
    if not ocdbt:
        spec: dict[str, Any] = {"driver": driver, "kvstore": _base(path)}
    else:
        folder, name = os.path.split(path)
        if not os.path.isabs(folder) and not _BUCKET.match(folder + "/"):
            raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
        if process_idx is not None:
            folder = f"{folder}/process_{process_idx}"
        spec = {
            "driver": driver,
            "kvstore": {"driver": "ocdbt", "base": _base(folder), "path": name},
        }
    if arr is not None:
        spec.update(_described(spec, as_array(arr)))
    return spec


def is_remote_storage(tensorstore_spec: dict[str, Any] | str) -> bool:
    """Whether a specification, or a path, names a bucket rather than a file."""
    if isinstance(tensorstore_spec, str):
        return _BUCKET.match(f"{tensorstore_spec}/") is not None
    kept = tensorstore_spec.get("kvstore", tensorstore_spec)
    return is_remote_storage(kept["base"]) if "base" in kept else kept["driver"] != "file"


def _base(path: str) -> dict[str, Any]:
    found = _BUCKET.match(path + "/")
    if found is None:
        return {"driver": "file", "path": path}
    return {"driver": _DRIVERS[found[1]], "bucket": found[2], "path": found[3].rstrip("/")}


def _described(spec: dict, x) -> dict[str, Any]:
    """The parts of a specification that say what the array is like."""
    out: dict[str, Any] = {"dtype": x.aval.dtype.name}
    if "metadata" not in spec and spec["driver"] == "zarr":
        part = x.sharding.shard_shape(x.aval.shape) if type(x) is ArrayImpl else x.aval.shape
        chunks = [max(n, 1) for n in part]
        out["metadata"] = {
            "shape": list(x.aval.shape),
            "chunks": chunks,
            "compressor": dict(_COMPRESSOR),
        }
    return out


def writes(x, spec: dict[str, Any], transaction=None) -> Iterator[Any]:
    """TensorStore's futures of writing what this process holds of an array, once of each part that several hold.

    Raises:
        TypeError: it is an array of random keys.
    """
    array = as_array(x)
    if is_extended(array.aval.dtype):
        raise TypeError(
            f"arrays of dtype {array.aval.dtype} cannot be written; write gradix.random.key_data(keys)."
        )
    found = {**spec, **_described(spec, array)}
    shape = () if "metadata" in found else ({"shape": array.aval.shape},)
    store = tensorstore.open(
        found, create=True, open=True, transaction=transaction, **dict(*shape)
    ).result()
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            yield store[shard.index].write(
                np.asarray(shard.data), can_reference_source_data_indefinitely=False
            )


def _read(sharding, store, shape: Sequence[int] | None, dtype) -> Any:
    """An opened array, divided as the sharding says; zeros where it is asked for larger than it is."""
    shape = tuple(store.shape if shape is None else shape)
    want = np.dtype(store.dtype.numpy_dtype) if dtype is None else as_dtype(dtype)
    if isinstance(sharding, Format):
        sharding = sharding.sharding

    def part(index) -> np.ndarray:
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape)]
        kept = tuple([slice(min(a, n), min(b, n)) for (a, b), n in zip(bounds, store.shape)])
        value = store[kept].read().result().astype(want)
        missing = [(0, b - a - n) for (a, b), n in zip(bounds, value.shape)]
        return np.pad(value, missing) if any(m for _, m in missing) else value

    return make_array_from_callback(shape, as_sharding(sharding, "deserialize"), part)


def run_serialization(arrays, tensorstore_specs) -> None:
    """Write arrays to where the specifications say, and wait until they are there.

    Args:
        arrays: arrays, in a list.
        tensorstore_specs: one for each; see `get_tensorstore_spec`.
    """
    futures = [
        f for x, spec in zip(arrays, tensorstore_specs, strict=True) for f in writes(x, spec)
    ]
    for future in futures:
        future.commit.result()


def run_deserialization(
    shardings, tensorstore_specs, global_shapes=None, dtypes=None, concurrent_gb: int = 32
) -> list:
    """Read arrays from where the specifications say.

    Args:
        shardings: how each is to be divided over devices.
        tensorstore_specs: one for each; see `get_tensorstore_spec`.
        global_shapes: their shapes; None for those that were written. Where one is larger, the
            rest is zeros.
        dtypes: their dtypes; None for those that were written.
        concurrent_gb: how much is read at once; an array that is larger is read alone.

    Raises:
        ValueError: there is no such array.
    """
    opening = [tensorstore.open(spec, open=True) for spec in tensorstore_specs]
    stores = [future.result() for future in opening]
    shapes = [None] * len(stores) if global_shapes is None else global_shapes
    kinds = [None] * len(stores) if dtypes is None else dtypes
    out: list = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for group in _groups(stores, concurrent_gb * 2**30):
            parts = [[each[i] for i in group] for each in (shardings, stores, shapes, kinds)]
            out += pool.map(_read, *parts)
    return out


def _groups(stores, limit: int) -> Iterator[list[int]]:
    """The numbers of arrays in order, in groups of at most so many bytes."""
    group: list[int] = []
    held = 0
    for i, store in enumerate(stores):
        size = prod(store.shape) * store.dtype.numpy_dtype.itemsize
        if group and held + size > limit:
            yield group
            group, held = [], 0
        group.append(i)
        held += size
    if group:
        yield group
