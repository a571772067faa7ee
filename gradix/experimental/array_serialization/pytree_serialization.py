"""Saves trees of arrays atomically as checkpoints in a directory, and loads them over any mesh.

A checkpoint is a folder with one file per part, and a manifest that lists the files with their
digests. All processes write it under a temporary name, and the first process renames it to a number
when all parts are on disk and have been read back. So a folder named by a number is complete, even
if a process is stopped. Saves into one directory happen one after another, also those of several
processes.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from gradix._api.array_assembly import make_array_from_callback
from gradix._api.devices import process_count, process_index
from gradix._api.distributed import client as _client
from gradix._api.placing import as_sharding
from gradix._api.structs import ShapeDtypeStruct
from gradix._base import config
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import keystr, tree_flatten_with_path
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dtypes import SUPPORTED, is_extended
from gradix.experimental.array_serialization import _swapping
from gradix.experimental.array_serialization._manifest import (
    MANIFEST as _MANIFEST,
    Checkpoint as _Checkpoint,
    Leaf as _Leaf,
    Replaced as _Replaced,
    built as _built,
    encoded as _encoded,
    file_digest as _file_digest,
    outline_of as _outline_of,
    part_digest as _part_digest,
)

__all__ = ["PyTreeFuture", "load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]

_WAIT_MS = 600_000
_ATTEMPTS = 100  # to load a checkpoint, while others are put in its place
_saves = itertools.count()


def save(data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None) -> None:
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
        OSError: the disk is full, or the directory cannot be written. The older checkpoint stays.

    Example:
        >>> import tempfile, gradix, gradix.numpy as jnp
        >>> with tempfile.TemporaryDirectory() as where:
        ...     save({"w": jnp.arange(3.0)}, where)
        ...     load(where)
        {'w': Array([0., 1., 2.], dtype=float32)}
    """
    _check_specs("save", ts_specs)
    _Save(data, directory, overwrite).run()


def _check_specs(what: str, ts_specs: Any) -> None:
    if ts_specs is not None:
        raise NotImplementedError(
            f"{what}: ts_specs must be None, because these checkpoints are not files of TensorStore. Use "
            "serialization.run_serialization and run_deserialization for those."
        )


def _folder(what: str, directory: str | os.PathLike) -> Path:
    try:
        return Path(directory)
    except TypeError:
        raise TypeError(
            f"{what}: directory must be the path of a folder, a str or Path, got a {type(directory).__name__}."
        ) from None


class _Save:
    """A save in its place in the queue of the directory, with the values at the time of the call."""

    def __init__(self, data: Any, directory: str | os.PathLike, overwrite: bool):
        self.root, self.overwrite = _folder("save", directory), overwrite
        self.outline = _outline_of(data)
        self.types, self.parts = _held(data)
        self.number = next(_saves)
        self.turn = _swapping.Turn(directory)

    def run(self) -> None:
        """Write the checkpoint, and remove the older ones."""
        is_first = process_index() == 0
        with ExitStack() as opened:
            opened.enter_context(self.turn)
            self.root.mkdir(parents=True, exist_ok=True)
            if is_first:
                lock = opened.enter_context(_swapping.locked(self.root))
            folder = self._begin(bool(lock)) if is_first else self._told()
            try:
                rows = _write_parts(self.parts, folder)
                _write(folder / f"parts-{process_index()}.json", json.dumps(rows).encode())
                _wait(f"written-{self.number}")
                if is_first:
                    self._finish(folder)
            except BaseException:
                if is_first:
                    _swapping.remove(folder)
                raise
            _wait(f"done-{self.number}")

    def _begin(self, is_locked: bool) -> Path:
        """Make the temporary folder, and tell the other processes of it."""
        before = _swapping.checkpoints(self.root)
        if before and not self.overwrite:
            self._tell("")
            raise self._refusal()
        _swapping.sweep(self.root, is_locked)
        folder = _swapping.temporary_folder(self.root)
        self._tell(folder.name)
        return folder

    def _tell(self, name: str) -> None:
        connection = _client()
        if connection is not None and process_count() > 1:
            connection.key_value_set(f"gradix/save/{self.number}", f"folder {name}")

    def _told(self) -> Path:
        connection = _client()
        name = connection.blocking_key_value_get(f"gradix/save/{self.number}", _WAIT_MS)[7:]
        if not name:
            raise self._refusal()
        return self.root / name

    def _refusal(self) -> ValueError:
        found = _swapping.checkpoints(self.root)
        return ValueError(
            f"{self.root} has a checkpoint already, {found[-1].name if found else 'of now'}. Pass "
            "overwrite=True to replace it."
        )

    def _finish(self, folder: Path) -> None:
        """Write the manifest, verify the checkpoint, and put it in the place of the older ones."""
        listed: dict[str, Any] = {}
        for part in sorted(folder.glob("parts-*.json")):
            for key, files in json.loads(part.read_text()).items():
                listed.setdefault(key, []).extend(files)
            part.unlink()
        leaves = [
            {"path": p, "shape": list(t.shape), "dtype": str(t.dtype), "parts": listed.get(str(i), [])}
            for i, (p, t) in enumerate(self.types)
        ]
        _write(folder / _MANIFEST, _encoded(self.outline, leaves))
        _swapping.sync(folder)
        with _Checkpoint(folder) as written:
            written.check_sizes()
        path = _swapping.publish(self.root, folder)
        for old in _swapping.checkpoints(self.root):
            if int(old.name) < int(path.name):
                _swapping.remove(old)


