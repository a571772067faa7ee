"""Managers of checkpoints that write while the program goes on."""

from __future__ import annotations

import abc
import itertools
import threading
from collections.abc import Callable
from typing import Any

from gradix._api.devices import process_count, process_index
from gradix._api.distributed import client as _client
from gradix.experimental.array_serialization.tensorstore_arrays import (
    get_tensorstore_spec as get_tensorstore_spec,
    is_remote_storage as is_remote_storage,
    run_deserialization as run_deserialization,
    run_serialization as run_serialization,
    writes as _writes,
)

_commits = itertools.count()


class BarrierTimeoutError(Exception):
    """Processes waited for each other too long."""


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


class AsyncManager:
    """What waits in a thread of its own for what is being written.

    Args:
        timeout_secs: how long processes wait for each other.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout = timeout_secs
        self._futures: list = []
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _add_futures(self, futures) -> None:
        self._futures = list(futures)

    def _start_async_commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        number = next(_commits)
        self._thread = threading.Thread(target=self._commit, args=(number, on_commit_callback))
        self._thread.start()

    def _commit(self, number: int, on_commit_callback: Callable[[], None] | None) -> None:
        try:
            for future in self._futures:
                future.result()
            self._meet(f"written-{number}")
            if process_index() == 0 and on_commit_callback is not None:
                on_commit_callback()
            self._meet(f"committed-{number}")
        except BaseException as e:  # raised where the program asks
            self._error = e

    def _meet(self, name: str) -> None:
        """Wait for the other processes."""
        connection = _client()
        if connection is None or process_count() == 1:
            return
        try:
            connection.wait_at_barrier(f"gradix/checkpoint/{name}", self._timeout * 1000)
        except Exception as e:
            raise BarrierTimeoutError(
                f"the other processes did not come within {self._timeout} s: {e}"
            ) from e

    def check_for_errors(self) -> None:
        """Raise what has gone wrong in the background."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def wait_until_finished(self) -> None:
        """Wait until everything is written, and raise what has gone wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays with TensorStore while the program goes on, each process what its devices hold.

    Args:
        timeout_secs: how long processes wait for each other.
    """

    def serialize(  # type: ignore[override]
        self,
        arrays,
        tensorstore_specs,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction=None,
    ) -> None:
        """Write arrays; returns as soon as they are copied, and may be donated.

        Args:
            arrays: arrays, in a list.
            tensorstore_specs: one for each; see `get_tensorstore_spec`.
            on_commit_callback: called by the first process once all of them have written.
            transaction: TensorStore's transaction that the writes are part of.
        """
        self.wait_until_finished()
        writes = [
            future
            for x, spec in zip(arrays, tensorstore_specs, strict=True)
            for future in _writes(x, spec, transaction)
        ]
        for future in writes:
            future.copy.result()
        self._add_futures([f.commit for f in writes] if transaction is None else [])
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(
        self,
        arrays,
        paths,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction=None,
    ) -> None:
        """As `serialize`, each array to a folder of its own."""
        self.serialize(
            arrays,
            [get_tensorstore_spec(p) for p in paths],
            on_commit_callback=on_commit_callback,
            transaction=transaction,
        )

    def deserialize(
        self,
        shardings,
        tensorstore_specs,
        global_shapes=None,
        dtypes=None,
        concurrent_gb: int = 32,
    ) -> list:
        """Read arrays; see `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(
            shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb
        )

    def deserialize_with_paths(
        self, shardings, paths, global_shapes=None, dtypes=None, concurrent_gb: int = 32
    ) -> list:
        """As `deserialize`, each array from a folder of its own."""
        specs = [get_tensorstore_spec(p) for p in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
