"""The format of checkpoints: a manifest that lists a tree, its leaves and their files, each with a digest.

Nothing that is read is trusted: names are those of regular files in the folder, sizes are compared
before memory is allocated, and the parts of a leaf must cover it once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np

from gradix._base.tree import flatten_axes, tree_flatten as flatten
from gradix._core.dtypes import SUPPORTED
from gradix.experimental.array_serialization._swapping import MANIFEST, lock_file, unlock_file

_FORMAT = 2
_PART = {2: b"gradix part 2", 1: b""}  # what the digests of parts of a format are salted with
_MAX_MANIFEST = 1 << 30
_MAX_DEPTH = 256
_FILE = re.compile(r"[0-9]+(?:-[0-9_]*)+\.bin", re.ASCII)
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DTYPES = {str(d): d for d in SUPPORTED}


class Replaced(Exception):
    """The checkpoint is being removed; a newer one is there."""


def damaged(path: str | os.PathLike, why: str) -> ValueError:
    """The error that says what is wrong with a file of a checkpoint."""
    return ValueError(f"{path} is damaged: {why}. Restore the checkpoint from a copy, or save again.")


def part_digest(raw: Any, format: int = _FORMAT) -> str:
    """The digest of the bytes of a part."""
    return hashlib.blake2b(raw, digest_size=16, person=_PART[format]).hexdigest()


def file_digest(path: Path) -> str:
    """The digest of the bytes of a part on disk."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, _of_part).hexdigest()  # type: ignore[arg-type]


def _of_part():
    return hashlib.blake2b(digest_size=16, person=_PART[_FORMAT])


def encoded(outline: Any, leaves: list[dict]) -> bytes:
    """The bytes of a manifest."""
    content = {"format": _FORMAT, "tree": outline, "leaves": leaves}
    return json.dumps({**content, "digest": _digest(content)}).encode()


def _digest(content: dict) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16, person=b"gradix manifest").hexdigest()


# -- trees -----------------------------------------------------------------------------------------


def outline_of(tree: Any) -> Any:
    """A tree of dicts, lists and tuples as JSON, with a number in place of each leaf.

    Raises:
        TypeError: the tree has other nodes, or keys that are not strings.
    """
    counter = itertools.count()

    def walk(node, depth):
        if depth > _MAX_DEPTH:
            raise ValueError(f"save: data is nested more than {_MAX_DEPTH} levels deep. Flatten it first.")
        if isinstance(node, dict):
            if not all(isinstance(k, str) for k in node):
                raise TypeError(f"save: the keys of dicts must be strings, got {list(node)}. Convert them first.")
            return {"dict": {k: walk(node[k], depth + 1) for k in sorted(node)}}
        if type(node) in (list, tuple):
            return {type(node).__name__: [walk(v, depth + 1) for v in node]}
        if node is None:
            return {"none": 0}
        leaves = flatten(node)[0]
        if len(leaves) != 1 or leaves[0] is not node:
            raise TypeError(
                f"save: data must be a tree of dicts, lists and tuples, got a {type(node).__name__}. "
                "Convert it to one of them first."
            )
        return {"leaf": next(counter)}

    return walk(tree, 0)


def built(outline: Any, leaves: list) -> Any:
    """The tree of an outline, with these leaves."""
    ((kind, value),) = outline.items()
    if kind == "dict":
        return {k: built(v, leaves) for k, v in value.items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)([built(v, leaves) for v in value])
    return None if kind == "none" else leaves[value]


def _check_outline(node: Any, numbers: list[int], depth: int = 0) -> None:
    """Collect the numbers of the leaves.

    Raises:
        ValueError: it is not the outline of a tree.
    """
    if depth > _MAX_DEPTH or type(node) is not dict or len(node) != 1:
        raise ValueError("its tree has a node that is none")
    ((kind, value),) = node.items()
    if kind == "dict" and type(value) is dict:
        children = list(value.values())
    elif kind in ("list", "tuple") and type(value) is list:
        children = value
    elif kind == "leaf" and type(value) is int:
        numbers.append(value)
        return
    elif kind == "none" and value == 0:
        return
    else:
        raise ValueError(f"its tree has a node of the unknown kind {kind!r:.40}")
    for child in children:
        _check_outline(child, numbers, depth + 1)


# -- rows of leaves --------------------------------------------------------------------------------


