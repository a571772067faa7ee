"""Functions of many operations, replayed on arrays of types met before: the same answers, bit for bit, and the same errors."""

import warnings
from functools import reduce

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._api.jit import replay
from gradix._api.jit.replay import replayed
from gradix._base.config import config
from gradix._base.tree import tree_leaves
from gradix.numpy import elementary

CALLS = replay._FIRST + 2
RNG = np.random.default_rng(0)


def floats(*shape):
    return jnp.asarray(RNG.normal(size=shape).astype(np.float32))


# name: calls to make, as functions of arrays made anew
SAMPLES = {
    "floor_divide": lambda f: [
        f(floats(8), floats(8)),
        f(jnp.arange(-4, 4), 3),
        f(jnp.arange(-4, 4), -3),
        f(jnp.arange(4), 0),
        f(jnp.arange(-4, 4), -1),
        f(jnp.arange(8, dtype="uint8"), 3),
    ],
    "remainder": lambda f: [
        f(floats(8), 0.7),
        f(jnp.arange(-4, 4), 3),
        f(jnp.arange(-4, 4), -3),
        f(jnp.arange(4), jnp.arange(4)),
    ],
    "hypot": lambda f: [f(floats(8), 2.0)],
    "diag": lambda f: [f(floats(4)), f(floats(3, 3), 1), f(floats(3), k=-1)],
    "trace": lambda f: [f(jnp.arange(9).reshape(3, 3)), f(floats(2, 3, 4), offset=1)],
    "tril": lambda f: [f(floats(4, 4)), f(floats(3, 5), 1)],
    "triu": lambda f: [f(floats(4, 4), -1)],
    "eye": lambda f: [f(4), f(3, 5, k=1), f(3, dtype=jnp.int32)],
    "vander": lambda f: [f(floats(4)), f(floats(4), 3, increasing=True)],
    "tri": lambda f: [f(3), f(3, dtype=int)],
    "median": lambda f: [
        f(floats(8)),
        f(floats(4, 6), axis=1),
        f(jnp.array([1.0, jnp.nan])),
        f(floats(4, 6), keepdims=True),
    ],
    "nanmedian": lambda f: [f(jnp.array([1.0, jnp.nan, 3.0]))],
    "quantile": lambda f: [f(floats(9), 0.3), f(floats(9), jnp.array([0.1, 0.9])), f(floats(9), 0.3, method="lower")],
    "percentile": lambda f: [f(floats(9), 30)],
    "mean": lambda f: [f(floats(4, 5)), f(jnp.arange(4), axis=0), f(floats(4, 5), (0, 1))],
    "std": lambda f: [f(floats(4, 5)), f(floats(4, 5), axis=-1, ddof=1)],
    "var": lambda f: [f(floats(4, 5), 0)],
    "average": lambda f: [f(floats(6)), f(floats(6), weights=floats(6) ** 2)],
    "cov": lambda f: [f(floats(3, 8))],
    "nanmean": lambda f: [f(jnp.array([1.0, jnp.nan, 3.0]))],
    "nansum": lambda f: [f(floats(4, 4), axis=0)],
    "polyval": lambda f: [f(floats(5), 2.0), f(jnp.arange(5), jnp.arange(3))],
    "lexsort": lambda f: [f((floats(4), floats(4))), f([jnp.array([1, 0, 1]), jnp.array([2, 2, 0])])],
    "block": lambda f: [f([[floats(2, 2), floats(2, 3)], [floats(1, 5)]]), f([floats(2), floats(3)]), f(floats(2))],
    "vstack": lambda f: [f([floats(2), floats(2)]), f((floats(2), floats(2, 2)))],
    "hstack": lambda f: [f((floats(2), floats(3)))],
    "dstack": lambda f: [f([floats(2), floats(2)])],
    "column_stack": lambda f: [f([floats(2), floats(2)])],
    "atleast_2d": lambda f: [f(floats(3)), f(floats(3), floats(2, 2))],
    "array_split": lambda f: [f(floats(7), 3), f(floats(7), (2, 5))],
    "fft.fft": lambda f: [
        f(floats(5)),
        f(floats(3, 4), 6, axis=0),
        f(floats(4), norm="ortho"),
        f(floats(3, 0), axis=0),
    ],
    "fft.irfft": lambda f: [f(floats(5)), f(floats(5) * 1j, 7)],
    "fft.rfft2": lambda f: [f(floats(3, 4)), f(floats(3, 4), s=(2, 2))],
    "fft.fftshift": lambda f: [f(floats(5)), f(floats(3, 4), axes=1)],
    "fft.ifftshift": lambda f: [f(floats(3, 4))],
    "linspace": lambda f: [f(0, 1, 5), f(0.0, -0.0, 3), f(-0.0, 0.0, 3), f(floats(2), 2.0, 4)],
    "take_along_axis": lambda f: [
        f(floats(4, 4), jnp.argsort(floats(4, 4), axis=1), axis=1),
        f(floats(8), jnp.array([3, -1, 9]), 0),
    ],
    "allclose": lambda f: [f(floats(8), floats(8)), f(jnp.ones(3), 1.0)],
    "isclose": lambda f: [f(floats(8), floats(8), atol=0.5)],
    "array_equal": lambda f: [f(jnp.arange(3), jnp.arange(3)), f(jnp.arange(3), jnp.arange(4))],
    "searchsorted": lambda f: [f(jnp.sort(floats(8)), floats(3)), f(jnp.sort(floats(30)), floats(3), side="right")],
    "kron": lambda f: [f(floats(2, 2), floats(3))],
    "outer": lambda f: [f(floats(3), floats(4))],
    "cross": lambda f: [f(floats(3), floats(3))],
    "vdot": lambda f: [f(floats(3), floats(3))],
    "sort": lambda f: [f(floats(8)), f(floats(4, 4), axis=0, descending=True)],
    "argsort": lambda f: [f(floats(8)), f(floats(2, 5))],
    "diff": lambda f: [f(floats(8)), f(floats(3, 4), 2, axis=0), f(jnp.array([True, False]))],
    "convolve": lambda f: [f(jnp.arange(4), jnp.arange(3)), f(jnp.arange(4), jnp.arange(3), mode="same")],
    "interp": lambda f: [f(floats(3), jnp.arange(5.0), floats(5))],
    "gradient": lambda f: [f(floats(6)), f(floats(4, 4))],
    "unwrap": lambda f: [f(floats(6) * 5)],
    "round": lambda f: [f(floats(8), 1), f(jnp.arange(5)), f(floats(4))],
    "nan_to_num": lambda f: [f(jnp.array([jnp.nan, jnp.inf]), nan=2.0)],
    "count_nonzero": lambda f: [f(floats(4) > 0, axis=0)],
    "ptp": lambda f: [f(floats(8))],
    "prod": lambda f: [f(floats(4, 4), axis=1), f(jnp.arange(4), dtype=jnp.float32)],
    "max": lambda f: [f(floats(4, 4)), f(floats(3), initial=0.0, where=jnp.array([True, False, True]))],
    "any": lambda f: [f(floats(4) > 0)],
    "argmax": lambda f: [f(floats(4, 4)), f(floats(4, 4), axis=1, keepdims=True)],
    "isin": lambda f: [f(jnp.arange(5), jnp.array([1, 3]))],
    "cumsum": lambda f: [f(floats(8)), f(jnp.arange(6), dtype=jnp.float32)],
    "tile": lambda f: [f(floats(3), 3), f(floats(3), (2, 2))],
    "repeat": lambda f: [f(floats(3), 2), f(floats(3), jnp.array([1, 0, 2]))],
    "roll": lambda f: [f(floats(5), 2), f(floats(3, 3), (1, -1), (0, 1))],
    "clip": lambda f: [f(floats(8), -0.5, 0.5), f(floats(4), None, 0.0)],
    "pad": lambda f: [f(floats(3), 2), f(floats(3, 3), 1, mode="edge")],
    "meshgrid": lambda f: [f(floats(2), floats(3), indexing="ij")],
    "split": lambda f: [f(floats(6), 3), f(floats(4, 6), 2, axis=1)],
    "logaddexp": lambda f: [f(floats(5), 1.0)],
    "linalg.det": lambda f: [f(floats(2, 3, 3)), f(floats(2, 2))],
    "linalg.norm": lambda f: [f(floats(5)), f(floats(3, 3), axis=1)],
    "linalg.solve": lambda f: [f(floats(4, 4), floats(4)), f(floats(4, 4), floats(4, 2))],
    "divmod": lambda f: [f(floats(8), 0.7), f(jnp.arange(-4, 4), 3)],
    "fmax": lambda f: [f(floats(4), jnp.array([1.0, jnp.nan, 0, 2]))],
    "right_shift": lambda f: [f(jnp.arange(-4, 4), 1), f(jnp.arange(4, dtype="uint8"), 9)],
    "left_shift": lambda f: [f(jnp.arange(4), 2)],
    "log2": lambda f: [f(floats(4)), f(jnp.arange(4))],
    "log10": lambda f: [f(floats(4) * 1j)],
    "angle": lambda f: [f(floats(4) * 1j)],
    "ldexp": lambda f: [f(floats(4), jnp.arange(4))],
    "modf": lambda f: [f(floats(4))],
    "spacing": lambda f: [f(floats(4))],
    "polyadd": lambda f: [f(floats(4), floats(2))],
    "polysub": lambda f: [f(floats(2), floats(4))],
    "polyder": lambda f: [f(floats(4), 2)],
    "polyint": lambda f: [f(floats(4)), f(floats(4), 2, 1.5)],
    "poly": lambda f: [f(floats(3))],
    "polydiv": lambda f: [f(floats(5), floats(2))],
    "polyfit": lambda f: [f(floats(6), floats(6), 2, w=floats(6) ** 2)],
    "packbits": lambda f: [f(jnp.zeros(0, bool))],
    "append": lambda f: [f(floats(3), floats(2))],
    "unpackbits": lambda f: [f(jnp.arange(3, dtype="uint8"))],
    "partition": lambda f: [f(jnp.array([3, 0, 2, 5]), 1), f(floats(3, 5), 2, axis=0)],
    "argpartition": lambda f: [f(floats(8), 3)],
    "diagonal": lambda f: [f(floats(4, 4)), f(floats(2, 3, 4), 1)],
    "geomspace": lambda f: [f(1.0, 8.0, 4), f(floats(3) ** 2, 9.0, 5)],
    "logspace": lambda f: [f(0, 1, 5)],
    "resize": lambda f: [f(floats(3), (2, 4))],
    "rot90": lambda f: [f(floats(2, 3)), f(floats(2, 3), 2)],
    "linalg.eigh": lambda f: [f(floats(3, 3)), f(floats(2, 3, 3), "U")],
    "linalg.svdvals": lambda f: [f(floats(2, 3))],
    "linalg.qr": lambda f: [
        f(floats(4, 3)),
        f(floats(3, 4), "complete"),
        f(floats(4, 3), "r"),
        f(floats(4, 3), mode="raw"),
    ],
    "linalg.svd": lambda f: [f(floats(4, 3)), f(floats(4, 3), compute_uv=False)],
    "linalg.cholesky": lambda f: [f(jnp.eye(3) * 2)],
    "linalg.cond": lambda f: [f(floats(4, 4))],
    "linalg.matrix_rank": lambda f: [f(floats(4, 4)), f(jnp.ones((3, 3)))],
    "linalg.pinv": lambda f: [f(floats(4, 3))],
    "nn.softmax": lambda f: [f(floats(5)), f(floats(3, 4), axis=0)],
    "nn.one_hot": lambda f: [f(jnp.arange(3), 4)],
    "nn.logsumexp": lambda f: [f(floats(5)), f(floats(3, 4), axis=1, keepdims=True)],
}


