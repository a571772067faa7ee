"""Kernels that take in the functions around them."""

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._block_specs import (
    BlockIndexTransform as BlockIndexTransform,
    custom_fusion as custom_fusion,
    get_fusion_values as get_fusion_values,
    make_scalar_prefetch_handler as make_scalar_prefetch_handler,
    pull_block_spec as pull_block_spec,
    push_block_spec as push_block_spec,
)
from gradix.experimental.pallas._fusion import Fusion as Fusion, evaluate as evaluate, fuse as fuse, fusible as fusible
from gradix.experimental.pallas._refused import refused as _refused

globals().update(
    _refused(
        "pallas.fuser",
        "get_stateful_input_fusion_values get_stateful_output_fusion_values",
        "fusions are functions of values here. Read mutable arrays before the fused function and write them after it.",
    )
)

__dir__ = _listing(__name__)
