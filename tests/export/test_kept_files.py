"""Files that earlier versions of this library, and several of JAX, wrote: they are read, called and differentiated as on their day."""

import random
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from tests.export.common import assert_same
from tests.export.kept_files import FOLDER, arguments, programs
from tests.export.test_files import mutated

FILES = sorted(FOLDER.glob("*/*.bin"))


def test_there_are_files_of_several_versions():
    assert (
        len({f.parent.name for f in FILES}) >= 5 and len(FILES) >= 23 and sum(f.stat().st_size for f in FILES) < 1 << 18
    )


@pytest.mark.x32
@pytest.mark.parametrize("file", FILES, ids=[f"{f.parent.name}/{f.stem}" for f in FILES])
def test_kept_files_are_what_they_were(file):
    f, _, options, order = programs(gradix, export.symbolic_shape)[file.stem]
    plain = gradix.jit(lambda *args: f(gradix, jnp, *args))
    args = arguments(gradix)[file.stem]
    e = export.deserialize(file.read_bytes())
    assert e.platforms == options.get("platforms", ("cpu",)) and e.fun_name == file.stem
    assert_same(e.call(*args), plain(*args))
    again = export.deserialize(e.serialize(vjp_order=order))
    assert_same(again.call(*args), plain(*args))
    for _ in range(order):
        assert e.has_vjp()
        e = e.vjp()
    assert not e.has_vjp()
    if order:

        def total(call):
            return lambda *args: sum(
                [jnp.sum(jnp.sin(t)) for t in gradix.tree.leaves(call(*args)) if t.dtype == "float32"]
            )

        for read in (export.deserialize(file.read_bytes()), again):
            assert_same(gradix.grad(total(read.call))(*args), gradix.grad(total(plain))(*args))
            if order > 1:
                assert_same(
                    gradix.jacrev(gradix.grad(total(read.call)))(*args), gradix.jacrev(gradix.grad(total(plain)))(*args)
                )


def test_constraints_of_kept_files_are_checked():
    x = np.zeros((51, 3), "f4")
    for file in FILES:
        if file.stem == "loops" and "gradix" in str(file.parent.name):
            with pytest.raises(ValueError, match="n = 51 do not satisfy the constraint n <= 50"):
                export.deserialize(file.read_bytes()).call(x)


READ = """
import sys
from gradix import export
for path in sys.argv[1:]:
    e = export.deserialize(open(path, "rb").read())
    assert e.in_avals and e.out_avals and str(e.in_tree) and e.fun_name and e.serialize()
loaded = {name for name in sys.modules if name.split(".")[0] == "jaxlib"}
print(sorted(n for n in loaded if n.startswith(("jaxlib.mlir", "jaxlib.xla_client", "jaxlib.lapack"))), "jax" in sys.modules)
"""


def test_reading_and_writing_need_neither_compiler_nor_mlir():
    """The format is ours to read: jaxlib gives the nodes of trees, and its compiler comes in where a program is run."""
    files = [str(f) for f in FILES if f.stem != "keys"]
    done = subprocess.run([sys.executable, "-c", READ, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] False", done.stdout


def check_damage(count: int, seed: int) -> None:
    """Every mutation of a kept file, most of them without our digest, is refused with ValueError or read, and written again."""
    rng = random.Random(seed)
    blobs, refused = [f.read_bytes() for f in FILES], 0
    for _ in range(count):
        try:
            e = export.deserialize(mutated(rng.choice(blobs), rng))
        except ValueError:
            refused += 1
        else:
            assert e.serialize() and str(e.in_avals) and e.nr_devices >= 1 and e.platforms
    assert refused > count / 2


def test_damaged_files_are_refused_or_read():
    check_damage(400, 1)


@pytest.mark.slow
def test_many_damaged_files_are_refused_or_read():
    check_damage(10_000, 2)
