"""Sharded arrays in files of TensorStore, which reads and writes Zarr on disk and in the cloud."""

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
from gradix._base.listing import own_names as _own_names
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
    """TensorStore's caches and connections, which all reads and writes share."""
    return _ts.Context(
        {
            "cache_pool": {"total_bytes_limit": _CACHED_BYTES},
            "data_copy_concurrency": {"limit": 128},
            "file_io_concurrency": {"limit": 128},
        }
    )


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a TensorStore specification, or an address, refers to cloud storage.

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
    """The TensorStore specification of an array in a file, as a dictionary.

    Args:
        ckpt_path: the path of the array, or its address in Google's or Amazon's cloud.
        ocdbt: whether the arrays of a folder share one database, in TensorStore's format OCDBT.
        process_idx: the number of the process whose database it is, if each writes its own.
        arr: the array that will be written; its parts become the chunks of the file.
        driver: "zarr" or "zarr3".

    Raises:
        ValueError: the path of a database is not absolute, or `driver` has another value.

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
            raise ValueError(f"Checkpoint path should be absolute. Got {base}; pass an absolute path.")
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
    """The specification with the dtype and metadata that are needed to create the file."""
    out = {"dtype": np.dtype(array.dtype).name, **spec}
    if not spec.get("metadata"):
        out["metadata"] = _metadata(array, spec.get("driver", "zarr"))
    return out


async def gathered(*work: Awaitable) -> list:
    """The results of all awaitables, or the first error, once all of them have ended.

    An awaitable that ran on after the error of another would outlive the event loop.

    Example:
        >>> import asyncio
        >>> from gradix.experimental.array_serialization import tensorstore_arrays
        >>> async def double(x):
        ...     return 2 * x
        >>> async def work():
        ...     return await tensorstore_arrays.gathered(double(1), double(2))
        >>> asyncio.run(work())
        [2, 4]
    """
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
        tensorstore_spec: where to write, as `get_tensorstore_spec` makes it.
        commit_future: a list to which futures are added that end when the parts are on disk; by
            default this coroutine waits for them.
        context: a TensorStore context; by default the shared one.
        chunk_layout: a TensorStore chunk layout.
        primary_host: the process that creates the file; None if each process creates it.
        replica_id: the number of the replica to write, of parts that several devices hold.
        transaction: the TensorStore transaction in which to write.

    Raises:
        TypeError: `arr_inp` is not an array, or it is an array of random keys.

    Example:
        >>> import asyncio, tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import tensorstore_arrays as t
        >>> x = jnp.arange(3)
        >>> with tempfile.TemporaryDirectory() as folder:                         # doctest: +SKIP
        ...     spec = t.get_tensorstore_spec(f"{folder}/x")
        ...     asyncio.run(t.async_serialize(x, spec))
        ...     print(asyncio.run(t.async_deserialize(x.sharding, spec)))
        [0 1 2]
    """
    if type(arr_inp) is not ArrayImpl or is_extended(arr_inp.aval.dtype):
        raise TypeError(
            f"async_serialize: arr_inp must be an array, got a {type(arr_inp).__name__}. Convert NumPy "
            "arrays by jnp.asarray, and random keys by gradix.random.key_data."
        )
    spec = _ts.Spec(_with_metadata(tensorstore_spec, arr_inp))
    options = {"context": _context_or_shared(context), "transaction": transaction}
    if chunk_layout is not None:
        options["chunk_layout"] = chunk_layout
    if primary_host is None or process_index() == primary_host:
        file = await _ts.open(spec, create=True, open=True, **options)
    else:  # The primary process may not have written the metadata yet.
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


