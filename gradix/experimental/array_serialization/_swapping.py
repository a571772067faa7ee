"""The swap of checkpoints in a directory: turns, locks, temporary folders, and what stopped processes left.

A save writes into a folder with a name of its own, and renames it to the next number, which fails if
another process took that number. So saves cannot harm each other even without locks. Locks of the
operating system, which end with their process, tell in addition what nobody owns any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has none: saves of several processes are then not put in turn.
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
_LOCK = ".lock"
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_LEFTOVER = re.compile(r"\.[0-9]+(?:\.(?P<host>[\w-]+)\.(?P<pid>[0-9]+)\.\w+)?\.(?:tmp|old)", re.ASCII)
# NFS gives EBADF for exclusive locks of files that may only be read.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_DAY = 86400.0


# -- turns of the threads of this process ----------------------------------------------------------


class Turn:
    """A place in the queue of a directory; as a context, it waits for the turns before."""

    def __init__(self, directory: str | os.PathLike):
        self._done, self._key = threading.Event(), os.path.realpath(directory)
        with _mutex:
            self._before, _last[self._key] = _last.get(self._key), self

    def __enter__(self) -> Turn:
        try:
            if self._before is not None:
                self._before._done.wait()
        except BaseException:
            self.pass_on()
            raise
        self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        self.pass_on()

    def pass_on(self) -> None:
        """Let the next one in the queue begin."""
        self._done.set()
        with _mutex:
            if _last.get(self._key) is self:
                del _last[self._key]


_mutex = threading.Lock()
_last: dict[str, Turn] = {}
_held: set[int] = set()  # descriptors of locked files


def _forget() -> None:
    """Give up what belongs to the parent process; its locks would last as long as this child."""
    global _mutex
    _mutex = threading.Lock()
    _last.clear()
    for fd in list(_held):
        with contextlib.suppress(OSError):
            os.close(fd)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# -- locks between processes -----------------------------------------------------------------------


def lock_file(fd: int, *, shared: bool = False, wait: bool = False) -> bool | None:
    """Lock an open file until it is unlocked or the process ends.

    Returns:
        Whether it was locked; None if the file system has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as e:
        if e.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN):
            return False
        if e.errno in _WITHOUT_LOCKS:
            return None
        raise
    _held.add(fd)
    return True


def unlock_file(fd: int) -> None:
    """Unlock a file and close it, also if a forked process has its descriptor."""
    with contextlib.suppress(OSError):
        if fcntl is not None and fd in _held:
            fcntl.flock(fd, fcntl.LOCK_UN)
    _held.discard(fd)
    os.close(fd)


@contextlib.contextmanager
def locked(root: Path, *, wait: bool = True) -> Iterator[bool | None]:
    """Hold the lock of a directory; yields what `lock_file` returns."""
    while True:
        fd = _opened_lock(root / _LOCK)
        try:
            got = lock_file(fd, wait=wait)
            if got and not _is_at(fd, root / _LOCK):
                continue  # The directory was emptied while this process waited.
            yield got
            return
        finally:
            unlock_file(fd)


def _opened_lock(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
    except PermissionError:  # Another user made it. Most file systems lock what may only be read.
        if not path.exists():
            raise
        fd = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    except OSError as e:
        if e.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        fd = -1
    if fd < 0 or not stat.S_ISREG(os.fstat(fd).st_mode):
        if fd >= 0:
            os.close(fd)
        raise OSError(
            errno.EINVAL, "the lock of the checkpoints must be a regular file; remove it, and save again", str(path)
        )
    return fd


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


# -- folders ---------------------------------------------------------------------------------------


def checkpoints(root: Path) -> list[Path]:
    """The complete checkpoints of a directory, oldest first."""
    try:
        names = os.listdir(root)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [root / n for n in names if _NUMBER.fullmatch(n) and (root / n / MANIFEST).exists()]
    return sorted(found, key=lambda p: (int(p.name), p.name))


def temporary_folder(root: Path) -> Path:
    """A new folder for a save, of a name that no other save has and that tells whose it is."""
    path = root / _hidden(_next_number(root), "tmp")
    path.mkdir()
    return path


def _next_number(root: Path) -> str:
    before = [int(n) for n in os.listdir(root) if _NUMBER.fullmatch(n)]
    return f"{max(before, default=-1) + 1:08d}"


def _hidden(name: str, kind: str) -> str:
    return f".{name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.{kind}"


def _host() -> str:
    return re.sub(r"[^\w-]", "-", socket.gethostname(), flags=re.ASCII)[:64] or "-"


def publish(root: Path, temporary: Path) -> Path:
    """Rename a temporary folder to the next number, and return its path."""
    while True:
        path = root / _next_number(root)
        if not _NUMBER.fullmatch(path.name):
            raise ValueError(
                f"{root} has a checkpoint of the greatest number there may be. Save into another directory."
            )
        try:
            temporary.rename(path)
        except OSError as e:  # A process without a lock took the number.
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            continue
        sync(root)
        return path


def remove(path: Path) -> None:
    """Remove a checkpoint that is not being loaded; it has no number from the first moment on."""
    try:
        fd = os.open(path / MANIFEST, os.O_RDONLY | _NO_FOLLOW)
    except OSError:
        fd = -1
    try:
        if fd >= 0 and lock_file(fd) is False:
            return  # A later save removes it.
        if _NUMBER.fullmatch(path.name):
            hidden = path.with_name(_hidden(path.name, "old"))
            path.rename(hidden)
            path = hidden
        shutil.rmtree(path, ignore_errors=True)
    except OSError:  # It has gone already, or belongs to another user.
        pass
    finally:
        if fd >= 0:
            unlock_file(fd)


def sweep(root: Path, is_locked: bool) -> None:
    """Remove what stopped processes left.

    Whoever holds the lock knows that no other process is saving. Without locks, an owner on this
    machine is looked up, and leftovers of other machines are removed after a day.
    """
    for name in os.listdir(root):
        found = _LEFTOVER.fullmatch(name)
        if found is None:
            continue
        # Saves of earlier versions took no lock, and their folders name no owner.
        told = found["host"] is not None
        if (is_locked and told) or _is_abandoned(root / name, found["host"], found["pid"]):
            remove(root / name)


def has_leftovers(root: Path) -> bool:
    """Whether there are folders that a save or a stopped process hides."""
    return any(_LEFTOVER.fullmatch(n) for n in os.listdir(root))


def _is_abandoned(path: Path, host: str | None, pid: str | None) -> bool:
    if host == _host() and pid is not None:
        return not _is_running(int(pid))
    try:
        return time.time() - path.stat().st_mtime > _DAY
    except OSError:
        return False


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # It is of another user.
        return True
    return True


def sync(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
