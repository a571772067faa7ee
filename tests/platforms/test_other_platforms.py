"""What is asked of XLA on CUDA and TPU: text that the CPU's XLA, which has the same operations, compiles to the same results."""

import importlib.util
import re
from itertools import product

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix._core.aval import make_aval
from gradix._runtime import xla
from tests.rules.test_rules import ALL, outputs

PLATFORMS = ("cuda", "tpu")


def text_for(platform: str, f, *args) -> str:
    return gradix.jit(lambda *args: f(*args)).trace(*args).lower(lowering_platforms=(platform,)).as_text()


def run_text(text: str, *args):
    arrays = [jnp.asarray(a) for a in args]
    program = xla.compile(text, [a.aval for a in arrays], [arrays[-1].aval], options=xla.options())
    return np.asarray(xla.get(program.run([xla.put(np.asarray(a), a.aval) for a in arrays])[0]))


def positive(dtype):
    a = np.random.default_rng(0).standard_normal((5, 4, 4)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * np.random.default_rng(1).standard_normal(a.shape).astype(dtype)
    return a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(4, dtype=dtype)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_cholesky(platform, dtype):
    a = positive(dtype)
    text = text_for(platform, lambda a: lax.linalg.cholesky(a, symmetrize_input=False), a)
    assert "stablehlo.cholesky" in text and "lapack" not in text
    np.testing.assert_allclose(run_text(text, a), np.linalg.cholesky(a), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize(("transpose_a", "conjugate_a"), [(False, False), (True, False), (True, True), (False, True)])
def test_triangular_solve(platform, left_side, transpose_a, conjugate_a):
    a = np.tril(positive(np.complex64))
    b = np.random.default_rng(2).standard_normal((5, 4, 3) if left_side else (5, 3, 4)).astype(np.complex64)

    def solve(a, b):
        return lax.linalg.triangular_solve(
            a, b, left_side=left_side, lower=True, transpose_a=transpose_a, conjugate_a=conjugate_a
        )

    text = text_for(platform, solve, a, b)
    assert "stablehlo.triangular_solve" in text and "lapack" not in text
    np.testing.assert_allclose(run_text(text, a, b), np.asarray(solve(a, b)), rtol=1e-4, atol=1e-5)


def test_without_the_tables_for_correctness_lapack_is_called():
    with pytest.raises(ValueError, match="lists the names"):
        gradix.config.update("gradix_rewrites", "no_such_selection")
    before = gradix.config.gradix_rewrites
    gradix.config.update("gradix_rewrites", "off")
    try:
        assert "lapack_spotrf_ffi" in text_for("cuda", lambda a: lax.linalg.cholesky(a), positive(np.float32))
    finally:
        gradix.config.update("gradix_rewrites", before)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_orthogonal_factors_of_tpus(dtype):
    a = positive(dtype)[:, :, :3]
    for full in (False, True):
        text = text_for("tpu", lambda a, full=full: jnp.matmul(*lax.linalg.qr(a, full_matrices=full)), a)
        assert (
            "@Qr" in text.replace('"', "@")
            and "ProductOfElementaryHouseholderReflectors" in text
            and "lapack" not in text
        )
        np.testing.assert_allclose(run_text(text, a), a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_eigenvectors_of_tpus(dtype):
    a = positive(dtype)

    def back(a):
        v, w = lax.linalg.eigh(a)
        return (v * w[:, None].astype(v.dtype)) @ v.conj().swapaxes(-1, -2)

    text = text_for("tpu", back, a)
    assert "Eigh" in text and "lapack" not in text
    np.testing.assert_allclose(run_text(text, a), a, rtol=1e-3, atol=1e-3)


SOLVED = {
    "lu": lambda lax, x: lax.linalg.lu(x),
    "qr": lambda lax, x: lax.linalg.qr(x, full_matrices=False),
    "all of q": lambda lax, x: lax.linalg.qr(x),
    "eigh": lambda lax, x: lax.linalg.eigh(x[..., :3, :3], symmetrize_input=False),
    "upper eigh": lambda lax, x: lax.linalg.eigh(x[..., :3, :3], lower=False, symmetrize_input=False),
    "svd": lambda lax, x: lax.linalg.svd(x, full_matrices=False),
    "all of svd": lambda lax, x: lax.linalg.svd(x),
    "singular values": lambda lax, x: lax.linalg.svd(x, compute_uv=False),
    "product": lambda lax, x: lax.linalg.householder_product(x, x[..., 0, :3]),
    "reflected": lambda lax, x: lax.linalg.ormqr(x, x[..., 0, :3], x[..., :2]),
    "reflected on the right": lambda lax, x: lax.linalg.ormqr(
        x[..., :3, :3], x[..., 0, :3], x[..., :2, :3], left=False, transpose=True
    ),
    "tridiagonal": lambda lax, x: lax.linalg.tridiagonal(x[..., :3, :3]),
    "upper tridiagonal": lambda lax, x: lax.linalg.tridiagonal(x[..., :3, :3], lower=False),
    "tridiagonal solve": lambda lax, x: lax.linalg.tridiagonal_solve(x[..., 0], x[..., 1], x[..., 2], x),
}
# by cuSPARSE and hipSPARSE, and of the solvers those that TPUs lack
ONLY_GPUS = ("reflected", "reflected on the right", "tridiagonal", "upper tridiagonal", "tridiagonal solve")
# those above 1024 are solved another way
SHAPES = {"small": (4, 3), "stacked": (2, 4, 3), "tall": (1200, 1100), "wide": (1100, 1200)}
LIBRARIES = ("cusolver", "hipsolver", "cusparse", "hipsparse")
CALL = re.compile(r"custom_call @(\w+).* : (\(tensor.*)")


def calls(export, jit, lax, struct, name: str, platform: str, shape, dtype) -> list:
    """The functions of the runtime that a program calls: their names, types, layouts and configurations."""
    unstable = [
        export.DisabledSafetyCheck.custom_call(f"{library}_{name}_ffi")
        for library, name in product(LIBRARIES, ("ormqr", "gtsv2"))
    ]
    made = export.export(jit(lambda x: SOLVED[name](lax, x)), platforms=(platform,), disabled_checks=unstable)
    text = made(struct(shape, dtype)).mlir_module()
    found = []
    for line in text.splitlines():
        line = re.sub(r" loc\(.*", "", line)
        if m := CALL.search(line):
            config = re.search(r"(?:mhlo\.)?backend_config = (\{[^}]*\}|\"[^\"]*\")", line)
            layouts = re.findall(r"(?:operand_layouts|result_layouts) = (\[.*?\])(?:,|\})", line)
            aliases = re.findall(r"output_tuple_indices = \[(\d*)\], operand_index = (\d+)", line)
            found.append((m[1], m[2].strip(), config[1].replace("{}", "") if config else "", layouts, aliases))
    return sorted(found)


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
@pytest.mark.parametrize("name", SOLVED)
def test_solvers_are_called_as_the_reference_implementation_calls_them(name, platform):
    import jax
    from jax import export as peer

    sizes = SHAPES if name in ("svd", "singular values") else ("small", "stacked")
    for shape in [SHAPES[s] for s in sizes]:
        for dtype in ("float32", "complex64") if shape[-1] < 9 else ("float32",):
            if platform == "tpu" and name in ONLY_GPUS:
                with pytest.raises(NotImplementedError, match="cannot be exported for the platform 'tpu'"):
                    calls(export, gradix.jit, lax, gradix.ShapeDtypeStruct, name, platform, shape, dtype)
                continue
            if platform == "tpu" and "sv" in name or name == "singular values" and platform == "tpu":
                with pytest.raises(NotImplementedError, match="singular values"):
                    calls(export, gradix.jit, lax, gradix.ShapeDtypeStruct, name, platform, shape, dtype)
                continue
            ours = calls(export, gradix.jit, lax, gradix.ShapeDtypeStruct, name, platform, shape, dtype)
            theirs = calls(peer, jax.jit, jax.lax, jax.ShapeDtypeStruct, name, platform, shape, dtype)
            assert ours == theirs and ours, (shape, dtype)


CONVOLVED = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "complex64", "complex128"]


@pytest.mark.parametrize("preferred", [None, "wider"])
@pytest.mark.parametrize("dtype", CONVOLVED)
def test_convolutions_of_gpus(dtype, preferred):
    """Integers are exact, modulo the range of the dtype; no convolution is of a type that a GPU lacks."""
    rng = np.random.default_rng(0)
    with gradix.enable_x64():
        kind = np.dtype(dtype)
        x, k = (numbers_of(kind, rng, shape) for shape in ((2, 3, 8, 9), (4, 3, 3, 2)))
        wider = None if preferred is None or kind.kind in "bc" else np.dtype(f"{kind.kind}8")

        def f(x, k):
            return lax.conv_general_dilated(x, k, (1, 2), "SAME", preferred_element_type=wider)

        text = text_for("cuda", f, x, k)
        assert not re.search(r"convolution\".*-> tensor<[x\d]*(complex|u?i)", text) and "convolution" in text
        out = gradix.eval_shape(f, x, k)
        program = xla.compile(
            text, [jnp.asarray(a).aval for a in (x, k)], [make_aval(out.shape, out.dtype)], options=xla.options()
        )
        found = np.asarray(xla.get(program.run([xla.put(a, jnp.asarray(a).aval) for a in (x, k)])[0]))
        want = np.asarray(f(x, k))
    assert found.dtype == want.dtype
    if kind.kind == "c":
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, want)


def numbers_of(kind, rng, shape):
    if kind.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind)
    low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return rng.integers(low, high, shape, dtype=np.uint64 if kind == "uint64" else np.int64, endpoint=True).astype(kind)


