"""What managers of checkpoints that write while the program goes on have in common."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any


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