def named(name: str):
    """The replayed function of that name, and the one it replays."""
    function = reduce(getattr, name.split("."), gradix if name.startswith("nn.") else jnp)
    function = elementary.logaddexp if name == "logaddexp" else function
    return function, function.__wrapped__


def bits(out):
    return [(np.asarray(x).tobytes(), x.aval) for x in tree_leaves(out)], type(out)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_bits_and_types(name):
    """Every call is made plainly, then often enough to be replayed; the arrays of a call are the same each time."""
    (function, plain), used = named(name), []

    def both(*args, **kwargs):
        want = bits(plain(*args, **kwargs))
        for _ in range(CALLS):
            assert bits(function(*args, **kwargs)) == want
        return used.append(1)

    SAMPLES[name](both)
    assert used


def test_replays_are_made_and_are_used():
    calls = []

    @replayed
    def f(x, scale=2.0):
        calls.append(1)
        return jnp.sin(x) * scale + jnp.arange(4.0), {"first": x[0]}

    x = floats(4)
    want = bits(f(x))
    for _ in range(50):
        assert bits(f(x)) == want
    assert len(calls) == CALLS - 1  # as often as plain, and once traced
    assert np.asarray(f(x + 1)[0]).tolist() == np.asarray(jnp.sin(x + 1) * 2.0 + jnp.arange(4.0)).tolist()
    assert len(calls) == CALLS - 1
    f(x, 3.0)
    f(floats(5)[:4], scale=-0.0)
    assert len(calls) == CALLS + 1


