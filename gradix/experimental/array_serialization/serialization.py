"""Arrays written to files of TensorStore in the background, and read from them."""

from __future__ import annotations

import abc
import asyncio
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gradix._api.devices import process_count, process_index
from gradix._api.distributed import client as _client
from gradix._base.listing import own_names as _own_names
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
    if name == "TS_CONTEXT":  # It is made when it is first used, because that loads TensorStore.
        return _files.context()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class BarrierTimeoutError(Exception):
    """Raised when processes have waited too long for each other.

    Example:
        >>> from gradix.experimental.array_serialization import serialization
        >>> manager = serialization.GlobalAsyncCheckpointManager(timeout_secs=60)
        >>> try:
        ...     manager.wait_until_finished()
        ... except serialization.BarrierTimeoutError:
        ...     print("another process has not written its part in a minute")
    """


class AsyncManager:
    """Waits in a background thread until files are on disk, and then calls the commit callback.

    Args:
        timeout_secs: how long processes wait for each other.

    Example:
        >>> from gradix.experimental.array_serialization import serialization
        >>> manager = serialization.AsyncManager(timeout_secs=60)
        >>> manager.wait_until_finished()
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        """Raise an error that occurred in the background, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until all is on disk and callbacks have run; raise an error of the background."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def _finish(self, commits: Sequence[Any], on_commit_callback: Callable[[], None] | None) -> None:
        number = next(_writes)

        def run():
            try:
                for commit in commits:
                    commit.result()
                self._wait_for_others(f"written/{number}")
                if process_index() == 0 and on_commit_callback is not None:
                    on_commit_callback()
                self._wait_for_others(f"told/{number}")
            except BaseException as e:  # `wait_until_finished` raises it
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
                f"The other processes have not written their parts within {self._timeout_secs} s. Pass a "
                f"larger timeout_secs if they need longer. {e}"
            ) from None

    def __del__(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            # joining fails when the process ends, and no name of the module is there any more then
            try:
                self._thread.join()
            except RuntimeError:
                return


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of a checkpoint manager; subclasses of libraries write and read arrays.

    Example:
        >>> from gradix.experimental.array_serialization import serialization
        >>> class Forgetful(serialization.GlobalAsyncCheckpointManagerBase):
        ...     def check_for_errors(self): ...
        ...     def wait_until_finished(self): ...
        ...     def serialize(self, arrays, tensorstore_specs, *, on_commit_callback):
        ...         on_commit_callback()
        ...     def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None):
        ...         return []
        >>> Forgetful().serialize([], [], on_commit_callback=lambda: print("written"))
        written
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise an error that occurred in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until everything is written."""

    @abc.abstractmethod
    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback: Callable[[], None]) -> Any:
        """Write arrays to the places in the specifications."""

    @abc.abstractmethod
    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None) -> Any:
        """Read arrays with the given shardings."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays of all processes in the background, and reads them.

    `serialize` returns once the values are copied; `wait_until_finished` waits for the disk.

    Args:
        timeout_secs: how long processes wait for each other.

    Example:
        >>> import tempfile
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.array_serialization import serialization
        >>> manager, x = serialization.GlobalAsyncCheckpointManager(), jnp.arange(3)
        >>> with tempfile.TemporaryDirectory() as folder:                         # doctest: +SKIP
        ...     manager.serialize_with_paths([x], [f"{folder}/x"])
        ...     print(manager.deserialize_with_paths([x.sharding], [f"{folder}/x"]))
        [Array([0, 1, 2], dtype=int32)]
    """

    def serialize(
        self,
        arrays,
        tensorstore_specs,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Write arrays to the places in the specifications.

        Args:
            on_commit_callback: process 0 calls it when the parts of all processes are on disk.
            transaction: the TensorStore transaction in which to write.
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
        """As `serialize`, but writes each array to a path."""
        specs = [get_tensorstore_spec(p) for p in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self,
        shardings: Sequence,
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence | None = None,
        dtypes: Sequence | None = None,
        concurrent_gb: int = 32,
    ) -> list:
        """As `run_deserialization`, after waiting until all is written."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self,
        shardings: Sequence,
        paths: Sequence[str],
        global_shapes: Sequence | None = None,
        dtypes: Sequence | None = None,
        concurrent_gb: int = 32,
    ) -> list:
        """As `deserialize`, but reads each array from a path."""
        specs = [get_tensorstore_spec(p) for p in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


__dir__ = _own_names(__name__)
