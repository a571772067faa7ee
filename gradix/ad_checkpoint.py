"""Rematerialisation: names for values, and policies of which to keep."""

from gradix._api.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    checkpoint_policies as checkpoint_policies,
)
