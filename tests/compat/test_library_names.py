"""Every name of JAX that libraries are known to use is there under `install_as_jax`, or is listed here with the reason."""

import subprocess
import sys
from pathlib import Path

NAMES = Path(__file__).parents[1] / "data/library_names.txt"

# What one code base uses, and is not there; each is asked for by `python -m gradix check` with the public way.
ABSENT = {
    "jax._src.cudnn.fused_attention_stablehlo": "cuDNN's attention, which runs on NVIDIA's GPUs alone",
    "jax._src.earray": "the class of extended arrays, of which there are none apart from keys",
    "jax._src.interpreters.pxla.global_result_handlers": "a table of JAX's own dispatch",
    "jax.interpreters.pxla.global_avals_to_results_handler": "a part of JAX's own dispatch",
    "jax.interpreters.ad.linearize": "a function of JAX's own function objects",
}

_PROGRAM = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
import gradix
gradix.install_as_jax()
for name in sys.stdin.read().split():
    there, path = importlib.import_module("jax"), "jax"
    for part in name.split(".")[1:]:
        path += "." + part
        try:
            there = getattr(there, part)
        except AttributeError:
            try:
                there = importlib.import_module(path)
            except ImportError:
                print(name)
                break
"""


def used() -> dict[str, int]:
    """The names, with the number of code bases that use each."""
    rows = [line.split(":") for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {name: int(count) for count, names in rows for name in names.split()}


def is_listed(name: str) -> bool:
    return any(f"{name}.".startswith(f"{absent}.") for absent in ABSENT)


def test_names_are_there():
    names = used()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], input=" ".join(names), capture_output=True, text=True, check=True
    )
    missing = set(done.stdout.split())
    assert {n for n in missing if not is_listed(n)} == set()
    assert [n for n in missing if names[n] >= 2] == []
    assert len(names) > 1100 and len(names) - len(missing) >= 1160
