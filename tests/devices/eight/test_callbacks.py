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


def parts_of(function, *args):
    """What each device saw of the arguments of a callback, sorted; the number of calls is theirs."""
    seen: list = []
    look = gradix.jit(
        lambda *xs: function(
            lambda *vs: gradix.debug.callback(
                lambda *given: seen.append([np.asarray(v).tolist() for v in given]), *vs, partitioned=True
            ),
            *xs,
        )
    )
    look(*args)
    gradix.effects_barrier()
    return sorted(seen)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_each_device_sees_its_part(kind):
    x = divided(kind, size=2)
    halves = [[X[:4].tolist()], [X[4:].tolist()]]
    assert parts_of(lambda look, x: look(x), x) == halves
    assert parts_of(lambda look, x: look(x + 0, 3), x) == [[h[0], 3] for h in halves]
    assert parts_of(lambda look, x: look(x.sum()), x) == [[28.0]] * 2
    assert parts_of(lambda look, x: lax.fori_loop(0, 2, lambda i, c: (look(x), c)[1], 0), x) == sorted(halves * 2)
    assert parts_of(lambda look, x: lax.cond(x.sum() > 0, look, lambda x: None, x), x) == halves
    if kind is AxisType.Auto:  # parts of different sizes are seen whole
        assert parts_of(lambda look, x: look(x[:3]), x) == [[[0, 1, 2]]] * 2
    assert parts_of(lambda look: look(np.float32(1))) == [[1.0]]
    assert parts_of(lambda look, x: gradix.grad(lambda x: (look(x), (x**2).sum())[1])(x), x) == halves


def test_each_device_sees_its_part_of_every_example():
    m = gradix.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    a, b = np.arange(4).reshape(2, 2), np.arange(4).reshape(2, 2) + 6
    rows, columns = (gradix.device_put(v, NamedSharding(m, P("x"))) for v in (a, b))
    divided_inside = gradix.device_put(a, NamedSharding(m, P(None, "x")))
    assert parts_of(lambda look, v: gradix.vmap(look)(v), divided_inside) == [[[i]] for i in range(4)]
    seen = parts_of(lambda look, v, w: gradix.vmap(look, in_axes=(0, 1))(v, w), rows, columns)
    assert seen == [[[0, 1], [6]], [[0, 1], [8]], [[2, 3], [7]], [[2, 3], [9]]]
    seen = parts_of(lambda look, v, w: gradix.vmap(look, in_axes=(None, 0))(v, w), divided_inside, columns)
    assert seen == [[[[0], [2]], [6, 7]], [[[0], [2]], [8, 9]], [[[1], [3]], [6, 7]], [[[1], [3]], [8, 9]]]
    stack = gradix.device_put(np.arange(8).reshape(2, 2, 2), NamedSharding(m, P(None, None, "x")))
    assert parts_of(lambda look, v: gradix.vmap(gradix.vmap(look))(v), stack) == [[[i]] for i in range(8)]


def test_in_shard_map_over_some_axes_the_first_device_along_the_others_calls(capsys):
    m = gradix.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    x = gradix.device_put(np.arange(8).reshape(4, 2), NamedSharding(m, P("x", "y")))

    def over_x(function):
        mapped = gradix.shard_map(function, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        out = gradix.jit(mapped)(x)
        gradix.effects_barrier()
        return out

    over_x(lambda v: (gradix.debug.print("{} of {}", v.sum(), lax.axis_index("x")), v)[1])
    assert sorted(capsys.readouterr().out.splitlines()) == ["22 of 1", "6 of 0"]
    over_x(lambda v: (gradix.debug.print("{}", v[:, 0], partitioned=True), v)[1])
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0 2]"] * 2 + ["[4 6]"] * 2
    with pytest.raises(NotImplementedError, match="io_callback in shard_map over some axes.*axis_names"):
        over_x(lambda v: io_callback(lambda a: a, v, v))


def test_parts_have_no_order():
    with pytest.raises(ValueError, match="ordered=True or partitioned=True, but not both"):
        gradix.debug.print("{}", 1, ordered=True, partitioned=True)


def test_names_of_options_are_names_of_values_in_a_second_call(capsys):
    gradix.debug.print(partitioned=True)("{partitioned} {ordered}", partitioned=1, ordered=2)
    assert capsys.readouterr().out == "1 2\n"
