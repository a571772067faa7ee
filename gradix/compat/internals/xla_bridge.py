"""`jax._src.xla_bridge`: the platforms and their clients."""

from collections.abc import Mapping

from gradix._runtime.xla_client import is_started
from gradix.extend.backend import backends, get_backend as get_backend


class _Started(Mapping):
    """The clients that have been started, by platform; reading it starts none."""

    def __getitem__(self, platform: str):
        return (backends() if is_started() else {})[platform]

    def __iter__(self):
        return iter(backends() if is_started() else {})

    def __len__(self) -> int:
        return len(backends()) if is_started() else 0


_backends = _Started()


def backends_are_initialized() -> bool:
    """Whether a client has been started."""
    return is_started()