@pytest.mark.x32
def test_zeros_of_both_signs_are_two_parameters():
    f = replayed(lambda x, y: x * y)
    for _ in range(CALLS):
        assert (
            np.signbit(f(jnp.ones(2), 0.0)).tolist() == [False] * 2
            and np.signbit(f(jnp.ones(2), -0.0)).tolist() == [True] * 2
        )
        assert f(jnp.ones(2), True).dtype == np.float32 and f(jnp.ones(2, int), 1).dtype == np.int32


def test_under_transformations_the_function_itself_runs():
    x = floats(5)
    for _ in range(CALLS):
        slope = gradix.grad(lambda x: jnp.median(x) * 2)(x)
        mapped = gradix.vmap(jnp.median)(jnp.stack([x, x + 1]))
    assert slope.sum() == 2 and mapped.tolist() == [jnp.median(x).item(), jnp.median(x + 1).item()]
    assert "median" not in str(gradix.make_jaxpr(jnp.median)(x))


def test_errors_are_those_of_the_function():
    for _ in range(CALLS):
        with pytest.raises(ValueError, match="out of bounds|axis 3"):
            jnp.median(floats(4), axis=3)
        with pytest.raises(TypeError, match="median takes arrays and numbers"):
            jnp.median([1.0, 2.0])


