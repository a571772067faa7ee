"""The end of a process is silent, in whatever order Python takes its modules apart."""

import subprocess
import sys

import pytest

EARLY = """
def double(x):
    return x * 2

def step(carry, x):
    return carry + x, carry * x

held = {}
"""

# Modules that something of C holds are emptied when the process ends, those imported last first: what
# a module imported before gradix holds is freed after gradix has lost its names.
PROGRAM = """
import early
import ctypes, sys
import numpy as np
import gradix, gradix.numpy as jnp
from gradix import lax
from gradix.experimental.array_serialization import serialization

x = jnp.arange(4.0)
gradix.jit(early.double)(x), gradix.jit(early.double)(x)
lax.scan(early.step, jnp.float32(0), x), lax.scan(early.step, jnp.float32(0), x)
gradix.config.update("jax_debug_key_reuse", True)
key = gradix.random.key(0)
gradix.random.split(key)

def calling(f, *args):
    f(*args)
    return f

def many():
    yield key
    yield serialization.AsyncManager()
    yield gradix.new_ref(x)
    yield gradix.vjp(early.double, x)[1]
    yield gradix.linearize(jnp.sin, x)[1]
    yield calling(gradix.jit(lambda v: v + x), x)
    yield calling(gradix.jit(lambda v: v + x, check="nan"), x)
    yield calling(gradix.jit(lambda v: v + x, donate_argnums=0), jnp.ones(4))
    yield calling(gradix.jit(lambda v: v[v > 1]), x)
    yield calling(gradix.jit(lambda v: v.sum(), symbolic="n"), x)
    yield calling(gradix.jit(lambda v: gradix.pure_callback(lambda w: w, gradix.ShapeDtypeStruct((4,), "float32"), v)), x)
    yield calling(gradix.vmap(gradix.jit(gradix.grad(jnp.sin))), x)
    yield gradix.jit(early.double).lower(x).compile()
    yield gradix.export.export(gradix.jit(early.double))(x)
    yield gradix.device_put(x, gradix.devices()[0])
    yield np.from_dlpack(x)

early.held.update(enumerate(many()))
early.held["ring"] = early.held if RING else None
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in ("gradix", "early"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
print("done", flush=True)
"""


@pytest.mark.x32
def test_nothing_is_reported_at_the_end(tmp_path):
    (tmp_path / "early.py").write_text(EARLY)
    for ring in (False, True):
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); RING = {ring}\n" + PROGRAM
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
        assert (done.stdout, done.stderr) == ("done\n", "")
