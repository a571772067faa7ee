"""The configuration options: names, types and defaults, as JAX documents them, and our own."""

# name: default
BOOLEANS = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_allow_f16_reductions": True,
    "jax_auto_pcast": True,
    "jax_bcoo_cusparse_lowering": False,
    "jax_check_proxy_envs": True,
    "jax_check_static_indices": False,
    "jax_check_tracer_leaks": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_enable_async_dispatch": True,
    "jax_custom_vjp3": False,
    "jax_debug_infs": False,
    "jax_debug_key_reuse": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_nans": False,
    "jax_disable_bwd_checks": False,
    "jax_disable_jit": False,
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_enable_checks": False,
    "jax_enable_compilation_cache": True,
    "jax_enable_custom_prng": False,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_enable_x64": False,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_explain_cache_misses": False,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_log_compiles": False,
    "jax_mosaic_allow_hlo": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_scan3": False,
    "jax_share_binary_between_hosts": False,
    "jax_softmax_custom_jvp": False,
    "jax_sort_devices_by_process_index": True,
    "jax_thread_guard": False,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_threefry_partitionable": True,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
}

# name: default; None is allowed
INTEGERS = {
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_embedded_constants_max_bytes": 32,
    "jax_export_calling_convention_version": 10,
    "jax_num_cpu_devices": -1,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_random_seed_offset": 0,
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}

# name: default
FLOATS = {
    "jax_exec_time_optimization_effort": 0.0,
    "jax_memory_fitting_effort": 0.0,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
}

# name: default; None is allowed
STRINGS = {
    "jax_backend_target": "",
    "jax_compilation_cache_dir": None,
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transport_addresses": "",
    "jax_cuda_visible_devices": "all",
    "jax_debug_log_modules": "",
    "jax_default_device": None,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_mock_gpu_topology": "",
    "jax_oneapi_visible_devices": "all",
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_platforms": None,
    "jax_rocm_visible_devices": "all",
    "jax_source_url_schema": None,
    "jax_xla_backend": "",
}

