"""Exports programs to files, also for arrays of many sizes by symbolic shapes."""

from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
    from gradix.export.exported import Exported as Exported
    from gradix.export.exporting import (
        default_export_platform as default_export_platform,
        export as export,
        maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
        minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
    )
    from gradix.export.reading import deserialize as deserialize
    from gradix.export.registration import (
        register_namedtuple_serialization as register_namedtuple_serialization,
        register_pytree_node_serialization as register_pytree_node_serialization,
    )
    from gradix.export.shapes import (
        is_symbolic_dim as is_symbolic_dim,
        symbolic_args_specs as symbolic_args_specs,
        symbolic_dim_bounds as symbolic_dim_bounds,
        symbolic_shape as symbolic_shape,
        SymbolicScope as SymbolicScope,
    )
