"""Composable transformations of numerical Python functions: jit, grad, vmap and more, on arrays.

Example:
    >>> import gradix, gradix.numpy as jnp
    >>> gradix.grad(lambda x: jnp.sin(x) ** 2)(0.5)
    Array(0.841471, dtype=float32, weak_type=True)
"""

# fmt: off
from gradix._base.lazy import claim as _claim, on_demand
from gradix._version import __version__ as __version__
from gradix._base.config import (
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    explicit_x64 as explicit_x64,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles,
    no_execution as no_execution,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from gradix._base import (
    later_options as _later_options,    # defines options
    tracebacks as _tracebacks,          # installs the function that shortens tracebacks
)
from gradix._core import pretty as _pretty          # installs the functions that print jaxprs
from gradix._core.dtypes import float0 as float0
from gradix._core.operators import Array as Array
from gradix._core.refs import (
    Ref as Ref,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    new_ref as new_ref,
)
# It installs the function that makes arrays of symbolic sizes.
from gradix._ops import dimension_values as _dimension_values
from gradix._api import (
    devices as _devices,    # follows changes of an option
    placing as _placing,    # installs members of arrays
)
from gradix._api.jit import (
    inner as _inner,        # installs the functions that run jitted functions and trace for lowering
    retraces as _retraces,  # defines an option
)
from gradix.numpy import methods as _methods        # installs the methods of arrays

with on_demand(globals()):
    from gradix.compat import install_as_jax as install_as_jax
    from gradix._core.named_sharding import NamedSharding as NamedSharding
    from gradix._core.slices import ds as ds
    from gradix._core.sharding import P as P, Shard as Shard
    from gradix._api.derivatives.autodiff import (
        grad as grad,
        jvp as jvp,
        linear_transpose as linear_transpose,
        linearize as linearize,
        value_and_grad as value_and_grad,
        vjp as vjp,
    )
    from gradix._api.devices import (
        Device as Device,
        block_until_ready as block_until_ready,
        copy_to_host_async as copy_to_host_async,
        default_backend as default_backend,
        device_count as device_count,
        devices as devices,
        effects_barrier as effects_barrier,
        host_count as host_count,
        host_id as host_id,
        host_ids as host_ids,
        live_arrays as live_arrays,
        local_device_count as local_device_count,
        local_devices as local_devices,
        print_environment_info as print_environment_info,
        process_count as process_count,
        process_index as process_index,
        process_indices as process_indices,
    )
    from gradix._api.meshes import (
        make_mesh as make_mesh,
        set_mesh as set_mesh,
    )
    from gradix._api.constraints import reshard as reshard
    from gradix._base.user_contexts import make_user_context as make_user_context
    from gradix._api.placing import (device_get as device_get, device_put as device_put)
    from gradix._api.array_assembly import (
        device_put_replicated as device_put_replicated, device_put_sharded as device_put_sharded,
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from gradix._api.inspect import (
        closure_convert as closure_convert,
        ensure_compile_time_eval as ensure_compile_time_eval,
        eval_shape as eval_shape,
        make_jaxpr as make_jaxpr,
        named_call as named_call,
        named_scope as named_scope,
        typeof as typeof,
    )
    from gradix._api.jit.jit import jit as jit
    from gradix._api.jit.jitted_function import clear_caches as clear_caches
    from gradix._api.structs import ShapeDtypeStruct as ShapeDtypeStruct
    from gradix._api.counted.ragged import Ragged as Ragged
    from gradix._api.mapping.vmap import vmap as vmap
    from gradix._api.derivatives.hessians import hessian as hessian
    from gradix._api.derivatives.jacobians import (
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
    )
    from gradix._api.derivatives.laplacian import laplacian as laplacian
    from gradix._api.derivatives.pullbacks import fwd_and_bwd as fwd_and_bwd
    from gradix._api.mapping.pmap import pmap as pmap
    from gradix._api.mapping.shard_map import shard_map as shard_map, smap as smap
    from gradix._api.derivatives.checkpoint import (
        checkpoint as checkpoint,
        remat as remat,
        checkpoint_policies as checkpoint_policies,
    )
    from gradix._api.callbacks import pure_callback as pure_callback
    from gradix._api.costs.magic import load_ipython_extension as load_ipython_extension
    from gradix._api.costs.profile import profile as profile
    from gradix._api.progress import progress as progress
    from gradix._api.derivatives.custom_vjp import (custom_gradient as custom_gradient, custom_vjp as custom_vjp)
    from gradix._api.derivatives.custom_jvp import custom_jvp as custom_jvp
    from gradix import (
        ad as ad,
        ad_checkpoint as ad_checkpoint,
        api_util as api_util,
        compat as compat,
        core as core,
        custom_batching as custom_batching,
        custom_derivatives as custom_derivatives,
        debug as debug,
        distributed as distributed,
        dlpack as dlpack,
        dtypes as dtypes,
        errors as errors,
        experimental as experimental,
        export as export,
        extend as extend,
        ffi as ffi,
        flatten_util as flatten_util,
        image as image,
        interpreters as interpreters,
        lax as lax,
        memory as memory,
        monitoring as monitoring,
        nn as nn,
        numpy as numpy,
        ops as ops,
        profiler as profiler,
        random as random,
        ref as ref,
        scipy as scipy,
        sharding as sharding,
        stages as stages,
        test_util as test_util,
        tree as tree,
        tree_util as tree_util,
        typing as typing,
        version as version,
    )

_claim(__name__, "gradix._")
