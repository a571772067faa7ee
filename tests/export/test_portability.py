"""Files hold portable operations and the stable functions of their platforms, and nothing of how the CPU is best asked."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from tests.export.common import function_of, specs_of
from tests.export.programs import PROGRAMS
from tests.export.travelling import PROGRAMS as TRAVELLING

S = gradix.ShapeDtypeStruct
PLATFORMS = ("cpu", "cuda", "tpu")
# what the rewrites for the CPU leave in a program, and what asks its compiler for something
OVERLAY = re.compile(
    r"gradix|small_call|frontend_attributes|xla_cpu|xla_buffer|xla_ffi|__cpu|callback|mhlo\.(?!num_|sharding|backend_config)|tf\.aliasing"
)
OPERATION = re.compile(r'(?:= |^\s+)"?(\w+)\.(\w+)')
STABLE = {
    "cpu": r"lapack_\w+_ffi",
    "cuda": r"cusolver_\w+_ffi|cu_lu_pivots_to_permutation",
    "tpu": r"Qr|Eigh|LuDecomposition|ProductOfElementaryHouseholderReflectors",
}
EVERYWHERE = r"shape_assertion|stablehlo\.dynamic_\w+"


def check_portable(text: str, platforms) -> None:
    assert not OVERLAY.search(text), OVERLAY.search(text)
    assert {dialect for dialect, _ in OPERATION.findall(text)} <= {"stablehlo", "chlo", "func"}
    targets = set(re.findall(r"custom_call @\"?([\w.]+)", text))
    allowed = re.compile("|".join([EVERYWHERE, *[STABLE[p] for p in platforms]]))
    assert all(allowed.fullmatch(t) for t in targets), targets


def check(text: str, shapes, platforms) -> None:
    """The program exported for each platform alone, and for all."""
    f = gradix.jit(function_of(text, len(shapes)))
    for where in (*[(p,) for p in platforms], platforms):
        try:
            e = export.export(f, platforms=where)(*specs_of(shapes))
        except NotImplementedError as error:
            assert where != ("cpu",) and "it computes" in str(error) and "by lapack" in str(error)
            continue
        check_portable(e.mlir_module(), where)


@pytest.mark.parametrize(("text", "shapes"), [*PROGRAMS[7::30], *TRAVELLING[2::9]])
def test_files_are_portable(text, shapes):
    check(text, shapes, PLATFORMS)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), [*PROGRAMS, *TRAVELLING])
def test_all_files_are_portable(text, shapes):
    check(text, shapes, PLATFORMS)


def test_what_is_rewritten_for_the_cpu_is_plain_in_files():
    """Programs that the CPU's table rewrites: their lowered text is not their file's."""
    big = {
        "columns": (lambda x: x.sum(0), (64, 5000)),
        "sort": (lambda x: jnp.sort(x, axis=1), (64, 500)),
        "running": (lambda x: jnp.cumsum(x, 0), (500, 64)),
        "products": (lambda x: jnp.einsum("bi,bj->bij", x, x).sum(0), (64, 32)),
        "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"), (64, 64)),
        "vectors": (lambda x: jnp.exp(jnp.sin(x)) + lax.erf(x), (64, 64)),
        "keys": (lambda x: gradix.random.normal(gradix.random.key(0), x.shape) + x, (64, 64)),
        "convolution": (lambda x: lax.conv(x[None, None], jnp.ones((4, 1, 3, 3), "float32"), (1, 1), "SAME"), (64, 64)),
        "loop": (lambda x: lax.fori_loop(0, 9, lambda i, c: jnp.sin(c) * 0.5, x), (4, 4)),
        "top": (lambda x: lax.top_k(x, 3), (64, 500)),
    }
    rewritten = 0
    for f, shape in big.values():
        spec = S(shape, "float32")
        rewritten += bool(OVERLAY.search(gradix.jit(f).lower(spec).as_text())) or bool(
            gradix.jit(f).lower(spec)._module.facts.rewrites
        )
        for g in (f, gradix.grad(lambda x, f=f: sum(jnp.sum(t.astype("float32")) for t in gradix.tree.leaves(f(x))))):
            check_portable(export.export(gradix.jit(g), platforms=PLATFORMS)(spec).mlir_module(), PLATFORMS)
    assert rewritten >= 5


def test_branches_of_platforms_are_in_their_programs_only():
    f = gradix.jit(
        lambda x: lax.platform_dependent(x, cpu=jnp.linalg.inv, cuda=lambda x: x + 1, default=lambda x: x * 2)
    )
    x = S((3, 3), "float32")
    text = {p: export.export(f, platforms=(p,))(x).mlir_module() for p in PLATFORMS}
    assert (
        "lapack" in text["cpu"]
        and "add" in text["cuda"]
        and "multiply" in text["tpu"]
        and not any("lapack" in text[p] for p in ("cuda", "tpu"))
    )
    e = export.export(f, platforms=PLATFORMS)(x)
    a = jnp.eye(3, dtype="float32") * 2
    assert e.call(a).tolist() == (jnp.eye(3) / 2).tolist() == export.deserialize(e.serialize()).call(a).tolist()
    assert gradix.grad(lambda x: e.call(x).sum())(a).shape == (3, 3)


def test_keys_are_written_to_memory_in_files():
    """Some versions of the compiler never compile two generators in one loop, and a file may meet any version."""
    f = gradix.jit(lambda k: gradix.random.uniform(gradix.random.split(k)[1], (1600,)))
    exported = export.export(f)(gradix.random.key(0))
    assert "optimization_barrier" in exported.mlir_module()
    np.testing.assert_array_equal(exported.call(gradix.random.key(0)), f(gradix.random.key(0)))
