"""Saves checkpoint after checkpoint until it is stopped; each holds one number everywhere, over all devices there are."""

import itertools
import sys

import numpy as np

import gradix
from gradix.experimental.array_serialization import save
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

over = NamedSharding(Mesh(np.array(gradix.devices()), ("x",)), P("x"))
for i in itertools.count(1):
    save({"w": gradix.device_put(np.full((64, 1024), i, np.float32), over), "step": np.int32(i)}, sys.argv[1])
    print(i, flush=True)
