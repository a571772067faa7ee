"""Names of `jax._src` that libraries import: what is mapped, and what says that it is not."""
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import gradix
import gradix.numpy as jnp
from gradix import compat
from gradix._base import source
from gradix.compat.internals import USERS


@pytest.fixture
def as_jax():
    names = [n for n in sys.modules if n.partition(".")[0] == "jax"]
    peer = {name: sys.modules.pop(name) for name in names}
    gradix.install_as_jax()
    yield
    compat.uninstall()
    sys.modules.update(peer)


def test_every_area_of_the_table_is_a_module_and_the_other_way_round():
    folder = Path(importlib.import_module("gradix.compat.internals").__file__).parent
    assert {p.stem for p in folder.glob("*.py")} - {"__init__"} == set(USERS)


def test_names_are_public_parts(as_jax):
    import jax
    from jax._src.ad_util import stop_gradient_p
    from jax._src.dispatch import wait_for_tokens
    from jax._src.dtypes import TypePromotionError
    assert stop_gradient_p is gradix.lax.stop_gradient_p and wait_for_tokens is jax.effects_barrier
    with pytest.raises(TypePromotionError), jax.numpy_dtype_promotion("strict"):
        jnp.ones(2, "int32") + jnp.ones(2, "float32")


def test_what_nobody_mapped_is_named(as_jax):
    with pytest.raises(ModuleNotFoundError, match=r"'jax._src.no_such'.*internals.*traceback_util"):
        importlib.import_module("jax._src.no_such")
    with pytest.raises(ImportError, match="no_such"):
        exec("from jax._src.dispatch import no_such")


def test_frames_of_an_excluded_file_are_left_out(tmp_path):
    library, program = tmp_path / "library.py", tmp_path / "program.py"
    library.write_text("import jax._src.traceback_util as t\nt.register_exclusion(__file__)\ndef call(f):\n    return f()\n")
    program.write_text("import library\ndef fails():\n    raise ValueError('told')\nlibrary.call(fails)\n")
    done = subprocess.run([sys.executable, "-m", "gradix", str(program)], capture_output=True, text=True,
                          env={"PYTHONPATH": f"{tmp_path}:{Path(gradix.__file__).parents[1]}", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 1 and "ValueError: told" in done.stderr
    assert "library.py" not in done.stderr and "in fails" in done.stderr


def test_types_of_tangents():
    assert jnp.ones(2).aval.to_tangent_aval() is jnp.ones(2).aval
    assert jnp.ones(2, int).aval.to_tangent_aval().dtype == gradix.float0
    assert not source.is_inside(__file__)
