"""`BCOO`, sparse arrays stored as elements and their indices, and the functions on them."""

from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import listing as _listing
from gradix.experimental.sparse._bcoo_array import BCOO as BCOO
from gradix.experimental.sparse._bcoo_convolution import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from gradix.experimental.sparse._bcoo_moving import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
    bcoo_concatenate as bcoo_concatenate,
    bcoo_reduce_sum as bcoo_reduce_sum,
    bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_transpose as bcoo_transpose,
)
from gradix.experimental.sparse._bcoo_products import (
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
    matmul as matmul,
)
from gradix.experimental.sparse._bcoo_slicing import (
    bcoo_dynamic_slice as bcoo_dynamic_slice,
    bcoo_gather as bcoo_gather,
    bcoo_slice as bcoo_slice,
)
from gradix.experimental.sparse._bcoo_storage import (
    bcoo_eliminate_zeros as bcoo_eliminate_zeros,
    bcoo_extract as bcoo_extract,
    bcoo_fromdense as bcoo_fromdense,
    bcoo_sort_indices as bcoo_sort_indices,
    bcoo_sum_duplicates as bcoo_sum_duplicates,
    bcoo_todense as bcoo_todense,
    bcoo_update_layout as bcoo_update_layout,
)

_parts = _lazy_module("gradix.experimental.sparse._parts")


def __getattr__(name: str):
    if name.startswith("_bcoo_"):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _listing(__name__)
