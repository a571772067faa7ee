"""Arrays written to files of TensorStore while the program goes on."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gradix._api.devices import process_count, process_index
from gradix._api.distributed import client as _client
from gradix.experimental.array_serialization import tensorstore_arrays as _files
from gradix.experimental.array_serialization.tensorstore_arrays import (
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
    get_tensorstore_spec as get_tensorstore_spec,
    is_remote_storage as is_remote_storage,
    run_deserialization as run_deserialization,
    run_serialization as run_serialization,
)

__all__ = [
    "AsyncManager",
    "BarrierTimeoutError",
    "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase",
    "async_deserialize",
    "async_serialize",
    "get_tensorstore_spec",
    "is_remote_storage",
    "run_deserialization",
    "run_serialization",
]

_writes = itertools.count()


def __getattr__(name: str) -> Any:
    if name == "TS_CONTEXT":  # made when it is asked for, since it starts TensorStore
        return _files.context()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class BarrierTimeoutError(Exception):
    """Processes waited for each other too long."""


class AsyncManager:
    """Waits in a thread of its own until files are on disk, and then tells.

    Args:
        timeout_secs: how long processes wait for each other.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        """Raise what has gone wrong in the background, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until everything is on disk, and told; raise what has gone wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def _finish(
        self, commits: Sequence[Any], on_commit_callback: Callable[[], None] | None
    ) -> None:
        number = next(_writes)

        def run():
            try:
                for commit in commits:
                    commit.result()
                self._wait_for_others(f"written/{number}")
                if process_index() == 0 and on_commit_callback is not None:
                    on_commit_callback()
                self._wait_for_others(f"told/{number}")
            except BaseException as e:  # raised where the program waits
                self._error = e

        self._thread = threading.Thread(target=run, name="gradix.array_serialization")
        self._thread.start()

    def _wait_for_others(self, name: str) -> None:
        connection = _client()
        if connection is None or process_count() == 1:
            return
        try:
            connection.wait_at_barrier(f"gradix/arrays/{name}", self._timeout_secs * 1000)
        except Exception as e:
            raise BarrierTimeoutError(
                f"The other processes have not written their parts within {self._timeout_secs} s. {e}"
            ) from None

    def __del__(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # of the interpreter's end
                self._thread.join()


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of such a manager: libraries' own subclasses say how arrays are written and read."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what has gone wrong in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until everything is written."""

    @abc.abstractmethod
    def serialize(
        self, arrays, tensorstore_specs, *, on_commit_callback: Callable[[], None]
    ) -> Any:
        """Write arrays to where the specifications say."""

    @abc.abstractmethod
    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None) -> Any:
        """Read arrays, laid out as the shardings say."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays of all processes while the program goes on, and reads them.

    `serialize` returns once the values are copied; `wait_until_finished` waits for the disk.

    Args:
        timeout_secs: how long processes wait for each other.
    """

    def serialize(
        self,
        arrays,
        tensorstore_specs,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Write arrays to where the specifications say.

        Args:
            on_commit_callback: called by process 0 when the parts of all are on disk.
            transaction: of TensorStore, in which to write.
        """
        self.wait_until_finished()
        commits: list[Any] = []

        async def write() -> None:
            await _files.gathered(
                *[
                    async_serialize(a, s, commit_future=commits, transaction=transaction)
                    for a, s in zip(arrays, tensorstore_specs)
                ]
            )

        asyncio.run(write())
        self._finish(commits, on_commit_callback)

    def serialize_with_paths(
        self,
        arrays: Sequence,
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """As `serialize`, each array to a path."""
        specs = [get_tensorstore_spec(p) for p in paths]
        self.serialize(
            arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction
        )

    def deserialize(
        self,
        shardings: Sequence,
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence | None = None,
        dtypes: Sequence | None = None,
        concurrent_gb: int = 32,
    ) -> list:
        """As `run_deserialization`, once everything is written."""
        self.wait_until_finished()
        return run_deserialization(
            shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb
        )

    def deserialize_with_paths(
        self,
        shardings: Sequence,
        paths: Sequence[str],
        global_shapes: Sequence | None = None,
        dtypes: Sequence | None = None,
        concurrent_gb: int = 32,
    ) -> list:
        """As `deserialize`, each array from a path."""
        specs = [get_tensorstore_spec(p) for p in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
