"""XLA through jaxlib's PJRT client: devices, buffers, compiled programs.

Only the `xla_*` modules and `_base/tree` import jaxlib. Its interface is not documented, so these
modules probe for features, and a test lists every name that they use.
"""

# fmt: off
from gradix._base.lazy import on_demand
from gradix._runtime.xla_buffers import (
    block_until_ready as block_until_ready,
    copy_to_host_async as copy_to_host_async,
    delete as delete,
    from_dlpack as from_dlpack,
    get as get,
    is_at as is_at,
    is_deleted as is_deleted,
    is_ready as is_ready,
    put as put,
    to_dlpack as to_dlpack,
    unsafe_buffer_pointer as unsafe_buffer_pointer,
)
from gradix._runtime.xla_client import (
    Device as Device,
    RuntimeFailure as RuntimeFailure,
    client as client,
    configure as configure,
    cpu_devices as cpu_devices,
    default_device as default_device,
    default_platform as default_platform,
    devices as devices,
    devices_of as devices_of,
    fingerprint as fingerprint,
    is_host_apart as is_host_apart,
    is_started as is_started,
    jaxlib_version as jaxlib_version,
    local_devices as local_devices,
    on_renewal as on_renewal,
    platform_of as platform_of,
    renew as renew,
)
from gradix._runtime.xla_options import Options as Options, options as options, options_key as options_key

with on_demand(globals()):
    from gradix._runtime.mlir_bindings import parse_module as parse_module, printed as printed
    from gradix._runtime.xla_custom_calls import ensure_lapack as ensure_lapack, register as register
    from gradix._runtime.xla_distributed import (
        join_processes as join_processes,
        leave_processes as leave_processes,
        reached_sync_point as reached_sync_point,
    )
    from gradix._runtime.xla_layouts import laid_out as laid_out, layout_modes as layout_modes, orders_of as orders_of
    from gradix._runtime.xla_program import (
        HERE as HERE,
        Executable as Executable,
        On as On,
        compile as compile,
        cost_of as cost_of,
        deserialize as deserialize,
        hlo_computation as hlo_computation,
        hlo_text as hlo_text,
        honours_small_loops as honours_small_loops,
    )
    from gradix._runtime.xla_sharded import (
        copied as copied,
        gather as gather,
        join as join,
        layout_of as layout_of,
        move as move,
        part_of as part_of,
        parts as parts,
        put_copied as put_copied,
        put_parts as put_parts,
        put_sharded as put_sharded,
        run_in_turn as run_in_turn,
    )
    from gradix._runtime.xla_staging import staging as staging
