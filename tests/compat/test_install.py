"""gradix under the name jax, in fresh processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, text=None):
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], input=text, capture_output=True, text=True, timeout=300, cwd=ROOT
    )


def check(code: str) -> str:
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.x32
def test_programs_written_for_jax_run():
    assert (
        check("""
import gradix
gradix.install_as_jax()
gradix.install_as_jax()
import jax, jax.numpy as jnp, jax.tree_util, jax.random
from jax import lax, numpy, grad
from jax.numpy import sin
from jax.interpreters import ad
import jax.extend.core as jex
import jax.version
assert jax.__version__ == jax.version.__version__ == "0.10.2" and jax.__version_info__ == (0, 10, 2)
assert jnp is gradix.numpy and jax.random is gradix.random and jax.Array is gradix.Array
assert ad is gradix.interpreters.ad
import sys
assert all(sys.modules["jax." + name] is sys.modules["gradix." + name] for name in ("tree_util", "errors", "typing"))
assert jnp.__name__ == "gradix.numpy" and jnp.__spec__.name == "gradix.numpy"
assert "jit" in dir(jax) and jax.config is gradix.config
print(jax.jit(grad(lambda x: sin(x) ** 2))(0.5))
""")
        == "0.841471\n"
    )


@pytest.mark.parametrize(
    "name, why",
    [
        ("jax._src.no_such", "internal to JAX"),
        ("jax.no_such", "gradix.no_such"),
        ("jax.compat", "internal to JAX"),
        ("jax.numpy.no_such", "gradix.numpy.no_such"),
    ],
)
def test_modules_that_are_not_there(name, why):
    assert why in check(f"""
import gradix
gradix.install_as_jax()
try:
    import {name}
except ModuleNotFoundError as e:
    print(e)
""")


def test_missing_names_say_whose_they_are():
    assert check("""
import gradix
gradix.install_as_jax()
import jax
try:
    jax.no_such
except AttributeError as e:
    print(e)
assert jax._src.xla_bridge._backends.get("cpu") is None      # asking starts none
""").startswith("module 'jax' has no attribute 'no_such': gradix")


def test_uninstall():
    check("""
import sys, gradix
from gradix import compat
gradix.install_as_jax()
import jax.numpy
assert compat.is_installed()
compat.uninstall()
assert not compat.is_installed() and not [n for n in sys.modules if n.split(".")[0] == "jax"]
compat.uninstall()
""")


def test_refused_beside_jax_itself():
    done = run(
        "-c",
        """
import sys, types
sys.modules["jax"] = types.ModuleType("jax")
import gradix
gradix.install_as_jax()
""",
    )
    assert "must be called before jax is imported" in done.stderr


class TestMain:
    def test_script(self, tmp_path):
        (tmp_path / "helper.py").write_text("import jax.numpy as jnp\nvalue = jnp.ones(2)\n")
        script = tmp_path / "program.py"
        script.write_text("import sys, jax, helper\nprint(jax.__version__, helper.value, sys.argv[1:], __name__)\n")
        done = run("-m", "gradix", str(script), "a", "b")
        assert done.stdout == "0.10.2 [1. 1.] ['a', 'b'] __main__\n", done.stderr

    def test_code_and_module(self):
        assert run("-m", "gradix", "-c", "import jax; print(jax.__version__)").stdout == "0.10.2\n"
        assert "usage" in run("-m", "gradix", "-m", "json.tool", "--help").stdout

    def test_exit_status_passes_on(self, tmp_path):
        script = tmp_path / "program.py"
        script.write_text("raise SystemExit(7)\n")
        assert run("-m", "gradix", str(script)).returncode == 7

    def test_programs_on_standard_input(self):
        program = (
            "import sys, jax\ndef f(x): return jax.numpy.sin(x)\nprint(jax.grad(f)(0.0), f.__module__, sys.argv)\n"
        )
        for arguments, argv in (((), [""]), (("-", "a"), ["-", "a"])):
            done = run("-m", "gradix", *arguments, text=program)
            assert done.stdout == f"1.0 __main__ {argv}\n", done.stderr

    @pytest.mark.x32
    def test_interactive_session(self):
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        program = subprocess.Popen(
            [sys.executable, "-m", "gradix"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        os.write(ours, b"import jax\nx = jax.numpy.ones(2)\nx + 1\n1 / 0\nx.shape\nexit()\n")
        out = program.communicate(timeout=120)[0]
        os.close(ours)
        os.close(theirs)
        assert "with gradix in place of jax 0.10.2" in out and "Array([2., 2.], dtype=float32)" in out
        assert "ZeroDivisionError" in out and "(2,)" in out and program.returncode == 0

    def test_unknown_modules_are_told_without_a_traceback(self):
        for name in ("no_such_module", "no_such.module"):
            done = run("-m", "gradix", "-m", name)
            assert done.returncode == 1 and done.stderr == f"python -m gradix: no module named {name!r}\n"

    @pytest.mark.parametrize("arguments", [("no_such.py",), ("-m",)])
    def test_usage_errors(self, arguments):
        done = run("-m", "gradix", *arguments)
        assert done.returncode == 2 and "usage" in done.stderr


def test_masks_hide_infinities_in_programs_for_jax_alone():
    """As XLA has it where it turns a product with a mask into a selection; in our own name 0 times infinity is NaN."""
    code = """
import gradix, gradix.numpy as jnp
{}x = jnp.array([0.0, 1.0])
values = [
    gradix.jit(lambda x: (x > 0) * jnp.log(x))(x),
    (x > 0) * jnp.log(x),
    jnp.log(x) * gradix.device_get(x > 0),
    jnp.multiply(jnp.log(x) + 0j, x > 0).real,
    (jnp.log(x) * (x > 0)[None])[0],
    jnp.stack([jnp.dot(jnp.log(x), x > 0), 0]),
    jnp.stack([gradix.jit(jnp.vecdot)(jnp.log(x)[None], x[None] > 0)[0], 0]),
    jnp.stack([jnp.einsum("i,ji->", jnp.log(x), x[None] > 0), 0]),
    jnp.stack([jnp.average(jnp.log(x), weights=x > 0), 0]),
    gradix.vmap(lambda x: jnp.log(x) * (x > 0))(x),
    gradix.jvp(lambda x: x * (x > 0), (x,), (jnp.log(x),))[1],
]
print(*set(map(str, [v.tolist() for v in values])), gradix.config.gradix_rewrites)
spread = [f(jnp.log(x)[:, None], x > 0).diagonal().tolist() for f in (jnp.multiply, gradix.jit(jnp.multiply))]
assert str(spread) == "[[nan, 0.0], [nan, 0.0]]", spread  # the compiler selects by whole masks alone
"""
    for first, expected in (
        ("", "[nan, 0.0] all"),
        ("gradix.install_as_jax(); ", "[0.0, 0.0] all,-products_with_masks,-inner_products_with_masks"),
        ("gradix.install_as_jax(); gradix.compat.uninstall(); ", "[nan, 0.0] all"),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, text=True)
        assert done.stdout.strip() == expected, done.stderr
