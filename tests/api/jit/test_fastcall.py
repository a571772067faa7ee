"""Calls of a jitted function once it is warm: the code written for a signature serves that signature alone."""

import collections
import threading

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

WARM = 6


def warmed(f, *args, **kwargs):
    """The function after enough calls with these arguments, and the last result."""
    for _ in range(WARM):
        out = f(*args, **kwargs)
    return f, out


Pair = collections.namedtuple("Pair", "x y")


@gradix.tree_util.register_pytree_node_class
class Box:
    def __init__(self, value, tag):
        self.value, self.tag = value, tag

    def tree_flatten(self):
        return (self.value,), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(children[0], tag)


TREES = {
    "array": lambda a: a,
    "tuple": lambda a: (a, (), [a * 2]),
    "dict": lambda a: {"b": a, "a": {2: a + 1, 1: None}},
    "named tuple": lambda a: Pair(a, {"z": a}),
    "own node": lambda a: [Box(a, "t"), Box({"k": a}, "u")],
}


@pytest.mark.parametrize("name", TREES)
def test_trees_go_in_and_come_out_as_at_first(name):
    make = TREES[name]
    f = gradix.jit(lambda t, *, k: gradix.tree.map(lambda v: v * k, (t, {"t": t})))
    a, b = jnp.arange(3.0), jnp.arange(3.0) + 5
    first = f(make(a), k=jnp.float32(2))
    f, _ = warmed(f, make(a), k=jnp.float32(2))
    assert f._fast
    out = f(make(b), k=jnp.float32(3))
    assert gradix.tree.structure(out) == gradix.tree.structure(first)
    want = gradix.tree.map(lambda v: v * 3, (make(b), {"t": make(b)}))
    gradix.tree.map(np.testing.assert_array_equal, out, want)


def test_what_differs_is_told_apart():
    f = gradix.jit(lambda t: (t["a"] + 1, t.get("b")))
    warmed(f, {"a": jnp.ones(3)})
    others = [
        {"a": jnp.ones(4)},
        {"a": jnp.ones(3, int)},
        {"a": jnp.ones(3), "b": jnp.ones(1)},
        {"a": np.ones(3, "f4")},
        {"a": 1.0},
        {"a": 1},
        {"a": True},
        {"a": np.float32(2)},
        {"a": jnp.ones(3, jnp.bfloat16)},
    ]
    for other in others * WARM:
        out, want = f(other)[0], jnp.asarray(other["a"]) + 1
        assert out.dtype == want.dtype and out.shape == want.shape and out.weak_type == want.weak_type, other
        np.testing.assert_array_equal(out, want)
    with pytest.raises(TypeError, match="Cannot interpret"):
        f({"a": "text"})
    with pytest.raises(TypeError):
        f({"a": jnp.ones(3)}, 1)
    assert f(collections.OrderedDict(a=jnp.ones(3)))[0].shape == (3,)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(4, dtype="f4"),
        np.arange(4.0),
        np.arange(4),
        np.arange(4, dtype=">f4"),
        np.arange(8, dtype="f4")[::2],
        np.ones((0, 2), "f4"),
        np.arange(40000.0),
        2,
        2.5,
        True,
        1j,
        np.float64(3.5),
        np.int16(3),
        np.ones(2, bool),
    ],
    ids=repr,
)
def test_numpy_arrays_and_numbers(value):
    f, out = warmed(gradix.jit(lambda x, y: (x * 2, y + 1)), value, jnp.ones(2))
    want = jnp.asarray(value) * 2
    for given in (value, value + value if not isinstance(value, bool) else not value):
        if np.asarray(given).dtype != np.asarray(value).dtype:
            continue
        out, want = f(given, jnp.ones(2))[0], jnp.asarray(given) * 2
        assert out.dtype == want.dtype and out.weak_type == (gradix.jit(lambda x: x * 2)(given)).weak_type
        np.testing.assert_array_equal(out, want)


