"""Names for kernels written for the sparse cores of TPUs, which run on any platform here."""

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._cores import (
    ScalarSubcoreMesh as ScalarSubcoreMesh,
    VectorSubcoreMesh as VectorSubcoreMesh,
)
from gradix.experimental.pallas._refused import refused as _refused
from gradix.experimental.pallas._sparse_core import (
    Indices as Indices,
    PackFormat as PackFormat,
    addupdate as addupdate,
    addupdate_compressed as addupdate_compressed,
    addupdate_scatter as addupdate_scatter,
    all_reduce_ffs as all_reduce_ffs,
    all_reduce_population_count as all_reduce_population_count,
    bitcast as bitcast,
    cummax as cummax,
    cumsum as cumsum,
    fetch_and_add as fetch_and_add,
    load_expanded as load_expanded,
    load_gather as load_gather,
    pack as pack,
    parallel_loop as parallel_loop,
    scan_count as scan_count,
    sort_key_val as sort_key_val,
    store_compressed as store_compressed,
    store_scatter as store_scatter,
    unpack as unpack,
)

globals().update(
    _refused(
        "pallas.tpu_sc",
        "get_sparse_core_info subcore_barrier",
        "it is about cores that run at the same time, which are programs one after another here. Make two kernels of "
        "what is before and after a barrier.",
    )
)

__dir__ = _listing(__name__)
