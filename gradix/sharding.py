"""Where arrays lie: shardings and partition specs."""

from gradix._core.sharding import (
    PartitionSpec as PartitionSpec,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
