"""One of two processes is killed, or fails; the other must end as well."""

import os
import signal
import sys
import time

import numpy as np

import gradix
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

gradix.distributed.initialize(heartbeat_timeout_seconds=4)
mesh = Mesh(np.array(gradix.devices()), ("x",))
a = gradix.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))
f = gradix.jit(lambda x: x.sum())
assert float(f(a)) == 28.0
print("ready", flush=True)
if gradix.process_index() == int(sys.argv[2]):
    os.kill(os.getpid(), signal.SIGKILL)
end = time.monotonic() + 60
while time.monotonic() < end:
    if sys.argv[1] == "computes":
        f(a).block_until_ready()
    else:
        time.sleep(0.01)
