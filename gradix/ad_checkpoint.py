"""Rematerialisation: names of values, policies of which to save, and lists of what is saved."""

from gradix._api.derivatives.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    checkpoint_policies as checkpoint_policies,
)
from gradix._api.derivatives.saved import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
    print_saved_residuals as print_saved_residuals,
    saved_residuals as saved_residuals,
)
