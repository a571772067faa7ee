"""`debug.values()`: traced values print their numbers; without it they print what is known of them."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = jnp.array([1.0, 2.0], "float32")


def shown(function, *args):
    """What `print` writes of the values that `function` hands to the function it is given, with numbers."""
    told = []
    with gradix.debug.values():
        result = function(lambda x: told.append(f"{x}") or x)
        result = result(*args) if callable(result) else result
    return told, result


@pytest.mark.x32
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda see: gradix.jit(see), "[1. 2.]"),
        (lambda see: gradix.grad(lambda x: see(x).sum()), "Array([1., 2.], dtype=float32) with a gradient"),
        (lambda see: gradix.vmap(see), "Array([1., 2.], dtype=float32) mapped over axis 0"),
        (
            lambda see: gradix.jit(gradix.vmap(gradix.grad(lambda x: see(x)))),
            "Array([1., 2.], dtype=float32) mapped over axis 0 with a gradient",
        ),
        (
            lambda see: lambda x: gradix.jvp(see, (x,), (3 * x,)),
            "Array([1., 2.], dtype=float32) with tangent Array([3., 6.], dtype=float32)",
        ),
        (lambda see: lambda x: lax.cond(True, see, lambda x: x, x), "[1. 2.]"),
        (lambda see: lambda x: gradix.checkpoint(see)(x), "[1. 2.]"),
        (lambda see: lambda x: gradix.checkpoint(lambda n, x: see(x * n), static_argnums=0)(1, x=x), "[1. 2.]"),
        (
            lambda see: gradix.grad(gradix.checkpoint(lambda x: see(x).sum())),
            "Array([1., 2.], dtype=float32) with a gradient",
        ),
        (
            lambda see: lambda x: gradix.pmap(lambda x: see(x) + lax.psum(x, "i"), axis_name="i")(x[None]),
            "Array([[1., 2.]], dtype=float32) mapped over axis 0",
        ),
    ],
    ids=["jit", "grad", "vmap", "all", "jvp", "cond", "checkpoint", "static", "grad of checkpoint", "pmap"],
)
def test_numbers_inside_of_transformations(make, expected):
    told, _ = shown(make, X)
    assert told[0] == expected


@pytest.mark.x32
def test_loops_and_branches_of_mapped_values_run_in_python():
    def f(see):
        def body(c):
            see(c)
            return c * 2

        def g(x):
            y = lax.while_loop(lambda c: c < 10, body, x)
            z = lax.cond(y > 12, lambda y: see(y) * 2, lambda y: see(y), y)
            return lax.switch((z > 20).astype(int), [see, lambda z: z - 1], z) + lax.fori_loop(
                0, y.astype(int) % 3, lambda i, c: c + i, 0
            )

        return gradix.vmap(g)

    x = jnp.array([1.0, 3.0, 20.0])
    told, result = shown(f, x)
    assert "Array([ 2.,  6., 20.], dtype=float32) mapped over axis 0" in told and not [t for t in told if "Tracer" in t]
    np.testing.assert_array_equal(result, f(lambda x: x)(x))


@pytest.mark.x32
def test_a_loop_under_a_derivative():
    def f(see):
        return gradix.grad(lambda x: lax.while_loop(lambda c: c < 100, lambda c: see(c) * c, x))

    told, result = shown(f, 2.0)
    assert len(told) == 3 and told[1].startswith("Array(4., dtype=float32") and float(result) == 8 * 2.0**7


def test_formats_apply_to_numbers():
    with gradix.debug.values():
        gradix.vmap(lambda x: pytest.fail() if f"{x:.2f}" != "[1.00 2.00]" else x)(X)
        gradix.grad(lambda x: pytest.fail() if f"{x:.1f}" != "3.0" else x)(3.0)


def test_results_are_those_of_compiled_functions():
    def f(x):
        def body(c, v):
            return jnp.sin(c + v), c * v

        c, ys = lax.scan(body, x[0], x)
        return lax.cond(c > 0, lambda: ys.sum(), lambda: c)

    g = gradix.jit(gradix.value_and_grad(f))
    with gradix.debug.values():
        got = g(X)
    for a, b in zip(got, g(X)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.x32
def test_it_ends_with_the_block_and_for_this_thread():
    with pytest.raises(ZeroDivisionError), gradix.debug.values():
        1 / 0
    told = []
    gradix.jit(lambda x: told.append(f"{x}") or x)(X)
    assert told == ["JitTracer(float32[2])"] and not gradix.config.jax_disable_jit


@pytest.mark.x32
@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (gradix.grad, r"GradTracer\(primal=3\.0, typeof\(tangent\)=f32\[\]\)"),
        (gradix.jit, r"JitTracer\(float32\[\]\)"),
        (
            lambda f: lambda x: gradix.vmap(f)(jnp.stack([x, x])),
            r"VmapTracer\(aval=float32\[\], batched=float32\[2\]\)",
        ),
        (lambda f: lambda x: gradix.jvp(f, (x,), (2.0,)), r"JVPTracer\(primal=3\.0, tangent=2\.0\)"),
        (
            lambda f: gradix.jit(gradix.grad(f)),
            r"GradTracer\(primal=JitTracer\(float32\[\]\), typeof\(tangent\)=f32\[\]\)",
        ),
        (lambda f: lambda x: gradix.linear_transpose(f, x)(x), r"\w+Tracer\(float32\[\]\)"),
    ],
    ids=["grad", "jit", "vmap", "jvp", "jit of grad", "transpose"],
)
def test_a_tracer_prints_what_it_knows(transform, expected):
    told = []
    transform(lambda x: told.append(str(x)) or 2 * x)(jnp.float32(3))
    assert re.fullmatch(expected, told[0])


def test_a_format_of_a_traced_value_says_how_to_print():
    with pytest.raises(TypeError, match=r'unsupported format string \'\.2f\'.*debug\.print\("\{x:\.2f\}", x=x\)'):
        gradix.jit(lambda x: f"{x:.2f}")(1.0)


# -- NaNs in compiled functions -------------------------------------------------------------------------


def inner(y):
    return jnp.log(y) * 2


@pytest.mark.parametrize(
    "f",
    [inner, lambda x: gradix.jit(inner)(x) + 1, lambda x: lax.cond(x < 0, inner, lambda y: y, x)],
    ids=["plain", "call", "branch"],
)
def test_nans_name_the_line(f):
    with gradix.debug_nans(True), pytest.raises(FloatingPointError) as e:
        gradix.jit(f)(-1.0)
    assert "invalid value (nan) encountered in" in str(e.value) and "jit-compiled function" in str(e.value)
    assert f"{__file__}:" in str(e.value)
    if f is inner:
        assert f"{__file__}:{inner.__code__.co_firstlineno + 1}:\n    return jnp.log(y) * 2" in str(e.value)
    assert e.value.__suppress_context__
