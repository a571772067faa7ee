"""First calls: of functions that were not compiled before, of functions that an earlier process compiled, and of scripts.

Every timed call is the first of a new function, with all caches in memory cleared; arguments are made outside the
clock.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.case import case
from benchmarks.cases.grad import mlp_loss, mlp_params
from benchmarks.cases.trace import chain

COLD, WARM = 0.7, 0.5
ROOT = Path(__file__).resolve().parents[2]


def cache(x, path):
    """Keep all compiled programs at `path`, however quickly they compiled; None keeps none."""
    if x.name == "gradix":
        x.api.config.update("gradix_cache", path or "off")
    elif path:
        x.api.config.update("jax_compilation_cache_dir", path)
        x.api.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        x.api.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    else:
        x.api.config.update("jax_enable_compilation_cache", False)


def directory():
    """A directory that lives as long as this process."""
    path = tempfile.mkdtemp(prefix="benchmark-cache-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def tiny(x):
    return (lambda v: v + 1.0), (x.array(8),)


def mlp_step(x):
    def step(params, inputs, wanted):
        slopes = x.api.grad(mlp_loss(x))(params, inputs, wanted)
        return x.api.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    return step, (mlp_params(x), x.array(32, 8), x.array(32, 4))


def hessian(x):
    np = x.np
    return x.api.hessian(lambda v: np.sum(np.sin(v) * np.exp(v)) ** 2), (x.array(8),)


def long_chain(x):
    return chain(x), (x.array(8),)


def normal(x):
    return (lambda key: x.random.normal(key, (100,))), (x.random.key(0),)


PROGRAMS = {"x + 1": tiny, "an MLP's step": mlp_step, "a hessian": hessian, "900 operations": long_chain,
            "random normals": normal}  # fmt: skip


def never_called(program):
    """A function that makes a new jitted function and its arguments, after clearing all caches in memory."""

    def arguments(x):
        def fresh():
            x.api.clear_caches()
            function, args = program(x)
            return x.api.jit(function), args

        return fresh

    return arguments


def register(title, program):
    arguments = never_called(program)

    def make(x, path):
        cache(x, path)
        return lambda prepared: prepared[0](*prepared[1])

    case(f"first call of {title}", "startup", COLD, fresh=arguments)(lambda x: make(x, None))
    case(f"first call of {title}, from disk", "startup from disk", WARM, fresh=arguments)(
        lambda x: make(x, directory())
    )


for _title, _program in PROGRAMS.items():
    register(_title, _program)


SCRIPT = """if True:
    import importlib, sys
    name, path = sys.argv[1:]
    api, np = importlib.import_module(name), importlib.import_module(name + ".numpy")
    if name == "gradix":
        api.config.update("gradix_cache", path or "off")
    elif path:
        api.config.update("jax_compilation_cache_dir", path)
        api.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        api.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    total = 0.0
    for n in range(30):
        f = api.jit(lambda v, w: np.tanh(v @ w + n).sum() + np.sin(v[: n + 1]).max())
        total += float(f(np.ones((32, 8)), np.ones((8, n + 1))))
    print(total)"""


def script(x, path):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", SCRIPT, x.name, path]
    return lambda: subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL) and None


@case("a script of 30 functions, first run", "startup of scripts", COLD)
def first_run(x):
    return script(x, "")


@case("a script of 30 functions, second run", "startup of scripts", WARM)
def second_run(x):
    return script(x, directory())