def _held(data: Any) -> tuple[list[tuple[str, ShapeDtypeStruct]], list]:
    """The path and the type of each leaf, and the parts on the devices of this process.

    A part is the number of its leaf, its start, and its value; one that several devices hold occurs
    once. The values stay valid if the arrays are donated.
    """
    types, parts = [], []
    for i, (path, x) in enumerate(tree_flatten_with_path(data)[0]):
        array = _saveable(x, keystr(path))
        aval = array.aval
        types.append((keystr(path), ShapeDtypeStruct(aval.shape, aval.dtype)))
        alone = aval.place is None or aval.place.device is not None
        for shard in array.global_shards:  # type: ignore[attr-defined]
            if shard.data is None or shard.replica_id or (alone and process_index()):
                continue
            starts = [s.indices(n)[0] for s, n in zip(shard.index, aval.shape)]
            parts.append((i, starts, np.asarray(shard.data)))
    return types, parts


def _saveable(x: Any, path: str) -> ArrayImpl:
    try:
        array = as_array(x)
    except TypeError as e:
        raise TypeError(f"save takes trees of arrays and numbers. {e}") from None
    if is_extended(array.aval.dtype):
        raise TypeError("arrays of random keys cannot be saved; save gradix.random.key_data(keys).")
    if type(array) is not ArrayImpl or array.aval.dtype not in SUPPORTED:
        raise TypeError(
            f"save: data{path} is {array.aval}, which has no values that a file can keep. Save outside of "
            "traced functions, and leave out tangents of integers."
        )
    return array


def _write_parts(held: list, folder: Path) -> dict[str, list]:
    """Write parts, and read them back; the rows of the manifest, by the number of the leaf."""
    out: dict[str, list] = {}
    for count, (i, starts, value) in enumerate(held):
        file = f"{i}-{process_index()}-{count}.bin"
        raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        digest = _part_digest(raw)
        _write(folder / file, raw)
        if _file_digest(folder / file) != digest:
            raise OSError(
                f"{folder / file} was written, and reads as something else. The disk may be failing; save "
                "to another one. The checkpoint before was kept."
            )
        row = {"file": file, "start": starts, "shape": list(value.shape), "digest": digest}
        out.setdefault(str(i), []).append(row)
    return out


def _write(path: Path, data: Any) -> None:
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _wait(name: str) -> None:
    connection = _client()
    if connection is not None and process_count() > 1:
        connection.wait_at_barrier(f"gradix/save/{name}", _WAIT_MS)


