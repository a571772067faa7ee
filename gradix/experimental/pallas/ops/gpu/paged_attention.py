"""Attention over pages under the names of that for GPUs, which is refused when used."""

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._refused import refused as _refused

globals().update(
    _refused(
        "pallas.ops.gpu.paged_attention",
        "paged_attention paged_attention_reference",
        "it is laid out for the memory of a GPU. Use ops.tpu.paged_attention, which runs on any platform.",
    )
)

__dir__ = _listing(__name__)
