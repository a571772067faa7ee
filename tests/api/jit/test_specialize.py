"""`jit(f, specialize=True)`: Python decides by traced values, and what was seen once runs without Python."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.callbacks import io_callback


def specialized(function=None, **options):
    """The function under jit with specialize=True, and a list that grows each time Python runs it."""
    runs: list[int] = []

    def counted(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)

    return gradix.jit(counted, specialize=True, **options), runs


M = np.array([3.0, -1.0, 2.0, -5.0], np.float32)

DECISIONS = {
    "mask": (lambda x: x[x > 0], M),
    "mask of two axes": (lambda x: x[x > 0], M.reshape(2, 2)),
    "mask beside an index": (lambda x: x[x[:, 0] > 0, 1], M.reshape(2, 2)),
    "mask that is empty": (lambda x: x[x > 9], M),
    "nonzero": (lambda x: jnp.nonzero(x > 0)[0], M),
    "where with one argument": (lambda x: jnp.where(x > 0)[0], M),
    "argwhere": (lambda x: jnp.argwhere(x.reshape(2, 2) > 0), M),
    "extract": (lambda x: jnp.extract(x > 0, x), M),
    "unique": (jnp.unique, np.array([1, 2, 1, 3])),
    "bincount": (jnp.bincount, np.array([1, 1, 3])),
    "arange": (lambda n: jnp.arange(n) * n, np.int32(4)),
    "slice": (lambda x: x[: x.argmin()], M),
    "shape": (lambda n: jnp.ones((n, 2)), np.int32(3)),
    "reshape": (lambda n: jnp.ones(6).reshape(n, -1), np.int32(2)),
    "repeat": (lambda n: jnp.repeat(jnp.arange(2), n), np.array([1, 3])),
    "split": (lambda n: jnp.split(jnp.arange(4), n), np.array([1, 3])),
    "range": (lambda n: sum(range(n)), np.int32(5)),
    "index of a list": (lambda n: [1, 2, 3][n], np.int32(1)),
    "item": (lambda n: [1, 2, 3][n.item()], np.int32(1)),
    "tolist": (lambda x: len(x.tolist()), M),
    "iteration": (lambda x: [float(v) for v in x], M),
    "float": (lambda x: float(x.sum()) + x, M),
    "complex": (lambda x: complex(x[0]) * x, M),
    "format": (lambda x: f"{float(x):.1f}" == "1.5", np.float32(1.5)),
    "numpy": (lambda x: np.sort(np.asarray(x)), M),
    "set at a mask": (lambda x: x.at[x > 0].set(0), M),
    "set at a mask, several values": (lambda x: x.at[x > 0].set(jnp.array([7.0, 8.0])), M),
    "membership": (lambda n: 1 if n in (1, 2) else 0, np.int32(2)),
    "length of scan": (lambda n: lax.scan(lambda c, _: (c + 1, c), 0, None, length=n)[1], np.int32(3)),
    "segments": (lambda i: gradix.ops.segment_sum(jnp.ones(3), i), np.array([0, 1, 1])),
    "eye": (lambda n: jnp.eye(n), np.int32(2)),
    "truth twice": (lambda x: (1 if x > 0 else 2) + (3 if x > 0 else 4), np.float32(1)),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_give_what_python_gives_and_are_made_once(name):
    function, x = DECISIONS[name]
    want = function(jnp.asarray(x))
    f, runs = specialized(function)
    for _ in range(3):
        got = f(x)
        assert gradix.tree.structure(got) == gradix.tree.structure(want)
        for a, b in zip(gradix.tree.leaves(got), gradix.tree.leaves(want)):
            np.testing.assert_array_equal(a, b)
            assert jnp.asarray(b).dtype == a.dtype
    assert len(runs) == 1


def test_masks_are_told_apart_by_how_many_elements_hold():
    f, runs = specialized(lambda x: x[x > 0])
    for x in ([1.0, -1, 2, -2], [-1.0, 3, -2, 4], [5.0, 6, -1, -1]):
        np.testing.assert_array_equal(f(np.array(x, np.float32)), [v for v in x if v > 0])
    assert len(runs) == 1 and len(f.stats().paths) == 1
    assert f(np.ones(4, np.float32)).shape == (4,) and len(runs) == 2


def test_values_not_met_before_run_python_and_then_no_more():
    def steps(n):
        count = 0
        while n != 1:
            n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
            count += 1
        return count

    f, runs = specialized(steps)
    want = [0, 1, 7, 2, 5, 8, 16, 3, 19]
    assert [int(f(n)) for n in range(1, 10)] == want
    seen = len(runs)
    assert [int(f(n)) for n in range(1, 10)] == want and len(runs) == seen
    stats = f.stats()
    assert stats.compiles + stats.loads <= 4  # the steps of the loop are one program
    assert len(stats.paths) == 9 and stats.traces == seen


def test_pytrees_static_arguments_and_keywords():
    @gradix.jit(specialize=True, static_argnames="way")
    def f(params, *, scale, way):
        if way == "both" and params["w"].sum() > 0:
            return {"out": (params["w"] * scale, params["b"]), "n": 3}
        return {"out": params["b"]}

    params = {"w": jnp.ones(2), "b": jnp.zeros(1)}
    assert gradix.tree.map(lambda x: x.tolist(), f(params, scale=2.0, way="both")) == {"out": ([2, 2], [0]), "n": 3}
    assert f({**params, "w": -params["w"]}, scale=2.0, way="both")["out"].tolist() == [0]
    assert f(params, scale=2.0, way="one")["out"].tolist() == [0]


def test_derivatives_of_any_order_follow_the_way_taken():
    f, runs = specialized(lambda x: (x**3).sum() if x.sum() > 0 else 2 * x.sum())
    np.testing.assert_allclose(gradix.grad(lambda x: f(x))(jnp.ones(2)), [3, 3])
    np.testing.assert_allclose(gradix.grad(lambda x: f(x))(-jnp.ones(2)), [2, 2])
    np.testing.assert_allclose(gradix.hessian(f)(jnp.ones(2)), [[6, 0], [0, 6]])
    np.testing.assert_allclose(gradix.jvp(f, (jnp.ones(2),), (jnp.ones(2),))[1], 6)
    assert len(runs) == 2
    g = gradix.jit(gradix.value_and_grad(lambda x: x * x if x > 0 else -x), specialize=True)
    assert [float(v) for v in (*g(3.0), *g(-3.0))] == [9, 6, 3, -1]


def test_a_captured_traced_value_has_its_derivative():
    def loss(w):
        f = gradix.jit(lambda x: x * w if x > 0 else x, specialize=True)
        return f(2.0) + f(-1.0)

    assert float(gradix.grad(loss)(3.0)) == 2.0


def test_float_of_a_differentiated_value_says_that_its_derivative_would_be_lost():
    f = gradix.jit(lambda x: float(x) * x, specialize=True)
    assert float(f(2.0)) == 4.0
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="has no derivative"):
        gradix.grad(f)(2.0)
    g = gradix.jit(lambda x: float(lax.stop_gradient(x)) * x, specialize=True)
    assert float(gradix.grad(g)(2.0)) == 2.0


def test_vmap_is_told_that_examples_may_differ():
    f = gradix.jit(lambda x, n: x * 2 if n > 0 else x, specialize=True)
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="Under vmap every example has its own value"):
        gradix.vmap(f)(jnp.ones(2), jnp.ones(2))
    np.testing.assert_array_equal(gradix.vmap(f, in_axes=(0, None))(jnp.ones(2), 1), [2, 2])
    np.testing.assert_array_equal(gradix.vmap(f, in_axes=(0, None))(jnp.ones(2), -1), [1, 1])


def test_a_jit_around_it_has_no_values_unless_it_specializes_too():
    f = gradix.jit(lambda x: x * 2 if x > 0 else x, specialize=True)
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="pass specialize=True to the outermost jit"):
        gradix.jit(f)(1.0)
    outer, runs = specialized(lambda x: f(x) + f(-x))
    assert float(outer(3.0)) == 3.0 and float(outer(4.0)) == 4.0 and len(runs) == 1
    with pytest.raises(gradix.errors.TracerBoolConversionError):
        f.lower(1.0)
    assert gradix.jit(lambda x: x + 1, specialize=True).lower(1.0).compile()(1.0) == 2


def test_a_function_may_call_itself():
    @gradix.jit(specialize=True)
    def factorial(n):
        return n * factorial(n - 1) if n > 1 else n

    assert [int(factorial(jnp.int32(5))) for _ in range(4)] == [120] * 4
    traces = factorial.stats().traces
    assert int(factorial(jnp.int32(5))) == 120 and factorial.stats().traces == traces


def test_effects_happen_once_and_in_order():
    seen: list = []

    def note(name):
        def act(x):
            seen.append((name, float(x)))
            return np.float32(x)

        return act

    @gradix.jit(specialize=True)
    def f(x):
        x = io_callback(note("first"), jnp.float32(0), x, ordered=True)
        if x > 0:
            x = io_callback(note("positive"), jnp.float32(0), x + 1, ordered=True)
        else:
            gradix.debug.callback(note("negative"), x, ordered=True)
        gradix.debug.callback(note("last"), x, ordered=True)
        return x

    for x, want in [(1.0, ["first", "positive", "last"]), (-1.0, ["first", "negative", "last"])] * 3:
        seen.clear()
        f(x).block_until_ready()
        gradix.effects_barrier()
        assert [name for name, _ in seen] == want, (x, seen)


def test_an_exception_keeps_nothing_and_is_raised_each_time():
    @gradix.jit(specialize=True)
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x

    assert float(f(1.0)) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            f(-1.0)
    assert len(f.stats().paths) == 1


def test_the_number_of_ways_is_bounded():
    f = gradix.jit(lambda n: jnp.arange(n), specialize=True, max_paths=3)
    for n in range(3):
        assert f(n).shape == (n,)
    with pytest.warns(UserWarning, match=r"more than max_paths=3 paths.*The numbers asked for at .*test_specialize"):
        assert f(3).shape == (3,)
    assert [f(n).shape for n in range(8)] == [(n,) for n in range(8)]
    assert len(f.stats().paths) == 3
    before = f.stats().traces
    assert f(7).shape == (7,) and f.stats().traces == before


def test_functions_that_change_their_mind_are_run_anew():
    way = ["add"]

    @gradix.jit(specialize=True)
    def f(x):
        y = x + 1 if way[0] == "add" else x * 10
        return y * 2 if y > 5 else y

    assert float(f(1.0)) == 2
    way[0] = "multiply"
    assert float(f(1.0)) == 2  # known, as with any jit
    assert float(f(9.0)) == 180  # a decision not met before: what was known does not fit any more
    assert float(f(0.1)) == 1


def test_stats_show_the_tree():
    f, _ = specialized(lambda x: x * 2 if x > 0 else x[None])
    f(1.0), f(2.0), f(-1.0)
    paths = f.stats().paths
    assert [(p.calls, [d.value for d in p.decisions]) for p in paths] == [(2, [True]), (1, [False])]
    lines = str(paths).splitlines()
    assert lines[0].startswith("bool at ") and "test_specialize.py" in lines[0]
    assert lines[1:] == ["├─ True: returns (2 calls)", "└─ False: returns (1 call)"]
    assert f.stats().reasons == (f"a truth value asked for at {paths[0].decisions[0].place} is new: False",)


def test_a_donated_argument_goes_to_the_last_segment_that_takes_it():
    f = gradix.jit(
        lambda x, y: (x * 2 if x.sum() > 0 else y - 1) if y.sum() > 0 else x, specialize=True, donate_argnums=(0, 1)
    )
    for first, second, want, gone in (
        (1, 1, 2, [True, False]),
        (-1, 1, 0, [False, True]),
        (1, -1, 1, [False, False]),
    ) * 2:
        x, y = jnp.full(3, float(first)) + 0, jnp.full(3, float(second)) + 0
        np.testing.assert_array_equal(f(x, y), np.full(3, want, "f4"))
        assert [x.is_deleted(), y.is_deleted()] == gone


def test_mutable_arrays_are_written_at_the_end_of_a_call():
    total, seen = gradix.new_ref(jnp.zeros(())), gradix.new_ref(jnp.zeros(2))

    def f(ref, x):
        before = total[...]
        if x > 0:
            total[...] += x
            ref[0] = before
        elif x < -5:
            ref[1] = jnp.log(x) if int(x) == -7 else x
        return ref[...].sum() + total[...]

    g, h = gradix.jit(f, specialize=True), gradix.jit(f, specialize=True, check="nan")
    for jitted in (g, h):
        total[...], seen[...] = 0.0, jnp.zeros(2)
        assert [float(jitted(seen, x)) for x in (1.0, 2.0, -6.0, 3.0, -1.0)] == [1, 4, -2, 3, 3]
        assert float(total[...]) == 6 and seen[...].tolist() == [3, -6]
    with pytest.raises(FloatingPointError):
        h(seen, -7.0)
    assert float(total[...]) == 6 and seen[...].tolist() == [3, -6]
    with pytest.raises(ValueError, match="only one reference"):
        gradix.jit(lambda a, b: a.__setitem__(0, 1.0) if b[0] > 0 else None, specialize=True)(seen, seen)


def test_large_values_that_python_no_longer_holds_are_not_carried():
    f, _ = specialized(lambda x: x.sum() if jnp.sin(jnp.outer(x, x)).sum() > 0 else x)
    f(np.ones(4, np.float32))
    first = next(iter(f._cache.values())).root
    assert all(a.size < 16 for a in first.traced.jaxpr.out_avals)


def test_random_keys_and_weak_types_pass_through_a_decision():
    @gradix.jit(specialize=True)
    def f(key, x):
        a, b = gradix.random.split(key)
        x = x + gradix.random.uniform(a, x.shape)
        return x * 2.0 if x.sum() > 0 else x, gradix.random.uniform(b), 1.5

    key, x = gradix.random.key(0), jnp.ones(3)
    a, b = gradix.random.split(key)
    for _ in range(2):
        y, z, w = f(key, x)
        np.testing.assert_allclose(y, (x + gradix.random.uniform(a, (3,))) * 2)
        np.testing.assert_allclose(z, gradix.random.uniform(b))
        assert w.weak_type and not y.weak_type
