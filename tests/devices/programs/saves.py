"""Saves checkpoint after checkpoint until it is stopped; each holds one number everywhere."""
import itertools
import sys

import numpy as np

from gradix.experimental.array_serialization import save

for i in itertools.count(1):
    save({"w": np.full((64, 1024), i, np.float32), "step": np.int32(i)}, sys.argv[1])
    print(i, flush=True)
