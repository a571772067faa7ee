"""One of two processes is asked to end, or is killed: what `multihost_utils` tells the others."""

import os
import signal
import sys
import time

import gradix
from gradix.experimental import multihost_utils as mu

gradix.config.update("jax_enable_recoverability", sys.argv[1] == "killed")
gradix.distributed.initialize(heartbeat_timeout_seconds=4, shutdown_timeout_seconds=5)
is_second = gradix.process_index() == 1

if sys.argv[1] == "asked":
    for step in range(1000):
        if mu.reached_preemption_sync_point(step):
            print("saves at", step, flush=True)
            break
        if is_second and step == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
    sys.exit(0)

try:
    with mu.live_devices(gradix.devices()) as devices:
        assert len(devices) == 2
        if is_second:
            os.kill(os.getpid(), signal.SIGKILL)
except mu.ProcessFailureError as e:
    print(e, [d.process_index for d in e.failed_devices], flush=True)
with mu.live_devices(gradix.devices()) as devices:
    print("left:", [d.process_index for d in devices], flush=True)