class Part:
    """A part of an array: its file, where it begins, its shape, and the digest of its bytes."""

    __slots__ = ("file", "start", "shape", "digest")

    def __init__(self, row: Any):
        if type(row) is not dict or not {"file", "start", "shape", "digest"} <= row.keys():
            raise ValueError("a part has no file, start, shape or digest")
        self.file, self.digest = row["file"], row["digest"]
        self.start, self.shape = _sizes(row["start"], "start"), _sizes(row["shape"], "shape")
        if type(self.file) is not str or not _FILE.fullmatch(self.file):
            raise ValueError(f"{self.file!r:.80} is not the name of a part, such as '0-0.bin'")
        if type(self.digest) is not str:
            raise ValueError(f"the digest of {self.file} is not a string")


class Leaf:
    """An array of a checkpoint: its path in the tree, shape, dtype and parts."""

    __slots__ = ("path", "shape", "dtype", "parts")

    def __init__(self, row: Any):
        if type(row) is not dict or not {"path", "shape", "dtype", "parts"} <= row.keys():
            raise ValueError("a leaf has no path, shape, dtype or parts")
        self.path, self.shape = row["path"], _sizes(row["shape"], "shape")
        if type(self.path) is not str or type(row["parts"]) is not list:
            raise ValueError("the path of a leaf is not a string, or its parts are not a list")
        dtype = _DTYPES.get(row["dtype"]) if type(row["dtype"]) is str else None
        if dtype is None:
            raise ValueError(f"{self.path:.80} has the unknown dtype {row['dtype']!r:.40}")
        self.dtype, self.parts = dtype, [Part(p) for p in row["parts"]]
        if math.prod([n for n in self.shape if n]) * dtype.itemsize >= 1 << 63:
            raise ValueError(f"{self.path:.80} has the shape {self.shape}, which no array can have")
        self._check_coverage()

    def _check_coverage(self) -> None:
        """Check that the parts form a grid that covers the array, as those of a sharding do."""
        parts = [p for p in self.parts if 0 not in p.shape]
        if any(len(p.start) != len(self.shape) or len(p.shape) != len(self.shape) for p in self.parts):
            raise ValueError(f"the parts of {self.path:.80} are not of its rank, {len(self.shape)}")
        if 0 in self.shape and not parts:
            return
        count = 1
        for axis, size in enumerate(self.shape):
            end, intervals = 0, sorted({(p.start[axis], p.shape[axis]) for p in parts})
            for start, length in intervals:
                end = end + length if start == end else -1
            if end != size:
                break
            count *= len(intervals)
        else:
            if len(parts) == count == len({p.start for p in parts}):
                return
        raise ValueError(f"the parts of {self.path:.80} do not cover its shape {self.shape} exactly once")


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    if type(value) is not list or len(value) > 64 or not all(type(n) is int and 0 <= n < 1 << 62 for n in value):
        raise ValueError(f"the {what} {value!r:.60} is not a list of sizes")
    return tuple(value)


# -- open checkpoints ------------------------------------------------------------------------------


