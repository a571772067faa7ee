"""What is asked of XLA on CUDA and TPU: text that the CPU's XLA, which has the same operations, compiles to the same results."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import xla

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
        return lax.linalg.triangular_solve(a, b, left_side=left_side, lower=True, transpose_a=transpose_a, conjugate_a=conjugate_a)
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
