"""Plug-ins for GPUs: a wheel is found by its files, and what it lacks is said; no GPU is needed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import gradix
from gradix._runtime import xla, xla_plugins as plugins

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path):
    """A folder with a wheel as NVIDIA's is: a library that is none, and packages of which one must not be imported."""

    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    write("jax_plugins/xla_cuda13/xla_cuda_plugin.so", "no library")
    write("jax_plugins/xla_cuda13/__init__.py", "raise ImportError('this package needs another library')")
    write("jax_cuda13_plugin/__init__.py", "")
    write(
        "jax_cuda13_plugin/cuda_plugin_extension.py",
        "def register_custom_type(*a): ...\ndef register_custom_call_target(*a): ...\n"
        "def ffi_types(): return {'t': 1}\ndef ffi_handlers(): return {'xla_ffi_python_gpu_callback': 2}\n",
    )
    write("jax_cuda13_pjrt-9.9.dist-info/METADATA", "Metadata-Version: 2.1\nName: jax-cuda13-pjrt\nVersion: 9.9\n")
    write(
        "jax_cuda13_pjrt-9.9.dist-info/RECORD",
        "jax_plugins/xla_cuda13/xla_cuda_plugin.so,,\njax_plugins/xla_cuda13/__init__.py,,\n",
    )
    for name in ("cublas", "cublasLt", "cudart"):
        write(f"nvidia/cu13/lib/lib{name}.so.13", "no library")
    return tmp_path


def found_in(site, monkeypatch) -> dict:
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delenv("PJRT_NAMES_AND_LIBRARY_PATHS", raising=False)
    return plugins.installed()


def test_a_wheel_is_found_by_its_files(site, monkeypatch):
    found = found_in(site, monkeypatch)["cuda"]
    assert found.library == site / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
    assert found.extension == "jax_cuda13_plugin" and found.wheel == "jax-cuda13-pjrt 9.9"
    names = [p.name for p in plugins.libraries() if site in p.parents]
    assert names == ["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13"]  # as they need each other


def test_plugins_named_in_the_environment(monkeypatch):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/lib/mine.so,other:/lib/other.so")
    assert plugins.installed()["other"].library == Path("/lib/other.so")
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine")
    with pytest.raises(RuntimeError, match="pairs name:path"):
        plugins.installed()


def test_which_platforms_are_started(site, monkeypatch):
    found = found_in(site, monkeypatch)
    monkeypatch.setattr(plugins, "has_driver", lambda: False)
    assert plugins.wanted(found) == ["cpu"]
    monkeypatch.setattr(plugins, "has_driver", lambda: True)
    assert plugins.wanted(found) == ["cuda", "cpu"] and plugins.wanted({}) == ["cpu"]
    try:
        gradix.config.update("jax_platforms", "gpu,cpu")
        assert plugins.wanted(found) == ["cuda", "cpu"]
        with pytest.raises(RuntimeError, match=r"Unable to initialize backend 'cuda'.*pip install gradix\[cuda13\]"):
            plugins.wanted({})
    finally:
        gradix.config.update("jax_platforms", None)


@pytest.mark.parametrize(
    "name, version, want",
    [("cpu", "", "cpu"), ("gpu", "cuda 13000", "cuda"), ("gpu", "rocm 60300", "rocm"), ("tpu", "", "tpu")],
)
def test_the_platform_that_programs_for_a_device_are_lowered_for(name, version, want):
    client = SimpleNamespace(platform_version=version)
    assert xla.platform_of(SimpleNamespace(platform=name, client=client)) == want


def test_options_of_the_client(monkeypatch):
    cuda = plugins.Plugin("cuda", Path("x"))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    try:
        gradix.config.update("jax_cuda_visible_devices", "0,2")
        made = plugins.client_options(cuda, 1, 4)
    finally:
        gradix.config.update("jax_cuda_visible_devices", "all")
    assert (
        made["visible_devices"] == [0, 2]
        and made["memory_fraction"] == 0.5
        and (made["node_id"], made["num_nodes"]) == (1, 4)
    )
    assert plugins.client_options(plugins.Plugin("mine", Path("x"))) == {}


def test_what_is_registered(site, monkeypatch):
    found, said = found_in(site, monkeypatch)["cuda"], []

    class Recorder:
        def __getattr__(self, name):
            return lambda *args, **kwargs: said.append((name, args[0], kwargs.get("platform")))

    monkeypatch.setattr(plugins, "xc", Recorder())
    plugins.register(found, None)
    assert said[:2] == [("register_custom_type_handler", "CUDA", None), ("register_custom_call_handler", "CUDA", None)]
    assert ("register_custom_type", "t", "CUDA") in said and (
        "register_custom_call_target",
        "xla_ffi_python_gpu_callback",
        "CUDA",
    ) in said
    assert not [s for s in said[2:] if s[2] != "CUDA"]


@pytest.mark.parametrize(
    ("platforms", "match"), [("cuda", "jax-cuda13-pjrt 9.9; it must have the version of jaxlib"), ("cpu", None)]
)
def test_a_wheel_that_does_not_fit_says_so(site, platforms, match):
    env = {**os.environ, "JAX_PLATFORMS": platforms, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    program = "import gradix; print(gradix.devices()[0].platform)"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    if match is None:
        assert done.stdout.strip() == "cpu", done.stderr
    else:
        last = next(line for line in done.stderr.splitlines() if line.startswith("RuntimeError: "))
        assert done.returncode and "Unable to initialize backend 'cuda'" in last and match in last