class Checkpoint(contextlib.AbstractContextManager):
    """A complete checkpoint, opened so that it is not removed before it is closed.

    Raises:
        Replaced: it is being removed.
        ValueError: the manifest is damaged.
    """

    def __init__(self, path: Path):
        self.path, self._opened = path, contextlib.ExitStack()
        self._folder: int | None = None
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _open(self) -> None:
        if os.open in os.supports_dir_fd:
            try:
                self._folder = os.open(self.path, _OPEN | os.O_DIRECTORY)
            except FileNotFoundError:
                raise Replaced from None
            except OSError as e:
                if e.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                raise damaged(self.path, "it is a symbolic link or a file, not a folder of its own") from None
            self._opened.callback(os.close, self._folder)
        fd, size = self._file(MANIFEST)
        self._opened.callback(unlock_file, fd)
        if lock_file(fd, shared=True) is False:
            raise Replaced
        if size > _MAX_MANIFEST:
            raise damaged(self.path / MANIFEST, f"it has {size} bytes")
        self._decode(_content(fd, size, self.path / MANIFEST).tobytes())

    def _file(self, name: str) -> tuple[int, int]:
        """Open a regular file of the folder; its descriptor and size."""
        path = self.path / name
        try:
            fd = os.open(path, _OPEN) if self._folder is None else os.open(name, _OPEN, dir_fd=self._folder)
        except FileNotFoundError:
            if name == MANIFEST or not self.path.exists():
                raise Replaced from None
            raise damaged(path, "it is missing") from None
        except OSError as e:
            if os.path.islink(path) or not os.path.isfile(path):
                raise damaged(path, "it is not a regular file") from None
            raise OSError(e.errno, f"a file of the checkpoint cannot be read ({e.strerror})", str(path)) from None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise damaged(path, "it is not a regular file")
        return fd, found.st_size

    def _decode(self, raw: bytes) -> None:
        path = self.path / MANIFEST
        try:
            top = json.loads(raw)
            if type(top) is not dict or not {"tree", "leaves"} <= top.keys():
                raise ValueError("it is not a JSON object with a tree and leaves")
            self._format = top.get("format", 1)
            if type(self._format) is not int or self._format not in (1, _FORMAT):
                raise ValueError(f"its format {self._format!r:.40} is not one that this version reads (1, 2)")
            if self._format == _FORMAT:
                content = {k: top[k] for k in ("format", "tree", "leaves")}
                if top.get("digest") != _digest(content):
                    raise ValueError("its digest is not that of its content")
            self._check(top["tree"], top["leaves"])
        except RecursionError:
            raise damaged(path, "it is nested too deeply") from None
        except ValueError as e:
            raise damaged(path, str(e).rstrip(".")) from None

    def _check(self, outline: Any, rows: Any) -> None:
        numbers: list[int] = []
        _check_outline(outline, numbers)
        if type(rows) is not list or sorted(numbers) != list(range(len(rows))):
            raise ValueError("its tree does not have the leaves that it lists")
        self.outline, self.leaves = outline, [Leaf(r) for r in rows]
        files = [p.file for leaf in self.leaves for p in leaf.parts]
        if len(set(files)) != len(files):
            # An array without elements, divided over devices, has parts of one name in format 1.
            files = [p.file for leaf in self.leaves for p in leaf.parts if 0 not in p.shape]
            if len(set(files)) != len(files):
                raise ValueError("it names one file for several parts")

    def tree(self, leaves: list) -> Any:
        """The tree with these leaves."""
        return built(self.outline, leaves)

    def spread(self, name: str, prefix: Any) -> list:
        """The leaves of a tree prefix, one for each leaf of the checkpoint in the order of `leaves`."""
        numbers, definition = flatten(built(self.outline, list(range(len(self.leaves)))))
        out = [None] * len(numbers)
        for number, value in zip(numbers, flatten_axes(name, definition, prefix)):
            out[number] = value
        return out

    def check_sizes(self) -> None:
        """Check that all parts are there, and are as long as they should be."""
        for leaf in self.leaves:
            for part in leaf.parts:
                os.close(self._part_file(leaf, part))

    def _part_file(self, leaf: Leaf, part: Part) -> int:
        fd, size = self._file(part.file)
        wanted = math.prod(part.shape) * leaf.dtype.itemsize
        if size != wanted:
            os.close(fd)
            raise damaged(
                self.path / part.file,
                f"it has {size} bytes, and the part {part.shape} of {leaf.path:.80} in {leaf.dtype} has {wanted}",
            )
        return fd

    def part(self, leaf: Leaf, part: Part) -> np.ndarray:
        """The values of a part."""
        path = self.path / part.file
        fd = self._part_file(leaf, part)
        try:
            raw = _content(fd, math.prod(part.shape) * leaf.dtype.itemsize, path)
        finally:
            os.close(fd)
        if part_digest(raw, self._format) != part.digest:
            raise damaged(path, "its digest is not that of the saved data")
        if leaf.dtype == np.bool_ and raw.max(initial=0) > 1:
            raise damaged(path, "it has other values than the booleans 0 and 1")
        return raw.view(leaf.dtype).reshape(part.shape)

    def region(self, leaf: Leaf, bounds: list[tuple[int, int]], known: dict[str, np.ndarray]) -> np.ndarray:
        """The values within bounds, from the parts that overlap them.

        Args:
            leaf: the array.
            bounds: the start and the end of each axis.
            known: the parts read before, to which those read now are added.
        """
        overlaps = []
        for part in leaf.parts:
            whole = [(s, s + n) for s, n in zip(part.start, part.shape)]
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, whole)]
            if all(a < b for a, b in common):
                overlaps.append((part, whole, common))
        for part, _, _ in overlaps:  # before any memory of the size declared is allocated
            if part.file not in known:
                known[part.file] = self.part(leaf, part)
        if len(overlaps) == 1 and overlaps[0][1] == bounds:
            return known[overlaps[0][0].file]
        out = np.empty([b - a for a, b in bounds], leaf.dtype)
        for part, whole, common in overlaps:
            out[_slices(common, bounds)] = known[part.file][_slices(common, whole)]
        return out


def _slices(common: list, origin: list) -> tuple[slice, ...]:
    return tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(common, origin)])


def _content(fd: int, size: int, path: Path) -> np.ndarray:
    """The bytes of an open file, which must be as many as its size was."""
    out = np.empty(size, np.uint8)
    view, at = out.data, 0
    with open(fd, "rb", buffering=0, closefd=False) as f:
        while at < size:
            count = f.readinto(view[at:])
            if not count:
                raise damaged(path, f"it ends after {at} of {size} bytes")
            at += count
    return out