@pytest.mark.parametrize("length, widens", [(3, True), (31, True), (32, False)])
def test_short_products_of_narrow_integers_on_gpus(length, widens):
    x, y = np.full((2, length), 5, np.int8), np.full((length, 4), -7, np.int8)
    for preferred in (None, np.int32):
        text = text_for(
            "cuda",
            lambda x, y, p=preferred: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=p),
            x,
            y,
        )
        assert bool(re.search(r"dot_general.*tensor<2x\d+xi32>, tensor", text)) == widens


@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_no_operation_calls_a_function_of_cpus_on_a_gpu(spec):
    sample, dtype = spec.samples[0], spec.dtypes[0]
    rng = np.random.default_rng(0)
    args = [o.make(dtype, rng) for o in sample.operands]
    text = text_for("cuda", lambda *xs: outputs(spec, sample, xs), *args)
    called = set(re.findall(r'call_target_name = "([^"]*)"', text)) - ONLY_ON_CPUS
    assert not [name for name in called if re.search(r"lapack|gradix_host|cpu|_perturbed_", name)]


# XLA has one algorithm that bounds pivots away from zero, for CPUs
ONLY_ON_CPUS = {"tridiagonal_solve_perturbed_ffi"}


def test_the_host_of_a_gpu_gets_arrays_in_the_order_of_numpy():
    """XLA chooses another order for a result that a solver reads, unless the call says which it takes."""
    a = positive(np.float32)
    text = text_for("cuda", lambda a: jnp.linalg.inv(jnp.linalg.eig(a)[1]), a)
    line = next(line for line in text.splitlines() if "xla_ffi_python_gpu_callback" in line)
    assert (
        "operand_layouts = [dense<[2, 1, 0]>" in line
        and "result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[2, 1, 0]>" in line
    )


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_what_only_cpus_have_is_not_exported_for_others(platform):
    a = gradix.ShapeDtypeStruct((3, 3), "float32")
    for f, what in (
        (jnp.linalg.eig, "eigenvectors"),
        (gradix.scipy.linalg.schur, "Schur"),
        (gradix.scipy.linalg.hessenberg, "Hessenberg"),
        (lambda a: gradix.scipy.linalg.qr(a, pivoting=True), "with pivots"),
    ):
        for platforms in ((platform,), ("cpu", platform)):
            with pytest.raises(
                NotImplementedError,
                match=f"cannot be exported for the platform '{platform}': it computes .*{what}.*platform_dependent",
            ):
                export.export(gradix.jit(f), platforms=platforms)(a)
        chosen = gradix.jit(
            lambda a, f=f: lax.platform_dependent(
                a,
                cpu=lambda a: gradix.tree.leaves(f(a))[0].real,
                default=lambda a: a[:, 0] if what == "eigenvectors" else a,
            )
        )
        e = export.export(chosen, platforms=("cpu", platform))(a)
        assert e.platforms == ("cpu", platform) and "lapack" in e.mlir_module()