def load(directory: str | os.PathLike, shardings: Any = None, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """Load the newest complete checkpoint of a directory.

    Args:
        directory: the directory given to `save`.
        shardings: the shardings of the arrays, as a tree prefix of the saved tree; None for the
            first device.
        mask: which arrays to load: booleans, as a tree prefix of the saved tree. The result has
            None in place of arrays that are not loaded.
        ts_specs: must be None; `serialization.run_deserialization` reads files of TensorStore.

    Whatever is read is checked: digests, the names and sizes of files, that the parts of an array
    cover it, and types. A digest is not a signature: it detects damage, not a forger.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        ValueError: a file is damaged, missing, or not one that `save` writes; or integers of 64
            bits do not fit into 32 bits while jax_enable_x64 is off.
        OSError: a file cannot be read.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import pytree_serialization
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pytree_serialization.save({"w": jnp.arange(3)}, folder)
        ...     print(pytree_serialization.load(folder))
        {'w': Array([0, 1, 2], dtype=int32)}
    """
    _check_specs("load", ts_specs)

    def read(opened: _Checkpoint) -> Any:
        places = opened.spread("load shardings", shardings)
        wanted = opened.spread("load mask", True if mask is None else mask)
        rows = zip(opened.leaves, places, wanted)
        return opened.tree([_read(opened, leaf, s) if w else None for leaf, s, w in rows])

    return _with_newest(directory, read)


def load_pytreedef(directory: str | os.PathLike) -> Any:
    """The tree of the newest complete checkpoint of a directory, with types in place of arrays.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        ValueError: the manifest is damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as where:
        ...     save({"w": np.zeros(3, np.float32)}, where)
        ...     load_pytreedef(where)
        {'w': ShapeDtypeStruct(shape=(3,), dtype=float32)}
    """
    return _with_newest(directory, lambda c: c.tree([ShapeDtypeStruct(x.shape, x.dtype) for x in c.leaves]))


def _with_newest(directory: str | os.PathLike, read: Callable[[_Checkpoint], Any]) -> Any:
    """What `read` returns for the newest complete checkpoint, which may be replaced meanwhile."""
    root = _folder("load", directory)
    for attempt in range(_ATTEMPTS):
        found = _swapping.checkpoints(root)
        if found:
            try:
                with _Checkpoint(found[-1]) as opened:
                    out = read(opened)
            except _Replaced:
                continue
            _tidy(root)
            return out
        # While a checkpoint is put in the place of another, a listing may miss both.
        if attempt > 2 or not root.is_dir() or not os.listdir(root):
            raise FileNotFoundError(
                f"{directory} has no complete checkpoint. Pass the directory that was given to save."
            )
        time.sleep(0.01)
    raise OSError(
        f"{directory}: its checkpoints were replaced {_ATTEMPTS} times while they were being read. Load "
        "when nothing is saved so often."
    )


def _tidy(root: Path) -> None:
    """Remove what stopped processes left, unless something is being saved."""
    try:
        if _swapping.has_leftovers(root):
            with _swapping.locked(root, wait=False) as got:
                if got:
                    _swapping.sweep(root, True)
    except OSError:  # The directory may only be read.
        pass


def _read(opened: _Checkpoint, leaf: _Leaf, sharding: Any) -> Any:
    known: dict[str, np.ndarray] = {}

    def part(index):
        bounds = [s.indices(n)[:2] for s, n in zip(index, leaf.shape)]
        return _fitting(opened.region(leaf, bounds, known), leaf)

    if sharding is None:
        return as_array(part([slice(None)] * len(leaf.shape)))
    return make_array_from_callback(leaf.shape, as_sharding(sharding, "load"), part)


def _fitting(value: np.ndarray, leaf: _Leaf) -> np.ndarray:
    """The value, if its integers are not cut to 32 bits.

    Raises:
        ValueError: they would be.
    """
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8 and not config.state.jax_enable_x64:
        info = np.iinfo(f"{value.dtype.kind}4")
        if value.size and not (info.min <= value.min() and value.max() <= info.max):
            raise ValueError(
                f"load: {leaf.path} was saved as {leaf.dtype} and has values that {info.dtype} cannot hold. Enable "
                "the option jax_enable_x64."
            )
    return value


class PyTreeFuture(Future):
    """The future that `nonblocking_save` and `nonblocking_load` return; `result()` waits.

    `pytree` is the saved or loaded tree, with types in place of arrays.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import pytree_serialization as p
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     future = p.nonblocking_save({"w": jnp.arange(3)}, f"{folder}/state")
        ...     print(type(future).__name__, future.pytree, future.result())
        PyTreeFuture {'w': ShapeDtypeStruct(shape=(3,), dtype=int32)} None
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
            result = function()
        except BaseException as e:  # `result()` raises it
            future.set_exception(e)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="gradix.array_serialization").start()
    return future


def nonblocking_save(
    data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None
) -> PyTreeFuture:
    """As `save`, in a background thread; the arrays may be donated meanwhile.

    Saves into one directory are written in the order of the calls, so that the last one stays.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as where:
        ...     nonblocking_save({"step": 3}, where).result()
        ...     nonblocking_load(where).result()
        {'step': Array(3, dtype=int32)}
    """
    _check_specs("nonblocking_save", ts_specs)
    planned = _Save(data, directory, overwrite)
    try:
        return _in_background(planned.run, _built(planned.outline, [t for _, t in planned.types]))
    except BaseException:  # The thread could not be started.
        planned.turn.pass_on()
        raise


def nonblocking_load(
    directory: str | os.PathLike, shardings: Any = None, *, mask: Any = None, ts_specs: Any = None
) -> PyTreeFuture:
    """As `load`, in a background thread.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import pytree_serialization
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pytree_serialization.save({"w": jnp.arange(3)}, folder)
        ...     print(pytree_serialization.nonblocking_load(folder).result())
        {'w': Array([0, 1, 2], dtype=int32)}
    """
    types = load_pytreedef(directory)
    return _in_background(lambda: load(directory, shardings, mask=mask, ts_specs=ts_specs), types)


__dir__ = _own_names(__name__)
