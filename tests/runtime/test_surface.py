"""The names of jaxlib in use, and what merely importing the runtime must not do."""

import ast
import importlib
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradix._runtime as runtime
from gradix._core.aval import make_aval
from gradix._runtime import xla

_FOLDER = pathlib.Path(runtime.__file__).parent

# Every attribute of jaxlib's modules that the runtime reads.
NAMES = {
    "jaxlib._jax": {
        "ArrayCopySemantics",
        "ArrayImpl",
        "Device",
        "DeviceList",
        "GSPMDSharding",
        "HostBufferSemantics",
        "JaxRuntimeError",
        "SingleDeviceSharding",
        "batched_copy_array_to_devices_with_sharding",
        "get_distributed_runtime_client",
        "create_preemption_sync_manager",
        "get_distributed_runtime_service",
        "make_gloo_tcp_collectives",
        "array_result_handler",
        "batched_device_put",
        "buffer_to_dlpack_managed_tensor",
        "dlpack_managed_tensor_to_buffer",
        "hlo_module_cost_analysis",
        "mlir",
        "set_tracebacks_enabled",
    },
    "jaxlib.xla_client": {
        "CompileOptions",
        "DeviceAssignment",
        "HloSharding",
        "OpSharding",
        "make_cpu_client",
        "register_custom_call_target",
        "_version",
        "pjrt_plugin_loaded",
        "load_pjrt_plugin_dynamically",
        "pjrt_plugin_initialized",
        "initialize_pjrt_plugin",
        "make_c_api_client",
        "generate_pjrt_gpu_plugin_options",
        "register_custom_type",
        "register_custom_type_handler",
        "register_custom_call_handler",
        "register_custom_call_as_batch_partitionable",
        "register_custom_call_partitioner",
    },
    "jaxlib.version": {"__version__"},
    "jaxlib.mlir.ir": {
        "Context",
        "DialectRegistry",
        "FlatSymbolRefAttr",
        "InsertionPoint",
        "Location",
        "Module",
        "SymbolTable",
        "Type",
    },
    "jaxlib.mlir.dialects.func": {"CallOp", "FuncOp", "ReturnOp"},
    "jaxlib.mlir.passmanager": {"PassManager"},
    "jaxlib.mlir._mlir_libs._jax_mlir_ext": {"register_dialects"},
    "jaxlib.mlir._mlir_libs._stablehlo": {"register_dialect"},
    "jaxlib.mlir._mlir_libs._sdy": {"register_dialect"},
    "jaxlib.lapack": {"registrations"},
    "jaxlib.cpu._lapack": {"initialize"},
    "jaxlib.cpu_sparse": {"registrations"},
}
ALIASES = {"_jax": "jaxlib._jax", "xc": "jaxlib.xla_client"}


@pytest.mark.parametrize("module", sorted(NAMES))
def test_the_names_are_there(module):
    missing = {n for n in NAMES[module] if not hasattr(importlib.import_module(module), n)}
    assert not missing, f"{module} no longer has {sorted(missing)}"


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("xla*.py")), ids=lambda p: p.stem)
def test_the_list_of_names_is_whole(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ALIASES:
            assert node.attr in NAMES[ALIASES[node.value.id]], f"{path.name} uses {node.value.id}.{node.attr}"


def test_only_the_xla_files_import_jaxlib():
    for path in _FOLDER.glob("*.py"):
        names = {
            n
            for node in ast.walk(ast.parse(path.read_text()))
            for n in (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert path.stem.startswith("xla") or not any(n.split(".")[0] == "jaxlib" for n in names), path.name


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=_FOLDER.parents[1]
    )


def test_importing_starts_nothing_heavy():
    done = run(
        "import sys; from gradix._runtime import xla; assert not xla.is_started();"
        "print([m for m in ('jax', 'scipy', 'jaxlib.mlir', 'opt_einsum') if m in sys.modules])"
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_calls_with_numpy_arrays_and_donation_import_no_jax():
    done = run("""if True:
        import sys, numpy as np, gradix, gradix.numpy as jnp
        f = gradix.jit(lambda x, n: x * n)
        g = gradix.jit(lambda x: x + 1, donate_argnums=0, donate_strict=True)
        for i in range(6):
            f(np.ones(8, np.float32), 2.0)
            x = jnp.from_dlpack(np.zeros(64, np.float32)) * 2
            f(x, 1.0), str(x)
            y = g(g(x))
            str(y), g(y)
        assert f._fast and 'jax' not in sys.modules""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_running_imports_no_jax_and_prints_nothing():
    done = run("""if True:
        import sys, numpy as np, ml_dtypes
        from gradix._core.aval import make_aval
        from gradix._runtime import xla
        a = make_aval((3,), np.dtype(ml_dtypes.bfloat16))
        b = xla.put(np.ones(3, a.dtype), a)
        t = "tensor<3xbf16>"
        ex = xla.compile(f"module @m {{ func.func public @main(%a: {t}) -> {t} {{ return %a : {t} }} }}", [a], [a])
        assert xla.get(ex([b])[0]).tolist() == [1, 1, 1] and 'jax' not in sys.modules""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def without_loader(stderr: str) -> str:
    """What was written but for the lines of XLA's loader: until 0.10.2 it takes LLVM's tuning for features of the CPU."""
    return "".join([line for line in stderr.splitlines(True) if "cpu_aot_loader.cc" not in line])


def test_programs_run_on_the_device_asked_for():
    done = run("""if True:
        import numpy as np
        from gradix._core.aval import make_aval
        from gradix._runtime import xla
        xla.configure(num_devices=4)
        d, a, t = xla.devices()[2], make_aval((3,), np.dtype("f4")), "tensor<3xf32>"
        b = xla.put(np.ones(3, "f4"), a, d)
        text = f"module @m {{ func.func public @main(%a: {t}) -> {t} {{ return %a : {t} }} }}"
        ex = xla.compile(text, [a], [a], on=xla.On((d,)))
        again = xla.deserialize(ex.serialize(), [a], [a], on=xla.On((d,)))
        for e in (ex, again):
            out, = e([b])
            assert e.device is d and out._sharding._device is d and xla.get(out).tolist() == [1, 1, 1]
        print(len(xla.devices()))""")
    assert (done.returncode, done.stdout.strip(), without_loader(done.stderr)) == (0, "4", "")


def test_threads_share_a_program():
    a, t = make_aval((5000,), np.dtype("f4")), "tensor<5000xf32>"
    ex = xla.compile(
        f"module @m {{ func.func public @main(%a: {t}) -> {t} {{ %0 = stablehlo.add %a, %a : {t}\n"
        f"return %0 : {t} }} }}",
        [a],
        [a],
    )

    def work(i):
        x = np.full(5000, i, "f4")
        return all((xla.get(ex([xla.put(x, a)])[0]) == 2 * i).all() for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
