"""pure_callback, io_callback, debug.callback and debug.print: when, how often, in what order, and their errors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import io_callback
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
scalar = gradix.ShapeDtypeStruct((), "float32")


def vector(n):
    return gradix.ShapeDtypeStruct((n,), "float32")


class Log(list):
    """Notes calls as numbers; `log(name)` is a callback that returns its argument."""

    def __call__(self, name):
        def callback(x):
            self.append((name, float(x)))
            return np.float32(x)

        return callback


WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])


# -- pure_callback -----------------------------------------------------------------------------------------------------


@pytest.mark.x32
@WRAPS
def test_values(wrap):
    assert_same(wrap(lambda x: gradix.pure_callback(np.sin, scalar, x))(1.0), np.sin(np.float32(1)))
    both = wrap(
        lambda x: gradix.pure_callback(
            lambda d, k: {"a": d["x"] * 2, "b": [k]}, {"a": vector(3), "b": [scalar]}, {"x": x}, k=2.0
        )
    )
    assert_same(both(x3), {"a": 2 * x3, "b": [2]})
    assert wrap(lambda x: gradix.pure_callback(lambda x: None, None, x))(1.0) is None
    assert_same(wrap(lambda x: gradix.pure_callback(lambda x: 2.5, scalar, x))(1.0), 2.5)
    got = wrap(lambda x: gradix.pure_callback(lambda x: np.float64(1.5), scalar, x))(1.0)
    assert got == 1.5 and got.dtype == np.float32


@WRAPS
def test_callbacks_get_arrays(wrap):
    seen = []
    wrap(lambda x: gradix.pure_callback(lambda v: seen.append(type(v)) or v.at[0].set(9.0), vector(3), x))(x3)
    assert issubclass(seen[0], gradix.Array)


@WRAPS
def test_a_buffer_the_callback_uses_again(wrap):
    buffer = np.zeros(3, np.float32)

    def callback(x):
        buffer[:] += 1
        return buffer

    f = wrap(lambda x: gradix.pure_callback(callback, vector(3), x))
    first, second = f(1.0), f(2.0)
    assert_same((first, second), (np.ones(3), np.full(3, 2)))


SHAPES = {
    "sequential": [((), ())] * 3,
    "sequential_unrolled": [((), ())] * 3,
    "expand_dims": [((3,), (1,))],
    "broadcast_all": [((3,), (3,))],
    "legacy_vectorized": [((3,), ())],
}


@pytest.mark.x32
@WRAPS
@pytest.mark.parametrize("method", SHAPES)
def test_vmap_methods(method, wrap):
    seen = []

    def callback(x, y):
        seen.append((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)

    f = wrap(
        gradix.vmap(lambda x, y: gradix.pure_callback(callback, scalar, x, y, vmap_method=method), in_axes=(0, None))
    )
    assert_same(f(x3, 2.0), x3 + 2)
    assert seen == SHAPES[method]


def test_vmap_twice_and_of_nothing():
    f = lambda x, y: gradix.pure_callback(
        lambda x, y: np.asarray(x) * np.asarray(y), scalar, x, y, vmap_method="expand_dims"
    )
    assert_same(gradix.vmap(gradix.vmap(f, in_axes=(0, None)), in_axes=(None, 0))(x3, x3[:2]), np.outer(x3[:2], x3))
    g = lambda x: gradix.pure_callback(np.sin, scalar, x, vmap_method="sequential")
    assert gradix.vmap(g)(x3[:0]).shape == (0,)


def test_unused_pure_callbacks_are_dropped_and_equal_ones_are_one():
    log = Log()
    gradix.jit(lambda x: (gradix.pure_callback(log("a"), scalar, x), x)[1])(1.0)
    assert log == []


# -- io_callback -------------------------------------------------------------------------------------------------------


@WRAPS
def test_order(wrap):
    log = Log()

    def f(x):
        io_callback(log("a"), scalar, x, ordered=True)
        io_callback(log("b"), scalar, x + 1, ordered=True)
        return x

    wrap(f)(1.0)
    wrap(lambda x: lax.fori_loop(0, 2, lambda i, x: f(x + i), x))(10.0)
    gradix.effects_barrier()
    assert log == [("a", 1), ("b", 2), ("a", 10), ("b", 11), ("a", 11), ("b", 12)]


@WRAPS
def test_called_only_where_the_program_goes_and_kept_if_unused(wrap):
    log = Log()
    f = wrap(lambda x: lax.cond(x > 0, lambda x: (io_callback(log("yes"), scalar, x), x)[1], lambda x: x * 2, x))
    f(1.0)
    f(-1.0)
    gradix.effects_barrier()
    assert log == [("yes", 1)]
    assert_same(wrap(lambda x: io_callback(log("twice"), scalar, x) + io_callback(log("twice"), scalar, x))(1.0), 2)
    assert log[1:] == [("twice", 1)] * 2


@WRAPS
def test_vmap_calls_per_example(wrap):
    log = Log()
    assert_same(wrap(gradix.vmap(lambda x: io_callback(log("x"), scalar, x)))(x3), x3)
    assert sorted(log) == [("x", 1), ("x", 2), ("x", 3)]


# -- exceptions --------------------------------------------------------------------------------------------------------


class Boom(Exception):
    pass


@pytest.mark.x32
@WRAPS
@pytest.mark.parametrize("call", [gradix.pure_callback, io_callback], ids=["pure", "io"])
def test_exceptions_surface_as_themselves(call, wrap):
    def bad(x):
        raise Boom("in the callback")

    with pytest.raises(Boom, match="in the callback"):
        wrap(lambda x: call(bad, scalar, x))(1.0).block_until_ready()
    assert wrap(lambda x: call(np.sin, scalar, x))(0.0) == 0


def test_exceptions_without_a_result_to_wait_for():
    def bad(x):
        raise Boom("in the callback")

    with pytest.raises(Boom, match="in the callback"):
        gradix.jit(lambda x: (io_callback(bad, None, x), x)[1])(1.0)
        gradix.effects_barrier()


@WRAPS
@pytest.mark.parametrize(
    "returned, error, message",
    [
        (np.ones(3, np.float32), ValueError, r"shape \(3,\).*result_shape_dtypes say \(\)"),
        ((1.0, 1.0), TypeError, "structure"),
        ("text", (TypeError, ValueError), "string"),
    ],
)
def test_results_are_checked(returned, error, message, wrap):
    with pytest.raises(error, match=message):
        wrap(lambda x: gradix.pure_callback(lambda x: returned, scalar, x))(1.0).block_until_ready()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: gradix.grad(lambda x: gradix.pure_callback(np.sin, scalar, x))(1.0),
            ValueError,
            "do not support JVP.*custom_jvp",
        ),
        (
            lambda: gradix.jvp(lambda x: io_callback(np.sin, scalar, x), (1.0,), (1.0,)),
            ValueError,
            "IO callbacks do not support JVP",
        ),
        (
            lambda: gradix.vmap(lambda x: gradix.pure_callback(np.sin, scalar, x))(x3),
            NotImplementedError,
            "vmap_method",
        ),
        (lambda: gradix.vmap(lambda x: io_callback(np.sin, scalar, x, ordered=True))(x3), ValueError, "ordered"),
        (lambda: gradix.pure_callback(np.sin, scalar, 1.0, vmap_method="x"), ValueError, "vmap_method must be one of"),
        (lambda: gradix.pure_callback(3, scalar, 1.0), TypeError, "expects a function"),
        (lambda: gradix.pure_callback(np.sin, scalar, "a"), TypeError, "is not an array"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# -- debug -------------------------------------------------------------------------------------------------------------


def printed(capsys):
    gradix.effects_barrier()
    return capsys.readouterr().out


PRINTS = {
    "positions": (lambda x: gradix.debug.print("{} {}", x, x + 1), "1.5 2.5\n"),
    "names": (lambda x: gradix.debug.print("{a:.3f} {b}", a=x, b=x > 1), "1.500 True\n"),
    "both": (
        lambda x: gradix.debug.print("{x:.2f} {y} {0}", x + 1, x=x, y={"a": x}),
        "1.50 {'a': Array(1.5, dtype=float32)} 2.5\n",
    ),
    "nothing": (lambda x: gradix.debug.print("hello"), "hello\n"),
    "text": (lambda x: gradix.debug.print("{} {k}", "s", k=None), "s None\n"),
    "numbers": (lambda x: gradix.debug.print("{:d} {:5.1f}|", 3, 2.25), "3   2.2|\n"),
    "parts": (lambda x: gradix.debug.print("{v[0]} {v.shape}", v=jnp.stack([x, x])), "1.5 (2,)\n"),
    "arrays": (lambda x: gradix.debug.print("{v}", v=jnp.stack([x, x])), "[1.5 1.5]\n"),
    "braces": (lambda x: gradix.debug.print("{{}} {}", x), "{} 1.5\n"),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", PRINTS)
def test_print(name, capsys):
    f, want = PRINTS[name]
    f(1.5)
    eager = printed(capsys)
    gradix.jit(f)(1.5)
    assert (eager, printed(capsys)) == (want, want)


def test_print_under_transformations(capsys):
    show = lambda x: gradix.debug.print("{}", x)
    gradix.vmap(show)(x3)
    assert sorted(printed(capsys).split()) == ["1.0", "2.0", "3.0"]
    gradix.grad(lambda x: (show(x), x * x)[1])(2.0)
    assert printed(capsys) == "2.0\n"
    gradix.jit(gradix.grad(lambda x: (show(x), x * x)[1]))(2.0)
    assert printed(capsys) == "2.0\n"
    lax.scan(lambda c, x: (gradix.debug.print("{} {}", c, x, ordered=True), (c + x, None))[1], 0.0, x3)
    assert printed(capsys) == "0.0 1.0\n1.0 2.0\n3.0 3.0\n"
    gradix.jit(
        lambda x: lax.while_loop(lambda c: c < 3, lambda c: (gradix.debug.print("{}", c, ordered=True), c + 1)[1], x)
    )(0)
    assert printed(capsys) == "0\n1\n2\n"


def test_debug_callback():
    log = []
    gradix.jit(lambda x: gradix.debug.callback(lambda v, k: log.append((float(v), k)), x, k="s"))(1.0)
    gradix.effects_barrier()
    assert log == [(1, "s")]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.debug.print("x", 1.0), ValueError, "Unused"),
        (lambda: gradix.debug.print("x", a=1.0), ValueError, "Unused.*'a'"),
        (lambda: gradix.debug.print("{} {}", 1.0), IndexError, r"more \{\} than .*1 positional"),
        (lambda: gradix.debug.print("{a}", b=1.0), KeyError, "names 'a', but .*'b'.*Pass a=value"),
        (lambda: gradix.debug.print(1.0), TypeError, "format string"),
        (lambda: gradix.debug.print("{:q}", 1.0), ValueError, "'q'"),
    ],
)
def test_debug_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_prints_have_the_print_options_of_where_they_were_traced(capsys):
    x = jnp.array([1.2345, 1e-7])
    f = gradix.jit(lambda x: gradix.debug.print("{}", x))
    with np.printoptions(precision=2, suppress=True):
        f(x)
        gradix.effects_barrier()
    f(x)
    gradix.effects_barrier()
    assert capsys.readouterr().out == "[1.23 0.  ]\n" * 2
