"""orbax-checkpoint: numbered trees of arrays, written while the program goes on, and read back."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

PACKAGES = (
    "orbax-checkpoint",
    "tensorstore",
    "etils",
    "msgpack",
    "nest_asyncio",
    "humanize",
    "simplejson",
    "protobuf",
    "aiofiles",
    "psutil",
    "uvloop",
    "importlib_resources",
    "zipp",
    "typing_extensions",
    "fsspec",
    "absl-py",
    "pyyaml",
    "jaxtyping",
)
STEPS = 3


def setup():
    folder = Path(tempfile.mkdtemp())
    manager = ocp.CheckpointManager(folder / "run", options=ocp.CheckpointManagerOptions(max_to_keep=2))
    tree = {"w": jnp.arange(12.0).reshape(3, 4), "n": {"k": jnp.int32(3), "b": jnp.ones(5, jnp.bfloat16)}}

    def step(state):
        number, tree = state
        manager.save(number, args=ocp.args.StandardSave(tree))
        manager.wait_until_finished()
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
        back = manager.restore(number, args=ocp.args.StandardRestore(abstract))
        for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(back)):
            assert a.dtype == b.dtype and np.array_equal(a, b)
        return (number + 1, jax.tree.map(lambda x: x + 1, back)), back["w"].sum() + len(manager.all_steps())

    return step, (0, tree)
