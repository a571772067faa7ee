"""Compiled programs on disk, so that the second run of a script compiles nothing.

There is one file per program, in a directory that only the user can write to. A file consists of a
header, a digest, and XLA's serialization of the executable; it holds no pickle and no Python code.
It is written under a temporary name and then renamed, so a reader sees a complete file or none,
even if a writer is interrupted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
import time
from typing import Any

from gradix._base import config, events
from gradix._base.lazy import lazy_module

hashlib = lazy_module("hashlib")

_MAGIC = b"gradix\x00\x01"
# A header has the magic bytes, the length of the payload, and the digest of key and payload.
_HEADER = len(_MAGIC) + 8 + 32
_SUFFIX = ".xla"
_HOUR, _DAY = 3600.0, 86400.0
_DEFAULT_BYTES = 1 << 30
_OFF = ("off", "0", "false", "no", "none", "disabled")
_options = config.state


def _check_directory(name: str, value: Any) -> str | None:
    if value is False:
        return "off"
    if value is None or value is True or value == "" or str(value).lower() in ("on", "1", "true", "yes"):
        return None
    try:
        return os.fspath(value)
    except TypeError:
        raise ValueError(
            f"option {name} must be 'off', 'on' or a directory; got {value!r} of type {type(value).__name__}."
        ) from None


config.define("gradix_cache", None, _check_directory)
config.define("gradix_cache_max_days", 90)


class Entries:
    """The compiled programs in one directory.

    If the file system fails, a program counts as not found, or is not kept. At most one line is
    logged, and nothing raises unless the option jax_raise_persistent_cache_errors is set.
    """

    def __init__(self, path: str):
        self.path = path
        self._numbers = itertools.count()
        self._complained = False
        self.is_read_only = False
        self._room = 0  # This process may write so many bytes before it sweeps.

    def read(self, key: str) -> bytes | None:
        """The program kept under `key`, or None."""
        try:
            fd = os.open(self._file(key), os.O_RDONLY | _NO_WAIT | _FLAGS)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self.complain(f"cannot be read ({error})")
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or _is_of_another(found):
                return self.reject(key, "is not a file of this user")
            if _may_others_write(found):
                return self.reject(key, "other users can write to")
            if time.time() - found.st_mtime > _DAY:  # For `sweep`, mtime is the time of last use.
                with contextlib.suppress(PermissionError):
                    os.utime(fd if os.utime in os.supports_fd else self._file(key))
            with open(fd, "rb", buffering=0, closefd=False) as f:
                data = f.readall()
        except OSError as error:
            return self.complain(f"cannot be read ({error})")
        finally:
            os.close(fd)
        payload = unpack(key, data)
        return self.reject(key, "is damaged, or not one of ours") if payload is None else payload

    def write(self, key: str, payload: bytes) -> None:
        """Keep a program under `key`."""
        if self.is_read_only:
            return
        temporary = os.path.join(self.path, f".{key}.{os.getpid()}.{next(self._numbers)}.tmp")
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                with open(fd, "wb", buffering=0) as f:
                    _write_all(f, pack(key, payload))
                os.replace(temporary, self._file(key))
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            self.complain(f"cannot be written ({error})")
        else:
            if self._room <= 0:
                self._tidy()
            self._room -= len(payload)

    def reject(self, key: str, why: str) -> None:
        """Remove an invalid entry; its program is compiled and kept again."""
        self.complain(f"holds {key}{_SUFFIX}, which {why}; it is compiled again")
        _remove(self._file(key))

    def complain(self, why: str) -> None:
        """Log a failure; only the first of a process is logged."""
        if _options.jax_raise_persistent_cache_errors:
            raise RuntimeError(f"The compilation cache {self.path} {why}.")
        if not self._complained:
            self._complained = True
            events.warn("cache", "The compilation cache %s %s. GRADIX_CACHE=off turns it off.", self.path, why)

    def sweep(self, max_bytes: int, max_age: float) -> None:
        """Remove entries not used for `max_age` seconds, and the oldest beyond `max_bytes`."""
        now, kept = time.time(), []
        for entry in os.scandir(self.path):
            ours, temporary = (entry.name.endswith(_SUFFIX), entry.name.startswith(".") and entry.name.endswith(".tmp"))
            if not ours and not temporary:
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # Another process has removed it.
                continue
            if now - found.st_mtime > (_HOUR if temporary else max_age):
                _remove(entry.path)
            elif ours:
                kept.append((found.st_mtime, found.st_size, entry.path))
        total = sum([size for _, size, _ in kept])
        if total > max_bytes:
            for _, size, path in sorted(kept):
                _remove(path)
                total -= size
                # Some room is left, so that the next write does not sweep again.
                if total <= 0.8 * max_bytes:
                    break

    def _tidy(self) -> None:
        """Sweep if no process did so for an hour, or if this process has written much."""
        first, self._room = self._room == 0, limit() // 16
        stamp = os.path.join(self.path, ".swept")
        try:
            if first and _age(stamp) < _HOUR:
                return
            os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600))
            os.utime(stamp)
            self.sweep(limit(), _DAY * _options.gradix_cache_max_days)
        except OSError as error:
            self.complain(f"cannot be tidied ({error})")

    def _file(self, key: str) -> str:
        return os.path.join(self.path, key + _SUFFIX)


_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # Opening a pipe would wait for a writer.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def pack(key: str, payload: bytes) -> bytes:
    """The content of an entry's file."""
    return b"".join([_MAGIC, len(payload).to_bytes(8, "little"), _digest(key, payload), payload])


