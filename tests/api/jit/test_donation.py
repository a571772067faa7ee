"""Donated arguments: which are, what becomes of them, and what must not."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def taken(n=4):
    return jnp.arange(float(n)) + 1


@pytest.mark.parametrize(
    "options, call",
    [
        ({"donate_argnums": 1}, lambda f, x: f(2.0, x)),
        ({"donate_argnums": (1,)}, lambda f, x: f(2.0, x=x)),
        ({"donate_argnums": -1}, lambda f, x: f(2.0, x)),
        ({"donate_argnames": "x"}, lambda f, x: f(2.0, x)),
        ({"donate_argnames": "x"}, lambda f, x: f(2.0, x=x)),
        ({"donate_argnums": 1, "static_argnums": 0}, lambda f, x: f(2, x)),
        ({"donate_argnames": "x", "static_argnames": "n"}, lambda f, x: f(x=x, n=2)),
    ],
    ids=lambda v: str(v) if isinstance(v, dict) else "call",
)
def test_which_arguments(options, call):
    f = gradix.jit(lambda n, x: x * n, **options)
    for _ in range(2):  # traced, and from the cache
        x = taken()
        np.testing.assert_array_equal(call(f, x), [2, 4, 6, 8])
        assert x.is_deleted()


@pytest.mark.x32
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        np.asarray,
        repr,
        float,
        lambda x: gradix.jit(jnp.sin)(x),
        lambda x: gradix.grad(lambda y: (y * y).sum())(x),
        lambda x: x.sum(),
    ],
    ids=["add", "numpy", "repr", "float", "jit", "grad", "method"],
)
@pytest.mark.parametrize(
    "give_up",
    [lambda x: gradix.jit(lambda x: x + 1, donate_argnums=0)(x), lambda x: x.delete()],
    ids=["donated", "deleted"],
)
def test_what_was_given_up_is_gone(give_up, use):
    x = taken()[:1]
    give_up(x)
    assert x.is_deleted() and x.shape == (1,)
    with pytest.raises(RuntimeError, match="Array has been deleted with shape=float32.1."):
        use(x)


def test_trees():
    update = gradix.jit(lambda p, g: gradix.tree_util.tree_map(lambda a, b: a - b, p, g), donate_argnums=0)
    p, g = {"a": jnp.ones(3), "b": jnp.zeros(2)}, {"a": jnp.ones(3), "b": jnp.ones(2)}
    q = update(p, g)
    np.testing.assert_array_equal(q["b"], [-1, -1])
    assert [v.is_deleted() for v in (*p.values(), *g.values())] == [True, True, False, False]


def test_numbers_are_shared_and_stay():
    f = gradix.jit(lambda x: x + 1, donate_argnums=0)
    assert [float(f(3.0)) for _ in range(3)] == [4, 4, 4]
    x = jnp.asarray(3.0)
    f(x)
    x.delete()
    assert jnp.asarray(3.0) * 2 == 6 and gradix.jit(lambda y: y * 3.0)(3.0) == 9


@pytest.mark.parametrize("n", [4, 400_000])
def test_memory_shared_with_others_is_not_written_to(n):
    x = taken(n)
    y, v = x.reshape(2, -1), np.asarray(x)
    gradix.jit(lambda a, b: (a + 1, b + 1))(x, y)  # both have buffers now
    gradix.jit(lambda x: x * 0 - 1, donate_argnums=0)(x)
    assert y[0, 0] == 1 and y[-1, -1] == n and v[0] == 1 and v[-1] == n
    assert gradix.jit(lambda y: y[0, 0])(y) == 1


def test_a_numpy_argument_is_not_written_to():
    x = np.ones(300_000, np.float32)
    gradix.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.sum() == 300_000


@pytest.mark.x32
def test_what_no_result_can_replace_stays_with_a_warning():
    x = taken()
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[4\]"):
        gradix.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert x[3] == 4
    gradix.jit(lambda x, y: y + 1, donate_argnums=0)(x, 1.0)  # unused: not part of the program
    assert x[3] == 4


@pytest.mark.x32
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape(64, 64),
        lambda x: x.astype(jnp.int32),
        lambda x: (x[:8].sum(), x[None] * 2),
        lambda x: lax.bitcast_convert_type(x, jnp.uint32),
    ],
)
def test_a_result_of_as_many_bytes_takes_the_memory(f):
    x, donating = jnp.arange(4096.0) + 0, gradix.jit(f, donate_argnums=0, donate_strict=True)
    wanted = gradix.tree.map(np.array, gradix.jit(f)(x))
    assert donating.lower(x).compile().memory_analysis().alias_size_in_bytes == x.nbytes
    for found, value in zip(gradix.tree.leaves(donating(x)), gradix.tree.leaves(wanted)):
        np.testing.assert_array_equal(found, value)
    assert x.is_deleted()


@pytest.mark.x32
def test_results_of_the_same_type_come_first():
    x, y = gradix.jit(lambda: (jnp.arange(4096).reshape(64, 64), jnp.arange(4096.0) + 1))()
    f = gradix.jit(lambda x, y: (x.reshape(-1) + 1, y + 1), donate_argnums=(0, 1), donate_strict=True)
    place = pointer(y)
    other, same = f(x, y)
    assert pointer(same) == place and other[1] == 2 and same[0] == 2 and x.is_deleted() and y.is_deleted()


def test_inside_another_function_nothing_is_donated():
    x, f = taken(), gradix.jit(lambda x: x + 1, donate_argnums=0)
    np.testing.assert_array_equal(gradix.jit(lambda x: f(x) + f(x))(x), [4, 6, 8, 10])
    np.testing.assert_array_equal(gradix.vmap(f)(x), x + 1)
    assert not x.is_deleted()


def test_donated_twice():
    x = taken()
    with pytest.raises(Exception, match="donate the same buffer twice"):
        gradix.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))(x, x)


def test_stages_donate_too():
    x = taken()
    compiled = gradix.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    compiled(x)
    assert x.is_deleted()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"donate_argnums": 5}, ValueError, "donate_argnums=.5,. but only accepts 1 positional"),
        ({"donate_argnames": "q"}, ValueError, "invalid argname 'q' in donate_argnames"),
        ({"donate_argnums": "x"}, TypeError, "donate_argnums must be an int"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        gradix.jit(lambda x: x, **options)


# -- the memory is really taken over --------------------------------------------------------------------------------


def pointer(x):
    return x.unsafe_buffer_pointer()


@pytest.mark.x32
def test_a_result_lives_on_the_donated_memory():
    step = gradix.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = step(jnp.arange(100_000.0))  # now one that XLA made
    before = pointer(x)
    y = step(x)
    assert pointer(y) == before and x.is_deleted() and y[1] == 7
    stats = step.lower(y).compile().memory_analysis()
    assert stats.alias_size_in_bytes == stats.argument_size_in_bytes == 400_000


def test_without_donation_it_does_not():
    step = gradix.jit(lambda x: x * 2 + 1)
    x = step(jnp.arange(100_000.0))
    assert pointer(step(x)) != pointer(x) and step.lower(x).compile().memory_analysis().alias_size_in_bytes == 0


def test_a_training_loop_stays_where_it_is():
    update = gradix.jit(lambda p, g: {k: p[k] - 0.1 * g[k] for k in p}, donate_argnums=0)
    p, g = {"w": jnp.ones((300, 40)), "b": jnp.ones(4000)}, {"w": jnp.ones((300, 40)), "b": jnp.ones(4000)}
    p = update(update(p, g), g)
    places = {k: pointer(v) for k, v in p.items()}
    for _ in range(3):
        p = update(p, g)
        assert {k: pointer(v) for k, v in p.items()} == places


# -- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.x32
@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x, y: x.sum() + y, r"float32\[4\] of argument x: no result .* they are float32\[\]"),
        (lambda x, y: y + 1, r"argument x: .* does not use it"),
        (lambda x, y: {"a": x[:2], "b": x.astype("int8")}, r"argument x: no result .* float32\[2\], int8\[4\]"),
    ],
)
def test_strict(f, message):
    x, strict = taken(), gradix.jit(f, donate_argnums=0, donate_strict=True)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"(?s)Some donated buffers were not usable: float32\[4\].*{message}"):
            strict(x, 1.0)
    with pytest.raises(ValueError, match=message):
        strict.lower(x, 1.0)
    assert x[3] == 4


def test_strict_names_the_leaves_of_which_there_are_too_many():
    def f(p):
        return p["a"] + p["b"]

    with pytest.raises(ValueError, match=r"argument p\['b'\]: the 1 results of this size already live on other"):
        gradix.jit(f, donate_argnames="p", donate_strict=True)({"a": taken(), "b": taken()})
    with pytest.warns(UserWarning, match=r"argument p\['b'\]") as caught:
        gradix.jit(f, donate_argnames="p")({"a": taken(), "b": taken()})
    assert caught[0].filename == __file__


made = {
    dtype: gradix.jit(lambda dtype=dtype: jnp.arange(4096).astype(dtype))
    for dtype in ("float32", "bfloat16", "int8", "complex64")
}
add_one = {strict: gradix.jit(lambda x: x + 1, donate_argnums=0, donate_strict=strict) for strict in (False, True)}


@pytest.mark.parametrize("dtype", made)
@pytest.mark.parametrize("strict", [False, True])
def test_what_was_printed_still_gives_its_memory(dtype, strict):
    for look in (repr, np.asarray, lambda x: x[:2].tolist(), np.array, hash_of):
        x = made[dtype]()
        place = pointer(x)
        look(x)
        assert pointer(add_one[strict](x)) == place and x.is_deleted()


def hash_of(x):
    return x.tobytes()


@pytest.mark.parametrize("dtype", made)
@pytest.mark.parametrize("view", [np.asarray, lambda x: np.asarray(x)[2:], lambda x: np.asarray(x).reshape(2, -1).T])
def test_a_view_keeps_its_values_and_strict_says_so(dtype, view):
    x = made[dtype]()
    seen = view(x)
    before = seen.copy()
    with pytest.raises(
        ValueError, match=rf"(?s){dtype}\[4096\] of argument x: a NumPy view of it is in use.*instead: keep np.array"
    ):
        add_one[True](x)
    assert not x.is_deleted() and x[1] == 1
    out = add_one[False](x)  # copied, and the view still shows what it showed
    assert x.is_deleted() and out[1] == 2
    np.testing.assert_array_equal(seen, before)
    y = made[dtype]()
    view(y)
    add_one[True](y)  # the view is gone


@pytest.mark.parametrize("was_used", [False, True])
def test_memory_of_numpy_is_copied_and_the_copy_used(was_used):
    raw = np.zeros(4096 * 4 + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    aligned = raw[start : start + 4096 * 4].view(np.float32)  # which XLA would otherwise read where it is
    for x in (jnp.from_dlpack(aligned), jnp.from_dlpack(aligned[1:]), jnp.asarray(aligned)):
        seen = np.asarray(x)
        if was_used:
            made["float32"]() + gradix.jit(lambda x: x * 2)(x)[:1]
        assert add_one[True](x)[3] == 1 and x.is_deleted()
        assert not aligned.any() and not seen.any()


def test_strict_is_content_where_all_is_used():
    table = jnp.arange(100.0)
    f = gradix.jit(lambda x, y: (y + x + table[0], x - 1), donate_argnums=(0, 1), donate_strict=True)
    x, y = taken(), taken()
    np.testing.assert_array_equal(f(x, y)[1], [0, 1, 2, 3])
    assert x.is_deleted() and y.is_deleted()


@pytest.mark.x32
def test_captured_arrays_do_not_shift_what_is_said():
    table = jnp.arange(100.0)
    with pytest.raises(ValueError, match=r"float32\[3\] of argument z"):
        gradix.jit(lambda y, z: y + z.sum() + table.sum(), donate_argnums=1, donate_strict=True)(taken(), taken(3))


def test_use_afterwards_names_argument_function_and_line():
    def step(params, rate):
        return {"w": params["w"] * rate}

    p, jitted = {"w": taken()}, gradix.jit(step, donate_argnames="params")
    jitted(p, 2.0)
    line = step.__code__.co_firstlineno + 4
    for use in (lambda: p["w"] + 1, lambda: np.asarray(p["w"]), lambda: jitted(p, 2.0)):
        with pytest.raises(
            RuntimeError, match=rf"(?s)donated as argument params\['w'\] of step at .*test_donation.py:{line}"
        ):
            use()
    x = taken()
    x.delete()
    with pytest.raises(RuntimeError, match=r"method delete\(\) was called"):
        x + 1


@pytest.mark.x32
@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.array(0.0),
        lambda: jnp.zeros(100_000),
        lambda: jnp.asarray(np.arange(10.0)),
        lambda: gradix.random.normal(gradix.random.key(0), (1000,)),
    ],
)
def test_a_result_lives_where_an_array_made_by_numpy_was_last_seen(make):
    x = make()
    values, before = np.array(x), pointer(x)
    assert pointer(x) == before
    np.testing.assert_array_equal(x, values)
    assert pointer(x) == before
    y = gradix.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and pointer(y) == before
    np.testing.assert_array_equal(y, values + 1)


def test_a_view_keeps_its_values_when_the_address_is_asked_for():
    given = np.arange(1000.0, dtype="f4")
    x = jnp.asarray(given)
    view = np.asarray(x)
    pointer(x)
    gradix.jit(lambda x: x * 0, donate_argnums=0)(x)
    np.testing.assert_array_equal(view, given)


@pytest.mark.x32
def test_what_shares_memory_is_named():
    f = gradix.jit(lambda x, y: (2 * x, y["a"] + 1), donate_argnums=0)
    x = jnp.arange(4.0) * 2
    with pytest.raises(RuntimeError, match="donated") as caught:
        f(x, {"a": x})
    assert "args[0] and args[1]['a'] of <lambda> are one array, float32[4]" in caught.value.__notes__[0]
    first = gradix.jit(lambda: jnp.arange(4.0) + 1)()
    f(gradix.device_put(first, gradix.devices()[0]), {"a": x})
    with pytest.raises(RuntimeError, match="donated") as caught:
        gradix.jit(lambda v: v + 1)(first)
    assert "args[0] of <lambda>, float32[4], shared its memory" in caught.value.__notes__[0]
    assert "may_alias=False" in caught.value.__notes__[0]


# -- calls by generated code ------------------------------------------------------------------------------------------


def _frequent(f, make, *rest):
    """The function after enough calls for generated code."""
    for _ in range(6):
        f(make(), *rest)
    assert f._fast
    return f


def _made(x, n=4):
    """An array in a buffer that nothing else shows."""
    return gradix.jit(lambda: jnp.arange(float(n)) + x)()


def _on_a_device(x):
    return gradix.device_put(_made(x), gradix.devices()[0])


@pytest.mark.parametrize("make", [_made, _on_a_device], ids=["any", "chosen"])
def test_a_frequent_call_takes_the_memory_and_names_itself(make):
    table = jnp.arange(4.0)

    def step(scale, state, unused):
        return {"w": state["w"] * scale["by"][0] + table, "n": state["n"] + 1}

    f = gradix.jit(step, donate_argnums=1, static_argnums=0)
    scale = {"by": [2.0]}

    def states():
        while True:
            yield {"w": make(1.0), "n": make(0.0)}

    every = states()
    for _ in range(6):
        f(scale, next(every), 1.0)
    assert f._fast
    state = next(every)
    places = [pointer(x) for x in state.values()]
    out = f(scale, state, 1.0)
    assert [pointer(out[k]) for k in state] == places
    np.testing.assert_array_equal(out["w"], (np.arange(4) + 1) * 2 + np.arange(4))
    line = test_a_frequent_call_takes_the_memory_and_names_itself.__code__.co_firstlineno + 20
    with pytest.raises(RuntimeError, match=rf"(?s)as argument state\['w'\] of step at .*test_donation.py:{line}"):
        state["w"] + 1
    with pytest.raises(RuntimeError, match=r"as argument state\['n'\] of step"):
        f(scale, {"w": make(1.0), "n": state["n"]}, 1.0)
    scale["by"][0] = 3.0
    np.testing.assert_array_equal(f(scale, next(every), 1.0)["w"], (np.arange(4) + 1) * 3 + np.arange(4))


@pytest.mark.parametrize("strict", [False, True])
def test_a_frequent_call_leaves_the_memory_of_others(strict):
    f = gradix.jit(lambda x: x + 1, donate_argnums=0, donate_strict=strict)
    _frequent(f, lambda: _made(1.0))
    x = _made(1.0)
    view = np.asarray(x)
    if strict:
        with pytest.raises(ValueError, match="a NumPy view of it is in use"):
            f(x)
        assert not x.is_deleted()
    else:
        f(x)
        assert x.is_deleted()
    np.testing.assert_array_equal(view, np.arange(4) + 1)
    given = np.arange(4.0, dtype=view.dtype)
    y = jnp.asarray(given)
    f(y)
    assert y.is_deleted() and (given == np.arange(4)).all()
    f(given)
    assert (given == np.arange(4)).all()
    printed = _made(1.0)
    place = (repr(printed), pointer(printed))[1]
    assert pointer(f(printed)) == place and printed.is_deleted()


def test_a_frequent_call_leaves_cached_numbers():
    f = gradix.jit(lambda x: x + 1, donate_argnums=0)
    _frequent(f, lambda: _made(1.0, 1)[0])
    for _ in range(8):
        x = jnp.asarray(3.0)
        x.unsafe_buffer_pointer()
        assert f(x) == 4
    assert jnp.asarray(3.0) * 2 == 6


def test_a_frequent_call_given_one_array_twice():
    f = gradix.jit(lambda x, y: (x + 1, y * 2), donate_argnums=(0, 1))
    for _ in range(6):
        f(_made(1.0), _made(2.0))
    x = _made(1.0)
    with pytest.raises(RuntimeError, match="donate the same buffer twice") as caught:
        f(x, x)
    assert "args[0] and args[1] of <lambda> are one array" in caught.value.__notes__[0]
