"""The commands of `python -m gradix`, and that asking for help does nothing."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import gradix
from gradix.compat import commands, programs


def run(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "gradix", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**__import__("os").environ, **env},
    )


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nimport jax\nimport jax.numpy as jnp\n\n\ndef f(x):\n    y = x @ x\n    return y.sum()\n\n\n"
        "print(jax.jit(f)(jnp.ones((64, 64))), sys.argv[1:])\nsys.exit(len(sys.argv) - 1)\n"
    )
    return path


@pytest.mark.parametrize("name", programs.COMMANDS)
def test_help_explains_and_does_nothing(name, capsys, monkeypatch):
    for acting in ("_enable", "_disable", "_cache", "_doctor", "_check", "_config", "_profiled", "_explained"):
        monkeypatch.setattr(commands, acting, lambda given: pytest.fail("it acts"))
    with pytest.raises(SystemExit) as e:
        commands.act([name, "--help"])
    assert e.value.code == 0 and "usage: python -m gradix" in capsys.readouterr().out


def test_version_and_usage(capsys):
    with pytest.raises(SystemExit):
        commands.act(["--version"])
    assert capsys.readouterr().out == f"gradix {gradix.__version__}\n"
    with pytest.raises(SystemExit) as e:
        commands.act(["cache", "burn"])
    assert e.value.code == 2 and "burn" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        commands.act(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text or f"\n    {name}\n" in text for name in programs.COMMANDS)


def test_a_program_is_profiled(script, tmp_path):
    done = run(
        "profile",
        "--memory",
        "--html",
        str(tmp_path / "p.html"),
        "--perfetto",
        str(tmp_path / "t.json"),
        str(script),
        "a",
        "--b",
    )
    assert done.returncode == 2, done.stderr
    assert "262144.0 ['a', '--b']" in done.stdout and re.search(r"program\.py:7 +y = x @ x", done.stdout)
    assert re.search(r"memory of f: peak .* KiB = arguments(.*\n)+.*argument x ", done.stdout)
    assert (
        "y = x @ x" in (tmp_path / "p.html").read_text()
        and json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    )


def test_a_program_is_run_and_explained(script):
    assert run("run", str(script)).stdout == "262144.0 []\n"
    done = run("explain", str(script), "x")
    assert done.returncode == 1 and re.search(r"trace +f \(", done.stderr) and "262144.0 ['x']" in done.stdout


def test_a_program_is_run_with_checks(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import jax\nimport jax.numpy as jnp\nprint(jax.jit(lambda i: jnp.arange(3)[i])(5))\n")
    assert run("run", str(path)).stdout == "2\n"
    done = run("run", "--check", "nan,index", str(path))
    assert done.returncode == 1 and re.search(r"IndexError: .*index 5 .*wrong\.py:3", done.stderr)
    done = run("run", "--check", "indx", str(path))
    assert done.returncode == 2 and "check must name kinds of errors" in done.stderr


def test_the_cache_is_told_of_and_cleared(script, tmp_path):
    where = {"GRADIX_CACHE": str(tmp_path / "cache")}
    run(str(script), **where)
    before = run("cache", "info", **where).stdout
    count = int(before.split()[0])
    assert count >= 1 and str(tmp_path / "cache") in before
    assert run("cache", "clear", **where).stdout.startswith(f"deleted {count} programs")
    assert run("cache", "info", **where).stdout.startswith("0 programs")
    assert run("cache", "info", GRADIX_CACHE="off").stdout == "the disk cache is off\n"


def test_options_are_listed(capsys, monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "")
    monkeypatch.setenv("GRADIX_TIER", "xla")
    assert commands.act(["config"]) == 0
    assert set(gradix.config.values) == {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert commands.act(["config", "gradix_tier"]) == 0
    assert capsys.readouterr().out == "gradix_tier  'xla'  environment variable GRADIX_TIER\n"
    assert commands.act(["config", "jax_no_such"]) == 2 and "no option 'jax_no_such'" in capsys.readouterr().err


def test_a_file_with_the_name_of_a_command_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doctor").write_text("print('mine')")
    assert not commands.is_command(["doctor"]) and commands.is_command(["check"])
    assert run("doctor").stdout == "mine\n"


@pytest.mark.parametrize("command", ["config", "doctor"])
def test_a_reader_may_stop(command):
    """As `head` does, in `gradix config | head`."""
    root = str(pathlib.Path(gradix.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "gradix", command],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        started.stdout.close()
        assert "Traceback" not in started.stderr.read() and started.wait(120) == 1


def test_misspelt_commands_and_absent_programs_are_told_and_nothing_else():
    misspelt, absent = run("profil", "program.py"), run("profile", "absent.py")
    assert misspelt.returncode == absent.returncode == 2
    assert "Did you mean 'profile'?" in misspelt.stderr
    assert "can't open file 'absent.py'" in absent.stderr and not absent.stdout
