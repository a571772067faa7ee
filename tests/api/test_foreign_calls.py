"""Compiled functions known to XLA by name: one of LAPACK's, which jaxlib brings, and ones compiled here."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, lax
from gradix.extend.core import Primitive
from gradix.interpreters import batching, mlir

# The functions called are of float32.
pytestmark = pytest.mark.x32

SOURCE = r"""
#include <cmath>
#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
ffi::Error PowerImpl(float scale, int64_t power, std::string_view kind, ffi::Buffer<ffi::F32> x,
                     ffi::ResultBuffer<ffi::F32> y) {
  if (kind == "fail") return ffi::Error(ffi::ErrorCode::kInvalidArgument, "told to fail");
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = scale * std::pow(x.typed_data()[i], static_cast<float>(power));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Power, PowerImpl, ffi::Ffi::Bind().Attr<float>("scale").Attr<int64_t>("power")
    .Attr<std::string_view>("kind").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
ffi::Error PairImpl(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y, ffi::ResultBuffer<ffi::F32> sum,
                    ffi::ResultBuffer<ffi::S32> sizes) {
  size_t nx = x.element_count(), ny = y.element_count();
  for (size_t i = 0; i < sum->element_count(); ++i) sum->typed_data()[i] = x.typed_data()[i % nx] + y.typed_data()[i % ny];
  for (size_t i = 0; i < sizes->element_count(); ++i) sizes->typed_data()[i] = static_cast<int>(ny);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Pair, PairImpl, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Arg<ffi::Buffer<ffi::F32>>()
    .Ret<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::S32>>());
"""
compiler = shutil.which("c++") or shutil.which("g++")
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C++ compiler")
like = gradix.ShapeDtypeStruct


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "calls.cc").write_text(SOURCE)
    subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-O0",
            "-w",
            "-shared",
            "-fPIC",
            f"-I{gradix.ffi.include_dir()}",
            "-o",
            str(folder / "calls.so"),
            str(folder / "calls.cc"),
        ],
        check=True,
    )
    lib = ctypes.cdll.LoadLibrary(str(folder / "calls.so"))
    gradix.ffi.register_ffi_target("test_power", gradix.ffi.pycapsule(lib.Power), platform="cpu")
    gradix.ffi.register_ffi_target("test_pair", gradix.ffi.pycapsule(lib.Pair))


def power(x, kind="ok", **options):
    return gradix.ffi.ffi_call("test_power", like(x.shape, x.dtype), **options)(
        x, scale=np.float32(2), power=2, kind=kind
    )


def cholesky(x, **options):
    """The lower factor, by the function of LAPACK that takes Fortran's order."""
    call = gradix.ffi.ffi_call(
        "lapack_spotrf_ffi",
        (like(x.shape, x.dtype), like(x.shape[:-2], jnp.int32)),
        input_layouts=[(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)],
        output_layouts=[(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2), None],
        **options,
    )
    return call(x, uplo=np.uint8(ord("L")))


def positive(*shape):
    a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return jnp.asarray(a @ a.swapaxes(-1, -2) + 3 * np.eye(shape[-1], dtype=np.float32))


def test_a_function_of_lapack():
    a = positive(3, 3)
    factor, info = gradix.jit(cholesky)(a)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(np.asarray(a)), rtol=1e-5)
    assert info == 0
    assert "lapack_spotrf_ffi" in gradix.jit(cholesky).lower(a).as_text()


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_vmap_of_a_function_of_lapack(method):
    a = positive(4, 3, 3)
    factors, info = gradix.vmap(lambda x: cholesky(x, vmap_method=method))(a)
    np.testing.assert_allclose(np.tril(factors), np.linalg.cholesky(np.asarray(a)), rtol=1e-5)
    assert info.shape == (4,)


@needs_compiler
def test_attributes_reach_the_function(library):
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(power(x), [0, 2, 8])
    np.testing.assert_array_equal(gradix.jit(power)(x), [0, 2, 8])
    with pytest.raises(gradix.errors.JaxRuntimeError, match="told to fail"):
        gradix.block_until_ready(power(x, kind="fail"))
    with pytest.raises(gradix.errors.JaxRuntimeError, match="expected F32 but got F64"):
        gradix.block_until_ready(
            gradix.ffi.ffi_call("test_power", like((3,), "float32"))(x, scale=1.0, power=1, kind="")
        )


@needs_compiler
@pytest.mark.parametrize(
    "method, sizes", [("sequential", 1), ("expand_dims", 1), ("broadcast_all", 6), ("legacy_vectorized", 1)]
)
def test_how_vmap_calls_it(library, method, sizes):
    def add(x, y):
        return gradix.ffi.ffi_call("test_pair", [like((), "float32"), like((), "int32")], vmap_method=method)(x, y)

    total, seen = gradix.vmap(add, (0, None))(jnp.arange(6.0), jnp.float32(10))
    np.testing.assert_array_equal(total, 10 + np.arange(6.0))
    np.testing.assert_array_equal(seen, np.full(6, sizes))


@needs_compiler
def test_layouts_and_derivatives(library):
    x = jnp.arange(6.0).reshape(2, 3)

    @gradix.custom_jvp
    def square(x):
        return power(x) / 2

    square.defjvp(lambda primals, tangents: (square(*primals), 2 * primals[0] * tangents[0]))
    np.testing.assert_array_equal(gradix.grad(lambda x: square(x).sum())(x), 2 * np.asarray(x))
    turned = power(x, input_layouts=[(1, 0)], output_layouts=(0, 1))  # elements in the order they lie in memory
    np.testing.assert_array_equal(turned.ravel(), 2 * np.asarray(x).T.ravel() ** 2)


