"""Functions with vmap rules of their own."""

from gradix._api.mapping.custom_batching import (
    custom_vmap as custom_vmap,
    sequential_vmap as sequential_vmap,
)