@pytest.mark.x32
def test_options_decide_as_ever():
    x = jnp.array([1.0, 0.0])
    for _ in range(CALLS):
        assert np.isnan(jnp.mean(x / 0)).item()
    with gradix.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.remainder(x, 0.0)
    with gradix.enable_x64(True):
        for _ in range(CALLS):
            assert jnp.linspace(0, 1, 3).dtype == jnp.mean(jnp.arange(3)).dtype == np.float64
    assert jnp.linspace(0, 1, 3).dtype == np.float32
    config.update("gradix_eager", "xla")
    want = jnp.std(floats(4))
    assert all(jnp.std(floats(4)).dtype == want.dtype for _ in range(CALLS))


def test_large_arrays_and_values_that_decide_are_left_alone():
    many = floats(100, 100)
    for _ in range(CALLS):
        assert jnp.median(many).shape == ()
        assert jnp.repeat(jnp.arange(2), jnp.array([1, 2])).tolist() == [0, 1, 1]
        assert jnp.repeat(jnp.arange(2), jnp.array([2, 0])).tolist() == [0, 0]


def test_nothing_warns_of_what_numpy_meets():
    x = jnp.array([0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(CALLS):
            assert np.isnan(jnp.remainder(x, 0.0)).all()


def _long(x, y):
    """More operations than are worth replaying for ever."""
    for k in range(12):
        x, y = x * y + k, y - x // 3
    return x, {"last": y}


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_long_programs_are_compiled_in_the_end(dtype):
    f = replayed(_long)
    x, y = jnp.arange(5, dtype=dtype), jnp.ones(5, dtype)
    runs = [f(x, y) for _ in range(replay._FIRST + replay._COMPILE_AFTER + 3)]
    kept = [out[0]._host is not None for out in runs]
    assert kept == [True] * (replay._FIRST + replay._COMPILE_AFTER) + [False] * 3  # on the host, or on the device
    if dtype == "int32":
        assert bits(runs[0]) == bits(runs[-1])
    for a, b in zip(tree_leaves(runs[0]), tree_leaves(runs[-1]), strict=True):
        assert a.aval == b.aval
        np.testing.assert_allclose(a, b, rtol=1e-4)
    later = f(x + 1, y)
    np.testing.assert_allclose(later[0], _long(x + 1, y)[0], rtol=1e-4)


def test_the_host_alone_compiles_nothing():
    config.update("gradix_eager", "host")
    f = replayed(_long)
    x = jnp.arange(5.0)
    assert all(f(x, x)[0]._host is not None for _ in range(replay._FIRST + replay._COMPILE_AFTER + 3))


def test_short_programs_stay_on_the_host():
    f = replayed(lambda x: jnp.sin(x) * 2)
    x = jnp.arange(5.0)
    assert all(f(x)._host is not None for _ in range(replay._FIRST + replay._COMPILE_AFTER + 3))


@pytest.mark.x32
def test_a_rule_of_its_own_serves_from_the_first_call():
    calls = []

    def double(x, *, scale=2.0):
        calls.append(1)
        return x * scale, x > 0

    def host(x, *, scale=2.0):
        if x.dtype != np.float32:
            return None
        return lambda x: NotImplemented if np.isnan(x).any() else (x * np.float32(scale), x > 0)

    f = replayed(double, host=host)
    x = jnp.array([1.0, -2.0])
    assert [a.tolist() for a in f(x)] == [[2, -4], [True, False]] and [a.tolist() for a in f(x, scale=3.0)][0] == [
        3,
        -6,
    ]
    assert len(calls) == 2  # traced, for the types of the results
    assert f(x)[1].dtype == bool and len(calls) == 2
    assert np.isnan(f(x * jnp.nan)[0]).all() and len(calls) == 3
    assert f(jnp.arange(2))[0].tolist() == [0, 2]


def test_lists_of_arrays_are_told_apart_by_their_nesting():
    f = replayed(_sum_of)
    a, b, c = floats(3), floats(3), floats(3)
    for parts in ([a, b, c], [[a, b], c], [a, [b, c]], (a, b, c), [(a, b), c], [[a], [b, c]]):
        want = bits(_sum_of(parts))
        assert all(bits(f(parts)) == want for _ in range(CALLS))
    assert f([a, 1.0]).tolist() == _sum_of([a, 1.0]).tolist()


def _sum_of(parts):
    """Each nesting weighs differently."""
    total = 1.0 if isinstance(parts, list) else -1.0
    for part in parts:
        total = total * 3 + (_sum_of(part) * 0.5 if isinstance(part, (list, tuple)) else part)
    return total


SIGNED = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)
LOW, HIGH = -np.inf, np.inf

# Operations that leave an operand as it is, operations that almost do, and arrays of one element beside others.
PLAINLY = {
    "neutral": lambda x: (x * 1.0, 1.0 * x, x / 1.0, x - 0.0, jnp.maximum(LOW, x), jnp.minimum(x, HIGH)),
    "almost neutral": lambda x: (
        x - -0.0,
        x + 0.0,
        -0.0 + x,
        1.0 / x,
        0.0 - x,
        jnp.maximum(x, HIGH),
        jnp.minimum(LOW, x),
        x * -1.0,
    ),
    "neutral of another shape": lambda x: (
        x[:1] * jnp.ones(3),
        jnp.ones((1, 1)) * x,
        jnp.ones((2, 7)) * x,
        x[0] * jnp.ones(1),
    ),
    "one element": lambda x: (
        x - jnp.sum(x[2:4], keepdims=True),
        x * jnp.max(x[:4], keepdims=True),
        jnp.sum(x[2:4], keepdims=True),
    ),
    "of one element only": lambda x: jnp.log(jnp.sum(x[2:4], keepdims=True) * 2 + jnp.ones(1)).reshape(1, 1),
    "one element, spread": lambda x: jnp.broadcast_to(jnp.sum(x[:3], keepdims=True), (2, 1)) + x[:1],
    "one element, converted": lambda x: jnp.sum(x[:4], keepdims=True).astype(jnp.int32) + jnp.arange(3),
    "numbers": lambda x: (
        jnp.sum(x[:4]),
        jnp.exp(jnp.sum(x[:4])),
        jnp.where(jnp.sum(x[:4]) > 1, x, 0.0),
        jnp.sum(x[:4])[None],
    ),
    "numbers that are chosen": lambda x: jnp.where(jnp.sum(x[:4]) > 0, jnp.max(x[:4]), jnp.min(x)),
    "extrema": lambda x: (
        x.max(),
        x[:6].max(),
        x[:6].min(),
        jnp.stack([x, x]).max(),
        jnp.stack([x, x])[:, :5].T.min(),
        x[:0].sum(),
    ),
    "joined": lambda x: (jnp.concatenate([x, x]), jnp.concatenate([x, x[:2], x]), jnp.stack([x, x], 1)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("name", PLAINLY)
def test_what_is_left_out_changes_nothing(name, dtype):
    plain = PLAINLY[name]
    values = SIGNED if dtype in ("float32", "float16", "bfloat16") else [0, 3, 1, 2, 7, 5, 9]
    if dtype == "complex64":
        if name == "extrema" or "converted" in name or "chosen" in name or name == "numbers":
            pytest.skip("complex numbers have no order")
        values = np.array([complex(a, b) for a, b in zip(SIGNED, SIGNED[::-1])])
    x = jnp.asarray(values).astype(dtype)
    f = replayed(lambda x: plain(x))
    want = bits(plain(x))
    for _ in range(CALLS):
        assert bits(f(x)) == want
