"""Saves trees of arrays atomically as checkpoints in a directory, and loads them over any mesh.

A checkpoint is a folder with one file per part, and a manifest that lists the files with their
digests. All processes write it under a temporary name, and the first process renames it to a number
when all parts are on disk. So a folder named by a number is complete, even if a process is stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from gradix._api.array_assembly import make_array_from_callback
from gradix._api.devices import process_count, process_index
from gradix._api.distributed import client as _client
from gradix._api.placing import as_sharding
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import (
    flatten_axes,
    keystr,
    tree_flatten as flatten,
    tree_flatten_with_path,
    tree_map,
)
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dtypes import is_extended

__all__ = [
    "PyTreeFuture",
    "load",
    "load_pytreedef",
    "nonblocking_load",
    "nonblocking_save",
    "save",
]

_MANIFEST = "manifest.json"
_saves = itertools.count()


def save(
    data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None
) -> None:
    """Write a tree of arrays as the newest checkpoint of a directory; all processes call it.

    Args:
        data: arrays and numbers in dicts, lists and tuples.
        directory: a directory that all processes see; it is made if it does not exist.
        overwrite: whether a directory with a checkpoint may get another; the older ones are then
            removed.
        ts_specs: must be None; `serialization.run_serialization` writes files of TensorStore.

    Raises:
        ValueError: the directory has a checkpoint, and `overwrite` is False.
        TypeError: a leaf is not an array, or is an array of random keys.

    Example:
        >>> import tempfile, gradix, gradix.numpy as jnp
        >>> with tempfile.TemporaryDirectory() as where:
        ...     save({"w": jnp.arange(3.0)}, where)
        ...     load(where)
        {'w': Array([0., 1., 2.], dtype=float32)}
    """
    _check_specs("save", ts_specs)
    _save(data, _held(data), directory, overwrite)


def _check_specs(what: str, ts_specs: Any) -> None:
    if ts_specs is not None:
        raise NotImplementedError(
            f"{what}: ts_specs must be None, because these checkpoints are not files of TensorStore. Use "
            "serialization.run_serialization and run_deserialization for those."
        )


def _save(data: Any, held: list, directory: str | os.PathLike, overwrite: bool) -> None:
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    before = _checkpoints(root)
    if before and not overwrite:
        raise ValueError(
            f"{root} has a checkpoint already, {before[-1].name}. Pass overwrite=True to replace it."
        )
    number = next(_saves)
    _wait(f"begin-{number}")  # all processes have listed the directory before it changes
    name = f"{int(before[-1].name) + 1 if before else 0:08d}"
    temporary = root / f".{name}.tmp"
    if process_index() == 0:
        shutil.rmtree(temporary, ignore_errors=True)  # a stopped process may have left it
        temporary.mkdir()
    _wait(f"made-{number}")
    parts = _write_parts(held, temporary)
    _write(temporary / f"parts-{process_index()}.json", json.dumps(parts).encode())
    _wait(f"written-{number}")
    if process_index() == 0:
        _finish(data, root, temporary, name, before)
    _wait(f"done-{number}")


def _finish(data, root: Path, temporary: Path, name: str, before: list[Path]) -> None:
    """Write the manifest, and rename the checkpoint to its final name."""
    listed: dict[str, Any] = {}
    for part in sorted(temporary.glob("parts-*.json")):
        for key, files in json.loads(part.read_text()).items():
            listed.setdefault(key, []).extend(files)
    leaves = [
        {
            "path": keystr(p),
            "shape": list(np.shape(x)),
            "dtype": str(as_array(x).aval.dtype),
            "parts": listed.get(str(i), []),
        }
        for i, (p, x) in enumerate(tree_flatten_with_path(data)[0])
    ]
    _write(temporary / _MANIFEST, json.dumps({"tree": _outline(data), "leaves": leaves}).encode())
    _sync(temporary)
    os.replace(temporary, root / name)
    _sync(root)
    for old in before:
        shutil.rmtree(old, ignore_errors=True)


def _held(data) -> list[tuple[int, list[int], np.ndarray]]:
    """The parts on the devices of this process: number of the leaf, start of the part, and value.

    A part that several devices hold occurs once. The values stay valid if the arrays are donated.
    """
    out = []
    for i, x in enumerate(flatten(data)[0]):
        try:
            array = as_array(x)
        except TypeError as e:
            raise TypeError(f"save takes trees of arrays and numbers. {e}") from None
        if is_extended(array.aval.dtype):
            raise TypeError(
                "arrays of random keys cannot be saved; save gradix.random.key_data(keys)."
            )
        for shard in array.global_shards if type(array) is ArrayImpl else ():  # type: ignore[attr-defined]
            alone = array.aval.place is None or array.aval.place.device is not None
            if shard.data is None or shard.replica_id or (alone and process_index()):
                continue
            starts = [s.indices(n)[0] for s, n in zip(shard.index, array.aval.shape)]
            out.append((i, starts, np.asarray(shard.data)))
    return out


def _write_parts(held: list, folder: Path) -> dict[str, list]:
    out: dict[str, list] = {}
    for i, starts, value in held:
        file = f"{i}-{'_'.join(map(str, starts))}.bin"
        raw = np.ascontiguousarray(value).tobytes()
        _write(folder / file, raw)
        out.setdefault(str(i), []).append(
            {
                "file": file,
                "start": starts,
                "shape": list(value.shape),
                "digest": hashlib.blake2b(raw, digest_size=16).hexdigest(),
            }
        )
    return out


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _wait(name: str) -> None:
    connection = _client()
    if connection is not None and process_count() > 1:
        connection.wait_at_barrier(f"gradix/save/{name}", 600_000)


def _checkpoints(root: Path) -> list[Path]:
    """The complete checkpoints of a directory, oldest first."""
    found = (
        [p for p in root.iterdir() if p.name.isdigit() and (p / _MANIFEST).exists()]
        if root.is_dir()
        else []
    )
    return sorted(found, key=lambda p: int(p.name))


def _outline(tree) -> Any:
    """A tree of dicts, lists and tuples as JSON, with a number in place of each leaf."""
    counter = itertools.count()

    def walk(node):
        if isinstance(node, dict):
            if not all(isinstance(k, str) for k in node):
                raise TypeError(
                    f"save: the keys of dicts must be strings, got {list(node)}. Convert them first."
                )
            return {"dict": {k: walk(node[k]) for k in sorted(node)}}
        if type(node) in (list, tuple):
            return {type(node).__name__: [walk(v) for v in node]}
        if node is None:
            return {"none": 0}
        leaves = flatten(node)[0]
        if len(leaves) != 1 or leaves[0] is not node:
            raise TypeError(
                f"save: data must be a tree of dicts, lists and tuples, got a {type(node).__name__}. "
                "Convert it to one of them first."
            )
        return {"leaf": next(counter)}

    return walk(tree)


def _built(outline, leaves) -> Any:
    ((kind, value),) = outline.items()
    if kind == "dict":
        return {k: _built(v, leaves) for k, v in value.items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)([_built(v, leaves) for v in value])
    return None if kind == "none" else leaves[value]


def load(
    directory: str | os.PathLike, shardings: Any = None, *, mask: Any = None, ts_specs: Any = None
) -> Any:
    """Load the newest complete checkpoint of a directory.

    Args:
        directory: the directory given to `save`.
        shardings: the shardings of the arrays, as a tree prefix of the saved tree; None for the
            first device.
        mask: which arrays to load: booleans, as a tree prefix of the saved tree. The result has
            None in place of arrays that are not loaded.
        ts_specs: must be None; `serialization.run_deserialization` reads files of TensorStore.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        ValueError: a file is damaged.
    """
    _check_specs("load", ts_specs)
    folder, outline, rows = _newest(directory)
    tree = flatten(_built(outline, list(range(len(rows)))))[1]
    places = flatten_axes("load shardings", tree, shardings)
    wanted = flatten_axes("load mask", tree, True if mask is None else mask)
    return _built(
        outline,
        [_read(folder, row, s) if w else None for row, s, w in zip(rows, places, wanted)],
    )


def load_pytreedef(directory: str | os.PathLike) -> Any:
    """The tree of the newest complete checkpoint of a directory, with types in place of arrays.

    Raises:
        FileNotFoundError: there is no complete checkpoint.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as where:
        ...     save({"w": np.zeros(3, np.float32)}, where)
        ...     load_pytreedef(where)
        {'w': ShapeDtypeStruct(shape=(3,), dtype=float32)}
    """
    _, outline, rows = _newest(directory)
    return _built(
        outline, [ShapeDtypeStruct(tuple(r["shape"]), np.dtype(r["dtype"])) for r in rows]
    )


def _newest(directory: str | os.PathLike) -> tuple[Path, Any, list]:
    """The folder of the newest complete checkpoint, its tree and its leaves."""
    found = _checkpoints(Path(directory))
    if not found:
        raise FileNotFoundError(
            f"{directory} has no complete checkpoint. Pass the directory that was given to save."
        )
    manifest = json.loads((found[-1] / _MANIFEST).read_text())
    return found[-1], manifest["tree"], manifest["leaves"]


def _read(folder: Path, row: dict, sharding):
    shape, dtype = tuple(row["shape"]), np.dtype(row["dtype"])
    if sharding is None:
        return as_array(_region(folder, row, [(0, n) for n in shape], dtype))

    def part(index):
        return _region(folder, row, [s.indices(n)[:2] for s, n in zip(index, shape)], dtype)

    return make_array_from_callback(shape, as_sharding(sharding, "load"), part)


def _region(folder: Path, row: dict, bounds: list, dtype) -> np.ndarray:
    """A part of an array, read from the files that overlap it."""
    out = np.empty([b - a for a, b in bounds], dtype)
    for file in row["parts"]:
        whole = [(s, s + n) for s, n in zip(file["start"], file["shape"])]
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, whole)]
        if any(a >= b for a, b in common):
            continue
        raw = (folder / file["file"]).read_bytes()
        if hashlib.blake2b(raw, digest_size=16).hexdigest() != file["digest"]:
            raise ValueError(
                f"{folder / file['file']} is damaged: its digest is not that of the saved data. Restore "
                "it from a copy, or save again."
            )
        value = np.frombuffer(raw, dtype).reshape(file["shape"])
        out[tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(common, bounds)])] = value[
            tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(common, whole)])
        ]
    return out


class PyTreeFuture(Future):
    """The future that `nonblocking_save` and `nonblocking_load` return; `result()` waits.

    `pytree` is the saved or loaded tree, with types in place of arrays.
    """

    def __init__(self, pytree: Any = None):
        super().__init__()
        self.pytree = pytree

    def done(self) -> bool:
        """Whether saving or loading has finished."""
        return super().done()

    def result(self, timeout: float | None = None) -> Any:
        """Wait, and return the loaded tree; an error in the background is raised here."""
        return super().result(timeout)


def _in_background(function: Callable[[], Any], pytree: Any) -> PyTreeFuture:
    future = PyTreeFuture(pytree)

    def run():
        try:
            future.set_result(function())
        except BaseException as e:  # `result()` raises it
            future.set_exception(e)

    threading.Thread(target=run, name="gradix.array_serialization").start()
    return future


def nonblocking_save(
    data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None
) -> PyTreeFuture:
    """As `save`, in a background thread; the arrays may be donated meanwhile.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as where:
        ...     nonblocking_save({"step": 3}, where).result()
        ...     nonblocking_load(where).result()
        {'step': Array(3, dtype=int32)}
    """
    _check_specs("nonblocking_save", ts_specs)
    held = _held(data)
    types = tree_map(lambda x: ShapeDtypeStruct(np.shape(x), as_array(x).aval.dtype), data)
    return _in_background(lambda: _save(data, held, directory, overwrite), types)


def nonblocking_load(
    directory: str | os.PathLike, shardings: Any = None, *, mask: Any = None, ts_specs: Any = None
) -> PyTreeFuture:
    """As `load`, in a background thread."""
    types = load_pytreedef(directory)
    return _in_background(lambda: load(directory, shardings, mask=mask, ts_specs=ts_specs), types)


__dir__ = _own_names(__name__)
