"""What the tests on eight devices share."""

import numpy as np

import gradix
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P


def mesh(shape=(4, 2), names=("x", "y")) -> Mesh:
    return Mesh(np.array(gradix.devices()[: int(np.prod(shape))]).reshape(shape), names)


def on(m: Mesh, *spec) -> NamedSharding:
    return NamedSharding(m, P(*spec))


def sharded(x, m: Mesh, *spec):
    return gradix.device_put(np.asarray(x), on(m, *spec))