def unpack(key: str, data: bytes) -> bytes | None:
    """The payload of an entry's file; None unless `pack` made exactly these bytes for this key."""
    view = memoryview(data)
    if len(data) < _HEADER or view[:8] != _MAGIC or int.from_bytes(view[8:16], "little") != len(data) - _HEADER:
        return None
    payload = view[_HEADER:]
    return bytes(payload) if view[16:_HEADER] == _digest(key, payload) else None


def _digest(key: str, payload) -> bytes:
    h = hashlib.blake2b(key.encode(), digest_size=32)
    h.update(payload)
    return h.digest()


def _write_all(f, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[f.write(view) :]


def _age(path: str) -> float:
    """The seconds since a file was last written; infinite if there is no file."""
    try:
        return time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return float("inf")


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):  # Another process may have removed it first.
        os.unlink(path)


def _is_of_another(found: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and found.st_uid not in _owners()


def _may_others_write(found: os.stat_result) -> bool:
    return os.name == "posix" and bool(found.st_mode & 0o022)


def _owners() -> tuple[int, ...]:
    """The users whose files may be loaded: this user and root."""
    return os.geteuid(), 0


# -- which directory -------------------------------------------------------------------------------

_opened: dict[str, Entries | None] = {}
told: set[str] = set()  # what listeners were told once since the last `reset`


def current() -> Entries | None:
    """The cache that the options select, or None."""
    asked = _options.gradix_cache
    if not _options.jax_enable_compilation_cache or limit() == 0 or (asked is not None and asked.lower() in _OFF):
        return None
    path = asked or _options.jax_compilation_cache_dir or default_directory()
    if path not in _opened:
        _opened[path] = _open(path, is_default=path == default_directory()) if path else None
    return _opened[path]


def reset() -> None:
    """Forget which directories are open; the next use opens them again."""
    _opened.clear()
    told.clear()


def limit() -> int:
    """The number of bytes that the directory may hold."""
    asked = _options.jax_compilation_cache_max_size
    return _DEFAULT_BYTES if asked is None or asked < 0 else asked


def default_directory() -> str:
    """The user's directory for caches by the rules of the platform; empty where there is none."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        # By the XDG standard a relative path is ignored.
        if not os.path.isabs(base):
            base = os.path.join(home, ".cache")
    return os.path.join(base, "gradix") if os.path.isabs(base) else ""


def _open(path: str, is_default: bool) -> Entries | None:
    """The entries in a directory, which is made if it does not exist.

    Returns None, and logs a line, for a directory that cannot be trusted. Nothing is logged if the
    default directory, which the user did not ask for, cannot be made or written to.
    """
    path = os.path.abspath(os.path.expanduser(path)) if "://" not in path else path
    entries = Entries(path)
    if "://" in path:
        return entries.complain("is not used, because it is not a directory of this machine")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
    except OSError as error:
        return None if is_default else entries.complain(f"cannot be made ({error})")
    if _is_of_another(found):
        return entries.complain("is not used, because it belongs to another user, who could put programs into it")
    if _may_others_write(found):
        return entries.complain("is not used, because other users can write programs into it; chmod go-w forbids that")
    entries.is_read_only = is_default and not os.access(path, os.W_OK)
    return entries