def test_a_numpy_array_may_change_right_after_the_call():
    f = gradix.jit(lambda x: x + 1)
    for n in (8, 1 << 12, 1 << 15, 1 << 18):
        x = np.zeros(n, np.float32)
        outs = []
        for i in range(2 * WARM):
            x[:] = i
            outs.append(f(x))
            x[:] = -99
        for i, out in enumerate(outs):
            np.testing.assert_array_equal(out, np.full(n, i + 1, np.float32))


@pytest.mark.parametrize("shape", [(8,), (), (2, 3), (1,)])
def test_arrays_of_other_shapes_do_not_spread_over_the_memory_of_the_first(shape):
    f, _ = warmed(gradix.jit(lambda x: x * 2), np.ones(shape, "f4"))
    assert len(f._fast) == 1
    for other in [(), (1,), (8,), (1, 8), (3,), (1, 3), (2, 3), (1, 1), (0,)]:
        for _ in range(WARM):
            x = np.random.default_rng(0).normal(size=other).astype("f4")
            out = f(x)
            assert out.shape == other
            np.testing.assert_array_equal(out, x * 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: np.asfortranarray(x),
        lambda x: x[::-1, ::2],
        lambda x: np.broadcast_to(x[0, 0], (4, 6)),
        lambda x: x[1:3, 1:],
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "c8", ">f4", "f2", "bfloat16"])
def test_views_of_any_strides_and_byte_order(make, dtype):
    whole = make(np.arange(24).reshape(4, 6).astype(jnp.bfloat16 if dtype == "bfloat16" else dtype))
    f, out = warmed(gradix.jit(lambda x: x + 1), whole)
    want = jnp.asarray(whole) + 1
    assert out.dtype == want.dtype
    np.testing.assert_array_equal(out, want)
    whole = make((np.arange(24).reshape(4, 6) * 3).astype(whole.dtype))
    np.testing.assert_array_equal(f(whole), jnp.asarray(whole) + 1)


@pytest.mark.x32
@pytest.mark.filterwarnings("error")
def test_numbers_keep_every_bit():
    f, _ = warmed(gradix.jit(lambda x: (x, 1 / x)), 2.0)
    assert np.signbit(f(-0.0)[0]) and f(-0.0)[1] == -np.inf and f(0.0)[1] == np.inf
    assert np.isnan(f(np.nan)[0]) and f(1e300)[0] == np.inf and f(-1e300)[0] == -np.inf and f(1e-300)[0] == 0
    assert f(0.1)[0] == np.float32(0.1) and f(0.1)[0].weak_type
    g, _ = warmed(gradix.jit(lambda z: z * 1), 1 + 2j)
    out = g(complex(-0.0, 1e300))
    assert np.signbit(out.real) and out.imag == np.inf and out.dtype == np.complex64
    with gradix.enable_x64(True):
        h, out = warmed(gradix.jit(lambda x, n, a: (x, n, a)), 0.1, 2**40, np.full(3, 0.1))
        assert out[0].dtype == np.float64 and out[0] == 0.1 and out[1] == 2**40 and out[2][1] == 0.1
        assert float(h(1e300, -(2**62), np.zeros(3))[0]) == 1e300
        with pytest.raises(OverflowError):
            h(0.1, 2**64, np.zeros(3))


@pytest.mark.x32
def test_an_unused_argument_is_still_checked():
    f, out = warmed(gradix.jit(lambda n, x, unused: x + 1), 2, np.zeros(3, "f4"), np.zeros(2))
    np.testing.assert_array_equal(out, [1, 1, 1])
    with pytest.raises(OverflowError):
        f(2**40, np.zeros(3, "f4"), np.zeros(2))