def _context_or_shared(given: Any) -> Any:
    return context() if given is None else given


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
    """The array in a file, of which only the parts for the devices of this process are read.

    Args:
        in_type: a sharding, a format, or a `ShapeDtypeStruct` that has a sharding.
        tensorstore_spec: where the array is, as `get_tensorstore_spec` makes it.
        global_shape: the shape of the result, to which the array is cut or padded with zeros; by
            default that of `in_type`, or else of the file.
        dtype: the dtype of the result; by default that of `in_type`, or else of the file.
        byte_limiter: a limiter of the number of bytes being read at the same time.
        context: a TensorStore context; by default the shared one.
        chunk_layout: a TensorStore chunk layout.
        assume_metadata: whether to trust the specification's metadata without reading the file's.

    Raises:
        TypeError: `in_type` has no sharding.
        ValueError: there is no such array.

    Example:
        >>> import asyncio, tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import tensorstore_arrays as t
        >>> x = jnp.arange(3)
        >>> with tempfile.TemporaryDirectory() as folder:                         # doctest: +SKIP
        ...     spec = t.get_tensorstore_spec(f"{folder}/x")
        ...     asyncio.run(t.async_serialize(x, spec))
        ...     print(repr(asyncio.run(t.async_deserialize(x.sharding, spec, global_shape=(4,), dtype="float32"))))
        Array([0., 1., 2., 0.], dtype=float32)
    """
    place = getattr(in_type, "sharding", in_type)
    if place is None:
        raise TypeError(
            "sharding passed to deserialization should be specified, concrete and an instance of "
            f"`jax.sharding.Sharding`. Got {in_type}"
        )
    sharding = as_sharding(place, "deserialization")
    options = {"chunk_layout": chunk_layout} if chunk_layout is not None else {}
    file = await _ts.open(
        _ts.Spec(tensorstore_spec),
        open=True,
        assume_metadata=assume_metadata,
        context=_context_or_shared(context),
        **options,
    )
    given = global_shape if global_shape is not None else getattr(in_type, "shape", None)
    shape = tuple(file.shape if given is None else given)
    kind = np.dtype(dtype or getattr(in_type, "dtype", None) or file.dtype.numpy_dtype)

    async def read(device, index):
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape)]
        there = [slice(a, max(a, min(b, n))) for (a, b), n in zip(bounds, file.shape)]
        size = int(np.prod([b - a for a, b in bounds], dtype=np.int64)) * file.dtype.numpy_dtype.itemsize
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
    """Limits the bytes that are being read at the same time; a larger part is read alone.

    Example:
        >>> import asyncio
        >>> from gradix.experimental.array_serialization.tensorstore_arrays import ByteLimiter
        >>> async def read():
        ...     limiter = ByteLimiter(100)
        ...     async with limiter.reserved(60):
        ...         return limiter.used
        >>> asyncio.run(read())
        60
    """

    __slots__ = ("limit", "used", "changed")

    def __init__(self, limit: int):
        self.limit, self.used, self.changed = limit, 0, asyncio.Condition()

    def reserved(self, size: int) -> _Reserved:
        """An asynchronous context manager that waits for `size` free bytes and holds them."""
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
        arrays: the arrays.
        tensorstore_specs: where to write each, as `get_tensorstore_spec` makes it.

    Raises:
        ModuleNotFoundError: tensorstore is not installed.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import tensorstore_arrays as t
        >>> with tempfile.TemporaryDirectory() as folder:                         # doctest: +SKIP
        ...     t.run_serialization([jnp.arange(3)], [t.get_tensorstore_spec(f"{folder}/x")])
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
    """The arrays in files, as a list.

    Args:
        shardings: the sharding of each array.
        tensorstore_specs: where each array is, as `get_tensorstore_spec` makes it.
        global_shapes: the shapes of the results; by default those of the files.
        dtypes: the dtypes of the results; by default those of the files.
        concurrent_gb: the number of gigabytes that may be read at the same time.

    Raises:
        ModuleNotFoundError: tensorstore is not installed.
        ValueError: there is no such array.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import tensorstore_arrays as t
        >>> x = jnp.arange(3)
        >>> with tempfile.TemporaryDirectory() as folder:                         # doctest: +SKIP
        ...     specs = [t.get_tensorstore_spec(f"{folder}/x")]
        ...     t.run_serialization([x], specs)
        ...     print(t.run_deserialization([x.sharding], specs))
        [Array([0, 1, 2], dtype=int32)]
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


__dir__ = _own_names(__name__)
