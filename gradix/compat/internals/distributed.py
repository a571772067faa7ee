"""`jax._src.distributed`: the processes that this one has joined."""

from gradix._api.distributed import global_state as _joined
from gradix.distributed import initialize as initialize, is_initialized as is_initialized, shutdown as shutdown


class _GlobalState:
    """JAX's names for the joined processes; a process that has joined none is number 0 of 1."""

    client = property(lambda self: _joined.client)
    service = property(lambda self: _joined.service)
    process_id = property(lambda self: _joined.process_id or 0)
    num_processes = property(lambda self: _joined.num_processes or 1)
    coordinator_address = property(lambda self: _joined.coordinator_address)


global_state = _GlobalState()
