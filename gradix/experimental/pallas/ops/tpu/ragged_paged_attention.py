"""Attention over pages for sequences with several queries each, which is refused when used."""

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._refused import refused as _refused

globals().update(
    _refused(
        "pallas.ops.tpu.ragged_paged_attention",
        "dynamic_validate_inputs ragged_paged_attention ref_ragged_paged_attention static_validate_inputs",
        "it is laid out for the memory of a TPU. Use ops.tpu.paged_attention for one query of each sequence, and "
        "ops.tpu.flash_attention with segment ids for sequences one after another.",
    )
)

__dir__ = _listing(__name__)
