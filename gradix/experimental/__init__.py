"""Names the original keeps in its experimental corner: io_callback and enable_x64."""

from gradix._api.callbacks import io_callback as io_callback
from gradix._base.config import enable_x64 as enable_x64
