"""Experimental functions and modules, under the names that `jax.experimental` has for them."""

from gradix._api.callbacks import io_callback as io_callback
from gradix._base.config import enable_x64 as enable_x64
from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix.experimental.hijax import cur_qdd as cur_qdd
