"""The division of arrays over devices: meshes, shardings and partition specs."""

from gradix._api.constraints import reshard as reshard
from gradix._api.explicit_axes import auto_axes as auto_axes, explicit_axes as explicit_axes
from gradix._api.meshes import (
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_single_device_sharding as make_single_device_sharding,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from gradix._base.lazy import claim as _claim
from gradix._core.mesh import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    ManualAxisType as ManualAxisType,
    Mesh as Mesh,
)
from gradix._core.named_sharding import GSPMDSharding as GSPMDSharding, NamedSharding as NamedSharding
from gradix._core.sharding import (
    PartitionSpec as PartitionSpec,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)

_claim(__name__, "gradix._")
