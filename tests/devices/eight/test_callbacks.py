"""Python functions called from programs over several devices: whole arrays come in, and each effect happens once."""

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import io_callback
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P

X = np.arange(8.0, dtype="f4")
F32 = gradix.ShapeDtypeStruct((), "float32")


def divided(kind, x=X, size=8):
    m = gradix.make_mesh((size,), ("x",), axis_types=(kind,), devices=gradix.devices()[:size])
    return gradix.device_put(x, NamedSharding(m, P("x")))


SEEN: list = []


def note(x):
    SEEN.append(np.asarray(x).tolist())


def tell(x, ordered):
    io_callback(note, None, x, ordered=ordered)
    return x


def show(x, ordered):
    gradix.debug.callback(note, x, ordered=ordered)
    return x


PROGRAMS = {
    "sum": (lambda effect: lambda x: effect(x.sum()), [28]),
    "whole": (lambda effect: effect, [X.tolist()]),
    "while": (
        lambda effect: lambda x: lax.while_loop(lambda c: c.sum() < 40, lambda c: c + 1 + 0 * effect(c.sum()), x),
        [28, 36],
    ),
    "scan": (lambda effect: lambda x: lax.scan(lambda c, _: (c + 1, effect(c.sum())), x, None, 2)[1], [28, 36]),
    "fori": (lambda effect: lambda x: lax.fori_loop(0, 3, lambda i, c: c + effect(i), x), [0, 1, 2]),
    "cond": (lambda effect: lambda x: lax.cond(x.sum() > 0, lambda x: x + effect(x.max()), lambda x: x, x), [7]),
    "a step of training": (
        lambda effect: lambda x: gradix.grad(lambda w: effect(((w * x - 1) ** 2).mean()))(jnp.float32(0)),
        [1],
    ),
}


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
@pytest.mark.parametrize(("program", "seen"), PROGRAMS.values(), ids=PROGRAMS)
def test_an_effect_happens_once(program, seen, kind, ordered):
    for effect in (tell, show):
        if effect is tell and seen == [1]:
            continue  # no derivative of a value that Python returned is asked for
        SEEN.clear()
        gradix.jit(program(lambda x, e=effect: e(x, ordered)))(divided(kind))
        gradix.effects_barrier()
        assert seen == SEEN


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_results(kind, dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(8).astype(dtype)
    double = lambda v: (np.asarray(v) + np.asarray(v)).astype(dtype)  # noqa: E731
    for call in (gradix.pure_callback, io_callback):
        f = lambda x: call(double, gradix.ShapeDtypeStruct(x.shape, x.dtype), x)  # noqa: B023, E731
        for g in (f, gradix.jit(f)):
            y = g(divided(kind, x))
            assert y.dtype == dtype and y.tolist() == double(x).tolist()


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_a_value_comes_back_to_every_device(kind):
    f = gradix.jit(lambda x: x + io_callback(lambda v: np.float32(v + 1), F32, x.sum(), ordered=True))
    y = f(divided(kind))
    assert y.tolist() == (X + 29).tolist() and len(y.sharding.device_set) == 8


def test_exceptions_and_wrong_results_name_what_is_wrong():
    def fails(v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradix.jit(lambda x: io_callback(fails, None, x.sum()))(divided(AxisType.Auto))
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        gradix.jit(lambda x: io_callback(lambda v: np.zeros(2, "f4"), F32, x.sum()))(divided(AxisType.Auto))


@pytest.mark.parametrize("size", [1, 8])
def test_in_shard_map(size):
    x, m = (
        divided(AxisType.Auto, size=size),
        gradix.make_mesh((size,), ("x",), axis_types=(AxisType.Auto,), devices=gradix.devices()[:size]),
    )
    n = 8 // size
    part = gradix.ShapeDtypeStruct((n,), "float32")
    bodies = {
        "print": lambda x: show(x, False),
        "pure": lambda x: gradix.pure_callback(lambda v: np.asarray(v), part, x),
        "io": lambda x: io_callback(lambda v: np.asarray(v), part, x),
        "sum": lambda x: x * 0 + lax.psum(gradix.pure_callback(lambda v: np.float32(1), F32, x), "x") + x - size,
    }
    for name, body in bodies.items():
        SEEN.clear()
        f = gradix.shard_map(body, mesh=m, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        assert gradix.jit(f)(x).tolist() == X.tolist(), name
        if name == "print":
            assert sorted(SEEN) == X.reshape(size, n).tolist()
