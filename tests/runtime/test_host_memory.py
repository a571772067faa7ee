"""Freed memory that the process keeps for its next arrays."""

import subprocess
import sys

import pytest

import gradix

PROGRAM = """if True:
    import resource, gradix, gradix.numpy as jnp
    step = gradix.jit(lambda xs: [x * 2.0 + 1.0 for x in xs])
    xs = [jnp.ones((256, 256)) for _ in range(100)]
    for _ in range(3):
        xs = step(xs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        xs = step(xs)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)"""


def faults_per_step() -> float:
    """Pages that the system had to hand out in each step of a program with 25 MB of results."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asked of the GNU C library alone")
def test_results_of_a_step_lie_in_the_memory_of_an_earlier_one():
    assert faults_per_step() < 1600  # of 6400 pages


def test_wrong_sizes():
    for size in (-1, 1 << 31):
        with pytest.raises(ValueError, match="number of bytes"):
            gradix.config.update("gradix_kept_memory", size)
