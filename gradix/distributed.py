"""Programs of several processes, which share their devices."""

from gradix._api.distributed import initialize as initialize, is_initialized as is_initialized, shutdown as shutdown
