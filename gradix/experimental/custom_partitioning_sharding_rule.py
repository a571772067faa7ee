"""Sharding rules, which say which axes of arguments and results are divided together."""

from gradix._stablehlo.sharding_rules import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
    str_to_sdy_sharding_rule as str_to_sdy_sharding_rule,
)
