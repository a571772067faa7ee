"""Programs with sizes that values decide, as they are kept: on disk, compiled ahead of time, donated to, exported."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix._runtime import disk_cache

ROOT = Path(__file__).parents[2]
X = np.array([3.0, -1.0, 4.0, -2.0, 5.0, 0.5], np.float32)
PROGRAM = """
import gradix, gradix.numpy as jnp, numpy as np
x = np.array([3.0, -1.0, 4.0, -2.0, 5.0, 0.5], np.float32)

@gradix.jit
def positive(x):
    kept = x[x > 0]
    return jnp.sort(kept), {"mean": kept.mean(), "n": kept.shape[0] + jnp.zeros((), int)}
"""


def selected(x):
    return x[x > 0], x.sum()


def test_a_second_process_loads_the_program(tmp_path):
    gradix.config.update("gradix_cache", str(tmp_path))
    disk_cache.reset()
    try:
        names: dict = {}
        exec(PROGRAM, names)  # noqa: S102  (the text of the other process)
        first = names["positive"](X)
        assert names["positive"].stats().compiles == 1
    finally:
        disk_cache.reset()
    asked = """
for v in (x, -x, 0 * x):
    y, more = positive(v)
    print(np.asarray(y).tolist(), float(more["mean"]), int(more["n"]))
print(positive.stats().compiles, positive.stats().loads)
"""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + asked],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "GRADIX_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0.5, 3.0, 4.0, 5.0] 3.125 4", "[1.0, 2.0] 1.5 2", "[] nan 0", "0 1"]
    assert np.asarray(first[0]).tolist() == [0.5, 3.0, 4.0, 5.0]


def test_compiled_ahead_of_time_results_have_their_sizes():
    compiled = gradix.jit(selected).lower(gradix.ShapeDtypeStruct((6,), jnp.float32)).compile()
    for x in (X, -X, 0 * X, X + 9):
        kept, total = compiled(jnp.asarray(x))
        assert kept.shape == (int((x > 0).sum()),) and np.array_equal(kept, x[x > 0]) and float(total) == x.sum()
    slope = gradix.jit(gradix.grad(lambda x: (x[x > 0] ** 2).sum())).lower(X).compile()
    assert np.array_equal(slope(jnp.asarray(X)), np.where(X > 0, 2 * X, 0))


def test_donated_memory_is_used_for_results():
    x = jnp.asarray(X) + 0
    f = gradix.jit(lambda x: (2 * x, x[x > 0]), donate_argnums=0)
    twice, kept = f(x)
    assert x.is_deleted() and np.array_equal(twice, 2 * X) and np.array_equal(kept, X[X > 0])


def test_exports_of_known_sizes():
    means = export.export(gradix.jit(lambda x: x[x > 0].mean()))(gradix.ShapeDtypeStruct((6,), jnp.float32))
    again = export.deserialize(means.serialize())
    assert float(again.call(X)) == float(X[X > 0].mean())
    fixed = export.export(gradix.jit(lambda x: (x[jnp.nonzero(x > 0, size=6, fill_value=0)], (x > 0).sum())))(X)
    kept, n = fixed.call(X)
    assert np.array_equal(np.asarray(kept)[: int(n)], X[X > 0])


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x: gradix.lax.scan(lambda c, v: (c, x[x > v]), 0.0, x), "vmap returns a Ragged"),
        (lambda x: gradix.lax.map(lambda v: x[x > v], x), "vmap returns a Ragged"),
        (lambda x: gradix.lax.fori_loop(0, 2, lambda i, c: c[c > 0], x), "keep c of shape (6,)"),
    ],
)
def test_bodies_that_decide_sizes_say_what_to_write(f, words):
    with pytest.raises((NotImplementedError, TypeError)) as found:
        gradix.jit(f)(X)
    assert words in str(found.value)
