"""`custom_partitioning`: functions whose division over devices the user defines."""

from gradix._api.custom_partitioning import custom_partitioning as custom_partitioning
from gradix._control.custom_partitioning import custom_partitioning_p as custom_partitioning_p
from gradix._stablehlo.sharding_rules import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
)
