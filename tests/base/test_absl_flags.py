"""Options on the command line of programs that use absl."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("absl")

PROGRAM = """
import sys
from absl import app, flags
import gradix
flags.DEFINE_string("mine", "a", "of the program")
gradix.config.{method}()
def main(argv):
    print(gradix.config.jax_enable_x64, gradix.config.jax_numpy_rank_promotion, flags.FLAGS.mine, argv[1:])
app.run(main)
"""


@pytest.mark.parametrize("method", ["config_with_absl", "parse_flags_with_absl"])
def test_options_are_flags(method):
    arguments = ["--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "--mine=b", "rest"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "GRADIX_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(method=method), *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.stdout == "True warn b ['rest']\n", done.stderr
