"""Modules for libraries that extend gradix by primitives or work on programs as data."""

from gradix.extend import (
    backend as backend,
    core as core,
    linear_util as linear_util,
    mlir as mlir,
    random as random,
    sharding as sharding,
    source_info_util as source_info_util,
)