def test_results_stay_when_the_next_call_copies_its_arguments():
    f, _ = warmed(gradix.jit(lambda x, n, big: (x, n, x + big.sum(), big)), np.zeros(5, "f4"), 1.0, jnp.ones(4))
    outs = [f(np.full(5, i, "f4"), float(i), jnp.full(4, i)) for i in range(50)]
    for i, (x, n, s, big) in enumerate(outs):
        np.testing.assert_array_equal(x, np.full(5, i))
        assert n == i and s[0] == 5 * i and big[3] == i


def test_memory_is_not_written_again_while_a_program_waits_for_another_argument():
    f, _ = warmed(gradix.jit(lambda x: x * 2), np.zeros(4, "f4"))
    names = f._first.__globals__
    (pool,) = [value for value in names.values() if type(value) is list and value and type(value[0]) is tuple]
    assert len(pool) == 1
    memory = pool[0]
    f(np.ones(4, "f4"))
    assert pool == [memory]  # one call after the other uses the same

    class Pending:  # a program that has not run yet
        def consume_with_handlers(self, handlers):
            return [self]

        def is_ready(self):
            return False

    (executing,) = [name for name, value in names.items() if getattr(value, "__name__", "") == "execute_sharded"]
    execute, names[executing] = names[executing], lambda buffers: Pending()
    f(np.full(4, 3, "f4"))
    names[executing] = execute
    assert pool == [] and memory[0].tolist() == [3, 3, 3, 3]
    np.testing.assert_array_equal(f(np.full(4, 5, "f4")), np.full(4, 10))
    assert memory[0].tolist() == [3, 3, 3, 3] and pool[0] is not memory


@pytest.mark.x32
def test_numbers_too_large_raise_as_at_first():
    f, _ = warmed(gradix.jit(lambda n: n + 1), 3)
    with pytest.raises(OverflowError):
        f(2**40)
    assert f(-5) == -4


def test_static_arguments():
    @gradix.jit
    def plain(x):
        return x

    f = gradix.jit(lambda x, n, *, flag=None: x * n if flag != "a" else x, static_argnums=1, static_argnames="flag")
    x = jnp.arange(3.0)
    for n in [1, 2, True, 3, 4, 5, 6, 1.5, 0.0, -0.0, None, "s", 2]:
        for flag in (None, "a", "b"):
            if not isinstance(n, (int, float)) and flag != "a":
                continue
            for _ in range(WARM):
                out = f(x, n, flag=flag)
            np.testing.assert_array_equal(out, x * n if flag != "a" else x)
    assert np.signbit(f(x, -0.0)[1]) and not np.signbit(f(x, 0.0)[1])


def test_configuration_and_traces_are_respected():
    f, _ = warmed(gradix.jit(lambda x: x * 2), jnp.float32(1))
    g, _ = warmed(gradix.jit(lambda x: x * 2), 1.5)
    with gradix.enable_x64(True):
        assert g(1.5).dtype == np.float64
    with gradix.disable_jit():
        assert f(jnp.float32(2)) == 4
    assert float(gradix.grad(f)(3.0)) == 2
    np.testing.assert_array_equal(gradix.vmap(f)(jnp.ones(3)), [2, 2, 2])
    assert "jit" in str(gradix.make_jaxpr(f)(jnp.float32(1)))
    with gradix.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.float32(np.nan))


def test_captured_deleted_unused_and_empty():
    w = jnp.arange(3.0)
    f, out = warmed(gradix.jit(lambda x, unused: (x @ w, None)), jnp.ones(3), jnp.ones(2))
    assert float(out[0]) == 3 and out[1] is None
    gone = jnp.ones(3) + 0
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(gone, jnp.ones(2))
    g, out = warmed(gradix.jit(lambda x: ()), jnp.ones(3))
    assert out == ()
    h, out = warmed(gradix.jit(lambda: jnp.ones(2)))
    np.testing.assert_array_equal(out, [1, 1])


