"""One of two processes does not come to a collective, or comes with another program; the other must say so, and end."""

import sys
import time

import numpy as np

import gradix
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

gradix.config.update("gradix_collective_timeout", 6)
gradix.distributed.initialize(heartbeat_timeout_seconds=100)
mesh = Mesh(np.array(gradix.devices()), ("x",))
a = gradix.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))


@gradix.jit
def first(x):
    return x.sum()


@gradix.jit
def second(x):
    return x - x.max() + x.min() * x.mean()


assert float(first(a)) == 28.0
print("ready", flush=True)
if gradix.process_index() == 1:
    if sys.argv[1] == "sleeps":
        time.sleep(120)
    second(a).block_until_ready()
    time.sleep(120)
first(a).block_until_ready()
if sys.argv[1] == "differs":  # the network may have taken the one for the other
    first(a).block_until_ready()
