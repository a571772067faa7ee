"""Sharded arrays in files of TensorStore, which reads and writes Zarr on disks and in clouds."""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np

from gradix._api.array_assembly import make_array_from_single_device_arrays
from gradix._api.devices import process_index
from gradix._api.placing import as_sharding, placed
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dtypes import is_extended
from gradix._core.sharding import SingleDeviceSharding

_ts: Any = lazy_module("tensorstore")

_REMOTE = ("gcs", "gcs_grpc", "gfile", "s3")
_CLOUDS = {"gs": "gcs", "s3": "s3"}
_CACHED_BYTES = 10_000_000_000
_BYTES_OF_A_GB = 10**9


@functools.lru_cache(None)
def context() -> Any:
    """The caches and connections that all reads and writes share."""
    return _ts.Context(
        {
            "cache_pool": {"total_bytes_limit": _CACHED_BYTES},
            "data_copy_concurrency": {"limit": 128},
            "file_io_concurrency": {"limit": 128},
        }
    )


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a specification of TensorStore, or an address, is of a cloud.

    Example:
        >>> is_remote_storage("gs://bucket/w"), is_remote_storage({"kvstore": {"driver": "file"}})
        (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(tuple([f"{c}://" for c in (*_CLOUDS, *_REMOTE)]))
    if tspec.get("driver") in _REMOTE:
        return True
    inner = [tspec[k] for k in ("base", "kvstore") if isinstance(tspec.get(k), (dict, str))]
    return any(is_remote_storage(i) for i in inner)


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike,
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """The specification of an array in a file of TensorStore.

    Args:
        ckpt_path: of the array: a path, or an address of Google's or Amazon's cloud.
        ocdbt: whether all arrays of a folder share one database.
        process_idx: the process whose part of the database it is, where each writes its own.
        arr: the array that is to be written; its parts become the chunks.
        driver: "zarr" or "zarr3".

    Raises:
        ValueError: the path of a database is not absolute; or the driver is not known.

    Example:
        >>> get_tensorstore_spec("/data/w")
        {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/data/w'}}
    """
    if driver not in ("zarr", "zarr3"):
        raise ValueError(f"driver must be 'zarr' or 'zarr3', got {driver!r}.")
    path = os.path.normpath(str(ckpt_path)).replace(":/", "://", 1)
    if ocdbt:
        base, _, name = path.rpartition("/")
        if "://" not in base and not os.path.isabs(base):
            raise ValueError(f"Checkpoint path should be absolute. Got {base}")
        if process_idx is not None:
            base = f"{base}/process_{process_idx}"
        store: dict[str, Any] = {"driver": "ocdbt", "base": _store(base), "path": name}
    else:
        store = _store(path)
    spec: dict[str, Any] = {"driver": driver, "kvstore": store}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _store(path: str) -> dict[str, str]:
    cloud = re.match(r"(gs|s3)://([^/]+)/?(.*)", path)
    if cloud is None:
        return {"driver": "file", "path": path}
    return {"driver": _CLOUDS[cloud[1]], "bucket": cloud[2], "path": cloud[3]}


def _metadata(arr: Any, driver: str) -> dict[str, Any]:
    shape = tuple(arr.shape)
    chunks = [max(n, 1) for n in arr.sharding.shard_shape(shape)]
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": shape, "chunks": chunks}
    return {
        "codecs": [],
        "shape": shape,
        "data_type": np.dtype(arr.dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
    }


def _with_metadata(spec: dict[str, Any], array: Any) -> dict[str, Any]:
    """A specification that says all that making the file needs."""
    out = {"dtype": np.dtype(array.dtype).name, **spec}
    if not spec.get("metadata"):
        out["metadata"] = _metadata(array, spec.get("driver", "zarr"))
    return out


async def gathered(*work: Awaitable) -> list:
    """The results of all, once all have ended; the first error of any, since what goes on would outlive the loop."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


async def async_serialize(
    arr_inp: Any,
    tensorstore_spec: dict[str, Any],
    commit_future: list | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> None:
    """Write the parts of an array that the devices of this process hold.

    Args:
        arr_inp: an array.
        tensorstore_spec: where; `get_tensorstore_spec` makes one.
        commit_future: a list that gets what is to be awaited until all is on disk; without it this
            waits itself.
        context: of TensorStore; None for the one that all share.
        chunk_layout: of TensorStore.
        primary_host: the process that makes the file; None where each makes its own.
        replica_id: which of equal parts is written.
        transaction: of TensorStore, in which to write.

    Raises:
        TypeError: it is no array that can be written.
    """
    if type(arr_inp) is not ArrayImpl or is_extended(arr_inp.aval.dtype):
        raise TypeError(
            f"async_serialize takes arrays, got {type(arr_inp).__name__}. Convert NumPy arrays with "
            "jnp.asarray, and random keys with gradix.random.key_data."
        )
    spec = _ts.Spec(_with_metadata(tensorstore_spec, arr_inp))
    shared = context if context is not None else _shared()
    options = {"context": shared, "transaction": transaction}
    if chunk_layout is not None:
        options["chunk_layout"] = chunk_layout
    if primary_host is None or process_index() == primary_host:
        file = await _ts.open(spec, create=True, open=True, **options)
    else:  # the metadata are those that the other process writes
        file = await _ts.open(spec, open=True, assume_metadata=True, **options)

    async def write(shard) -> None:
        written = file[shard.index].write(np.asarray(shard.data))
        if commit_future is None:
            await written.commit
        else:
            commit_future.append(written.commit)
            await written.copy

    own = [s for s in arr_inp.addressable_shards if s.replica_id == replica_id]  # type: ignore[attr-defined]
    await gathered(*[write(s) for s in own])


def _shared() -> Any:
    return context()


async def async_deserialize(
    in_type: Any,
    tensorstore_spec: dict[str, Any],
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: ByteLimiter | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> Any:
    """Read an array: each device of this process gets its part, and nothing else is read.

    Args:
        in_type: how to divide it: a sharding, a format, or a ShapeDtypeStruct with one.
        tensorstore_spec: where it is.
        global_shape: of the result; what goes beyond the file's is zero, what falls short is cut.
        dtype: of the result; None for the file's.
        byte_limiter: bounds how much is being read at once.
        context: of TensorStore; None for the one that all share.
        chunk_layout: of TensorStore.
        assume_metadata: whether the specification's metadata hold unread.

    Raises:
        TypeError: `in_type` names no sharding.
        ValueError: there is no such array.
    """
    place = getattr(in_type, "sharding", in_type)
    if place is None:
        raise TypeError(
            "sharding passed to deserialization should be specified, concrete and an instance of "
            f"`jax.sharding.Sharding`. Got {in_type}"
        )
    sharding = as_sharding(place, "deserialization")
    shared = context if context is not None else _shared()
    options = {"chunk_layout": chunk_layout} if chunk_layout is not None else {}
    file = await _ts.open(
        _ts.Spec(tensorstore_spec),
        open=True,
        assume_metadata=assume_metadata,
        context=shared,
        **options,
    )
    given = global_shape if global_shape is not None else getattr(in_type, "shape", None)
    shape = tuple(file.shape if given is None else given)
    kind = np.dtype(dtype or getattr(in_type, "dtype", None) or file.dtype.numpy_dtype)

    async def read(device, index):
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape)]
        there = [slice(a, max(a, min(b, n))) for (a, b), n in zip(bounds, file.shape)]
        size = (
            int(np.prod([b - a for a, b in bounds], dtype=np.int64))
            * file.dtype.numpy_dtype.itemsize
        )
        async with byte_limiter.reserved(size) if byte_limiter is not None else _Unlimited():
            found = np.asarray(await file[tuple(there)].read())
        if found.shape != tuple([b - a for a, b in bounds]):
            whole = np.zeros([b - a for a, b in bounds], found.dtype)
            whole[tuple([slice(0, n) for n in found.shape])] = found
            found = whole
        return placed(as_array(found.astype(kind, copy=False)), SingleDeviceSharding(device))

    where = sharding.addressable_devices_indices_map(shape)
    parts = await gathered(*[read(d, i) for d, i in where.items()])
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=kind)


class ByteLimiter:
    """Lets as much be read at once as fits into a number of bytes; a single larger part is read alone."""

    __slots__ = ("limit", "used", "changed")

    def __init__(self, limit: int):
        self.limit, self.used, self.changed = limit, 0, asyncio.Condition()

    def reserved(self, size: int) -> _Reserved:
        return _Reserved(self, min(size, self.limit))


class _Reserved:
    __slots__ = ("limiter", "size")

    def __init__(self, limiter: ByteLimiter, size: int):
        self.limiter, self.size = limiter, size

    async def __aenter__(self) -> None:
        limiter = self.limiter
        async with limiter.changed:
            await limiter.changed.wait_for(lambda: limiter.used + self.size <= limiter.limit)
            limiter.used += self.size

    async def __aexit__(self, *exc: object) -> None:
        async with self.limiter.changed:
            self.limiter.used -= self.size
            self.limiter.changed.notify_all()


class _Unlimited:
    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *exc: object) -> None:
        pass


def run_serialization(arrays: Sequence, tensorstore_specs: Sequence[dict[str, Any]]) -> None:
    """Write arrays, and wait until they are on disk.

    Args:
        arrays: arrays.
        tensorstore_specs: where each goes, as `get_tensorstore_spec` makes it.

    Raises:
        ModuleNotFoundError: tensorstore is not installed.
    """

    async def write() -> None:
        await gathered(*[async_serialize(a, s) for a, s in zip(arrays, tensorstore_specs)])

    asyncio.run(write())


def run_deserialization(
    shardings: Sequence,
    tensorstore_specs: Sequence[dict[str, Any]],
    global_shapes: Sequence | None = None,
    dtypes: Sequence | None = None,
    concurrent_gb: int = 32,
) -> list:
    """Read arrays.

    Args:
        shardings: how each is divided.
        tensorstore_specs: where each is.
        global_shapes: of the results, by default those of the files.
        dtypes: of the results, by default those of the files.
        concurrent_gb: gigabytes that are being read at once, at most.

    Raises:
        ModuleNotFoundError: tensorstore is not installed.
        ValueError: there is no such array.
    """
    count = len(tensorstore_specs)
    shapes: Sequence = [None] * count if global_shapes is None else global_shapes
    kinds: Sequence = [None] * count if dtypes is None else dtypes

    async def read() -> list:
        limiter = ByteLimiter(int(concurrent_gb * _BYTES_OF_A_GB))
        return await gathered(
            *[
                async_deserialize(s, t, shape, kind, limiter)
                for s, t, shape, kind in zip(shardings, tensorstore_specs, shapes, kinds)
            ]
        )

    return asyncio.run(read())