def test_calls_are_counted_and_caches_cleared():
    f, _ = warmed(gradix.jit(lambda x: x + 1), jnp.ones(3))
    assert f.stats().calls == WARM and f.stats().traces == 1
    f.clear_cache()
    assert not f._fast
    warmed(f, jnp.ones(3))
    assert f.stats().traces == 2 and f.stats().calls == 2 * WARM


def test_methods_and_pickled_results():
    class Model:
        def __init__(self, k):
            self.k = k

        @gradix.jit
        def no_self(x):  # noqa: N805
            return x * 2

        @staticmethod
        @gradix.jit
        def scale(x):
            return x * 3

    assert float(warmed(Model.scale, jnp.float32(1))[1]) == 3
    assert float(warmed(Model.no_self, jnp.float32(1))[1]) == 2


def _hammer(functions, calls: int, threads: int = 8) -> list:
    wrong: list = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for which, value in zip(rng.integers(len(functions), size=calls), rng.integers(-50, 50, size=calls)):
            k, f = functions[which]
            x = [np.full(3, value, np.float32), jnp.full(3, float(value)), float(value)][which % 3]
            try:
                out = f({"x": x}, np.float32(1))
                if not np.array_equal(np.asarray(out[0]), np.asarray(x, np.float32) * k + 1):
                    wrong.append((which, value, out))
            except Exception as e:
                wrong.append((which, value, e))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for t in workers:
        t.start()
    for t in workers:
        t.join()
    return wrong


def _many_functions(n: int):
    def make(k):
        return gradix.jit(lambda t, one: (t["x"] * k + one, one))

    return [(k, make(k)) for k in range(n)]


def _check_threads(calls: int):
    functions = _many_functions(50)
    before = [f.stats().calls for _, f in functions]
    assert _hammer(functions, calls) == []
    sizes = [(len(f._cache), len(f._fast), len(f._mixed)) for _, f in functions]
    assert _hammer(functions, calls) == []
    assert [(len(f._cache), len(f._fast), len(f._mixed)) for _, f in functions] == sizes
    assert all(n == 1 for n, _, _ in sizes)
    assert sum(f.stats().calls for _, f in functions) - sum(before) == 2 * 8 * calls


def test_threads_share_functions():
    _check_threads(1000)


@pytest.mark.slow
def test_many_threads_share_functions_for_long():
    _check_threads(10_000)


def _first_device():
    return gradix.devices()[0]


@pytest.mark.parametrize(
    "sharding",
    [
        lambda: gradix.sharding.SingleDeviceSharding(_first_device()),
        lambda: gradix.sharding.NamedSharding(gradix.make_mesh((1,), ("x",)), gradix.P()),
    ],
    ids=["device", "mesh"],
)
def test_arguments_on_a_chosen_device(sharding):
    there = sharding()
    w = gradix.device_put(jnp.arange(3.0), there)
    f = gradix.jit(lambda t, n: {"w": t["w"] * 2 + n, "n": t["w"].sum()})
    first = f({"w": w}, np.float32(1))["w"]
    assert warmed(f, {"w": w}, np.float32(1))[0]._fast
    for k in (1, 2):
        given = gradix.device_put(jnp.arange(3.0) + k, there)
        out = f({"w": given}, np.float32(k))
        np.testing.assert_array_equal(out["w"], (np.arange(3) + k) * 2 + k)
        assert out["w"].committed and out["w"].sharding == first.sharding
    plain = f({"w": jnp.arange(3.0)}, np.float32(1))
    assert not plain["w"].committed
    np.testing.assert_array_equal(plain["w"], np.arange(3) * 2 + 1)


def test_captured_arrays_on_a_chosen_device():
    w = gradix.device_put(jnp.arange(3.0) + 1, _first_device())
    f = gradix.jit(lambda x: x @ w)
    first = f(jnp.ones(3))
    assert warmed(f, jnp.ones(3))[0]._fast
    out = f(jnp.ones(3) * 2)
    assert float(out) == 12 and (out.committed, out.sharding) == (first.committed, first.sharding)
