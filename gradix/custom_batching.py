"""Functions whose rules for vmap are defined by the user."""

from gradix._api.mapping.custom_batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
