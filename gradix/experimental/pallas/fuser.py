"""Names for kernels that take in the functions around them, which are refused when used."""

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._refused import refused as _refused

globals().update(
    _refused(
        "pallas.fuser",
        "BlockIndexTransform Fusion custom_fusion evaluate fuse fusible get_fusion_values "
        "get_stateful_input_fusion_values get_stateful_output_fusion_values make_scalar_prefetch_handler "
        "pull_block_spec push_block_spec",
        "kernels are ordinary programs here, which XLA fuses with what is around them. Call the kernel on the results "
        "of other functions, and give it functions to be applied to blocks with functools.partial.",
    )
)

__dir__ = _listing(__name__)