# name: (default, allowed values); None is allowed where it is the default
CHOICES = {
    "jax_array_garbage_collection_guard": (None, ("allow", "log", "fatal")),
    "jax_cpu_collectives_implementation": ("gloo", ("gloo", "mpi", "megascale")),
    "jax_default_matmul_precision": (
        None,
        (
            "default",
            "high",
            "highest",
            "bfloat16",
            "tensorfloat32",
            "float32",
            "ANY_F8_ANY_F8_F32",
            "ANY_F8_ANY_F8_F32_FAST_ACCUM",
            "ANY_F8_ANY_F8_ANY",
            "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
            "F16_F16_F16",
            "F16_F16_F32",
            "BF16_BF16_BF16",
            "BF16_BF16_F32",
            "BF16_BF16_F32_X3",
            "BF16_BF16_F32_X6",
            "BF16_BF16_F32_X9",
            "TF32_TF32_F32",
            "TF32_TF32_F32_X3",
            "F32_F32_F32",
            "F64_F64_F64",
        ),
    ),
    "jax_default_prng_impl": (
        "threefry2x32",
        ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    ),
    "jax_error_checking_behavior_divide": ("ignore", ("ignore", "raise")),
    "jax_error_checking_behavior_nan": ("ignore", ("ignore", "raise")),
    "jax_error_checking_behavior_oob": ("ignore", ("ignore", "raise")),
    "jax_explicit_x64_dtypes": ("warn", ("warn", "error", "allow")),
    "jax_legacy_prng_key": ("allow", ("allow", "warn", "error")),
    "jax_logging_level": ("NOTSET", ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
    "jax_memory_fitting_level": ("O2", ("UNKNOWN", "O0", "O1", "O2", "O3")),
    "jax_numpy_dtype_promotion": ("standard", ("standard", "strict")),
    "jax_numpy_rank_promotion": ("allow", ("allow", "warn", "raise")),
    "jax_optimization_level": ("UNKNOWN", ("UNKNOWN", "O0", "O1", "O2", "O3")),
    "jax_send_traceback_to_runtime": ("off", ("off", "on", "full")),
    "jax_traceback_filtering": (
        "auto",
        ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    ),
    "jax_transfer_guard": (None, ("allow", "log", "disallow", "log_explicit", "disallow_explicit")),
    "jax_transfer_guard_device_to_device": (
        None,
        ("allow", "log", "disallow", "log_explicit", "disallow_explicit"),
    ),
    "jax_transfer_guard_device_to_host": (
        None,
        ("allow", "log", "disallow", "log_explicit", "disallow_explicit"),
    ),
    "jax_transfer_guard_host_to_device": (
        None,
        ("allow", "log", "disallow", "log_explicit", "disallow_explicit"),
    ),
    "jax_use_magma": ("auto", ("off", "on", "auto")),
}

# other names of options, and of their values
SPELLINGS = {"explicit_x64": "jax_explicit_x64_dtypes"}
VALUE_SPELLINGS = {
    "jax_explicit_x64_dtypes": {"honour": "allow", "honor": "allow", "truncate": "warn"}
}

# Setting an option sets those that it implies.
IMPLIED = {
    "jax_transfer_guard": (
        "jax_transfer_guard_host_to_device",
        "jax_transfer_guard_device_to_device",
        "jax_transfer_guard_device_to_host",
    ),
}

# the options on which a traced program may depend
TRACED = frozenset(
    {
        "jax_allow_f16_reductions",
        "jax_check_static_indices",
        "jax_custom_vjp3",
        "jax_debug_infs",
        "jax_debug_key_reuse",
        "jax_debug_nans",
        "jax_default_device",
        "jax_default_matmul_precision",
        "jax_default_prng_impl",
        "jax_disable_jit",
        "jax_enable_checks",
        "jax_enable_custom_prng",
        "jax_enable_x64",
        "jax_error_checking_behavior_divide",
        "jax_error_checking_behavior_nan",
        "jax_error_checking_behavior_oob",
        "jax_explicit_x64_dtypes",
        "jax_high_dynamic_range_gumbel",
        "jax_legacy_prng_key",
        "jax_numpy_dtype_promotion",
        "jax_numpy_rank_promotion",
        "jax_pallas_enable_debug_checks",
        "jax_random_seed_offset",
        "jax_softmax_custom_jvp",
        "jax_threefry_partitionable",
        "jax_use_direct_linearize",
    }
)

# Public context managers: name: (option, what it does).
CONTEXT_MANAGERS = {
    "allow_f16_reductions": (
        "jax_allow_f16_reductions",
        "allow sums of 16-bit floats in their own precision",
    ),
    "array_garbage_collection_guard": (
        "jax_array_garbage_collection_guard",
        "allow, log or abort on arrays that only the garbage collector frees",
    ),
    "auto_pcast": (
        "jax_auto_pcast",
        "cast replicated values to varying ones inside shard_map where needed",
    ),
    "check_tracer_leaks": (
        "jax_check_tracer_leaks",
        "report traced arrays that outlive their function",
    ),
    "debug_infs": ("jax_debug_infs", "raise when an operation gives an infinity"),
    "debug_key_reuse": ("jax_debug_key_reuse", "raise when a random key is consumed twice"),
    "debug_nans": ("jax_debug_nans", "raise when an operation gives a NaN"),
    "default_device": ("jax_default_device", "the Device, or platform, where new arrays are put"),
    "default_matmul_precision": (
        "jax_default_matmul_precision",
        "the precision of matrix products and convolutions of 32-bit floats",
    ),
    "default_prng_impl": ("jax_default_prng_impl", "the generator of new random keys"),
    "enable_checks": ("jax_enable_checks", "check internal invariants, at some cost"),
    "enable_custom_prng": ("jax_enable_custom_prng", "let PRNGKey make typed keys"),
    "enable_x64": ("jax_enable_x64", "enable 64-bit types"),
    "explicit_x64": (
        "jax_explicit_x64_dtypes",
        "keep ('honour') or narrow with a warning ('truncate') 64-bit dtypes requested while x64 is off, or raise "
        "('error')",
    ),
    "explain_cache_misses": ("jax_explain_cache_misses", "log why a function is traced again"),
    "jax2tf_associative_scan_reductions": (
        "jax2tf_associative_scan_reductions",
        "lower cumulative reductions as associative scans",
    ),
    "legacy_prng_key": ("jax_legacy_prng_key", "allow, warn of or refuse raw uint32 keys"),
    "log_compiles": ("jax_log_compiles", "log every trace and compilation"),
    "no_execution": ("jax_no_execution", "raise when a program is run"),
    "no_tracing": ("jax_no_tracing", "raise when a function is traced"),
    "numpy_dtype_promotion": (
        "jax_numpy_dtype_promotion",
        "'standard' promotion of dtypes, or 'strict': none",
    ),
    "numpy_rank_promotion": (
        "jax_numpy_rank_promotion",
        "allow, warn of or raise at broadcasts between ranks",
    ),
    "remove_size_one_mesh_axis_from_type": (
        "jax_remove_size_one_mesh_axis_from_type",
        "leave mesh axes of size one out of array types",
    ),
    "softmax_custom_jvp": ("jax_softmax_custom_jvp", "differentiate softmax by its own formula"),
    "thread_guard": (
        "jax_thread_guard",
        "raise when arrays on many processes are used from several threads",
    ),
    "threefry_partitionable": (
        "jax_threefry_partitionable",
        "draw random bits that do not depend on the sharding",
    ),
    "transfer_guard_device_to_device": (
        "jax_transfer_guard_device_to_device",
        "allow, log or disallow transfers between devices",
    ),
    "transfer_guard_device_to_host": (
        "jax_transfer_guard_device_to_host",
        "allow, log or disallow transfers from a device to the host",
    ),
    "transfer_guard_host_to_device": (
        "jax_transfer_guard_host_to_device",
        "allow, log or disallow transfers from the host to a device",
    ),
}

# What the examples of context managers set; the others are switched on.
SHOWN = {
    "array_garbage_collection_guard": "log",
    "default_device": "cpu",
    "default_matmul_precision": "highest",
    "default_prng_impl": "rbg",
    "explicit_x64": "error",
    "legacy_prng_key": "error",
    "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "raise",
    "transfer_guard_device_to_device": "disallow",
    "transfer_guard_device_to_host": "log",
    "transfer_guard_host_to_device": "disallow",
}