@needs_compiler
def test_a_primitive_lowered_to_a_call(library):
    power_p = Primitive("test_power")
    power_p.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(power_p, gradix.ffi.ffi_lowering("test_power", backend_config={"power": 3, "kind": "ok"}))
    batching.defvectorized(power_p)
    f = gradix.jit(gradix.vmap(lambda x: power_p.bind(x, scale=np.float32(0.5))))
    np.testing.assert_array_equal(f(jnp.arange(3.0)), [0, 0.5, 4])


def test_errors():
    x = jnp.ones((2, 3))
    call = gradix.ffi.ffi_call
    with pytest.raises(gradix.errors.JaxRuntimeError, match="no_such_target"):
        call("no_such_target", like((), "float32"))(x)
    with pytest.raises(ValueError, match="got 'some'"):
        call("f", like((), "float32"), vmap_method="some")
    with pytest.raises(ValueError, match="Got 3 at position 1"):
        call("f", [like((), "float32"), 3])
    with pytest.raises(ValueError, match="'3:0' with input index 3 outside"):
        call("f", like((), "float32"), input_output_aliases={3: 0})(x)
    with pytest.raises(ValueError, match=r"float32\[2,3\] and result 0 is float32\[\]"):
        call("f", like((), "float32"), input_output_aliases={0: 0})(x)
    with pytest.raises(ValueError, match="not an order of the axes"):
        call("f", like((), "float32"), input_layouts=[(0, 0)])(x)
    with pytest.raises(ValueError, match="2 entries for 1 arrays"):
        call("f", like((), "float32"), input_layouts=[None, None])(x)
    with pytest.raises(TypeError, match=r"scale=\[1\] of type list"):
        call("f", like((), "float32"))(x, scale=[1])
    with pytest.raises(ValueError, match="at least 4"):
        call("f", like((), "float32"), custom_call_api_version=2)(x, a=1)
    f = call("f", like((2, 3), "float32"))
    with pytest.raises(ValueError, match="cannot be differentiated"):
        gradix.jvp(f, (x,), (x,))
    with pytest.raises(NotImplementedError, match="vmap_method=None"):
        gradix.vmap(call("f", like((3,), "float32")))(x)


def test_text_and_side_effects():
    def used(x, has_side_effect):
        gradix.ffi.ffi_call("f", like((2,), "float32"), has_side_effect=has_side_effect, input_output_aliases={0: 0})(
            x, table=np.arange(2), more={"deep": True}
        )
        return x

    def text(flag):
        return gradix.jit(lambda x: used(x, flag)).lower(jnp.ones(2)).as_text()

    assert "@f(" not in text(False)
    for part in ("@f(", "has_side_effect = true", "more = {deep = true}", "operand_index = 0", "tensor<2xi64>"):
        assert part in text(True)
    old = gradix.jit(
        gradix.ffi.ffi_call("f", like((), "float32"), custom_call_api_version=1, legacy_backend_config="abc")
    )
    assert (
        'backend_config = "abc"' in old.lower(1.0).as_text() and "api_version" not in old.lower(1.0).as_text()
    )  # version 1 is the default
    jaxpr = gradix.make_jaxpr(lambda x: used(x, True))(jnp.ones(2))
    assert jaxpr.effects


def test_results_are_as_wide_as_they_are_asked_for():
    call = gradix.ffi.ffi_call("f", [like((), np.int64), like((2,), np.float64)])
    assert [x.dtype for x in gradix.eval_shape(call)] == [np.int64, np.float64]
    assert "-> (tensor<i64>, tensor<2xf64>)" in gradix.jit(call).lower().as_text()


def test_calls_with_tokens_happen_in_order():
    array = like((2,), "float32")
    first = gradix.ffi.ffi_call("first", (array, core.abstract_token), input_output_aliases={0: 0})
    last = gradix.ffi.ffi_call("last", array)

    def program(x):
        y, token = first(lax.create_token(), x)
        gradix.debug.print("x is {}", x, ordered=True)
        return last(y, token)

    text = gradix.jit(program).lower(jnp.ones(2)).as_text()
    for part in (
        "@first(%0, %arg0)",
        "operand_index = 1",
        "-> (tensor<2xf32>, !stablehlo.token)",
        "_callback(%1#1, %arg0)",
        "@last(%1#0, %2)",
    ):
        assert part in text
    assert [eqn.primitive.name for eqn in gradix.make_jaxpr(program)(jnp.ones(2)).eqns] == [
        "ffi_call",
        "debug_callback",
        "ffi_call",
    ]
    alone = gradix.jit(lambda: gradix.ffi.ffi_call("alone", core.abstract_token)(lax.create_token()))
    assert "(!stablehlo.token) -> !stablehlo.token" in alone.lower().as_text()
    assert isinstance(gradix.eval_shape(alone), type(lax.create_token()))


def test_a_function_that_nobody_registered():
    call = gradix.ffi.ffi_call("nobody_wrote_it", gradix.ShapeDtypeStruct((3,), np.float32))
    for f in (call, gradix.jit(call)):
        with pytest.raises(gradix.errors.JaxRuntimeError, match=r"NOT_FOUND: .*register_ffi_target\('nobody_wrote_it'"):
            f(jnp.ones(3))
