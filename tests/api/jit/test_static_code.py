"""The generated code that compares static arguments: it finds those alone whose fingerprints are equal."""

import functools
import gc
import itertools
import types
import weakref

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._api.jit.fastcall import Writer
from gradix._api.jit.fingerprint import fingerprint
from gradix._api.jit.static_code import write_static
from tests.api.jit.test_statics import DIFFERENT, EQUAL, Hashed, Pair, Plain, scaled


def finder(value):
    """A function that says whether generated code takes a value for this one."""
    w = Writer()
    write_static(w, "a0", value)
    lines = [*w.lines, "return True"]
    exec("def call(a0, MISS=False):\n " + "\n ".join(lines), w.names)

    def finds(other):
        try:
            return w.names["call"](other)
        except (AttributeError, KeyError, TypeError, ValueError):  # as the code around it has it
            return False

    return finds


VALUES = {
    **{f"{name} {k}": v for name, pair in DIFFERENT.items() for k, v in enumerate(pair)},
    "texts": {"a": "b", "c": ("d", None, ...)},
    "dict of numbers": {1: 2, 2: 3},
    "empty": ((), [], {}, set()),
    "floats": (0.0, -0.0, float("nan"), float("inf"), 1.5, 2),
    "other floats": (0.0, 0.0, float("nan"), float("inf"), 1.5, 2),
    "more floats": (0.0, -0.0, float("nan"), float("inf"), 1.5, 2.0),
    "named": Pair(1, (2, [3])),
    "a tuple like it": (1, (2, [3])),
    "types": (int, np.dtype("f4"), jnp.float32, type(None)),
    "functions": (jnp.cos, jnp.add, len, np.sin, scaled, gradix.nn.relu),
    "structure": ((None, "w"), gradix.tree.structure({"w": (1, 2)})),
    "another structure": ((None, "w"), gradix.tree.structure({"w": [1, 2]})),
    "mesh": gradix.sharding.PartitionSpec("x", None),
    "another mesh": gradix.sharding.PartitionSpec("y", None),
    "jitted": (gradix.jit(scaled),),
    "bound": [Plain(1).__init__, "a".join],
    "applied": functools.partial(scaled, jnp.ones(2), [2]),
    "applied by name": functools.partial(scaled, k=[2], l=1),
    "applied by another name": functools.partial(scaled, l=1, k=[2]),
    "hash": (Hashed("ab"), 1),
    "hash of another": (Hashed("b"), 1),
    "long": list(range(2_000)),
    "longer": [*range(1_999), True],
    "deep": functools.reduce(lambda inner, _: [inner], range(60), 1),
    "deeper": functools.reduce(lambda inner, _: [inner], range(60), True),
    "code": (lambda x: x + 1).__code__,
    "attributes": types.FunctionType(scaled.__code__, globals(), closure=scaled.__closure__),
}


@pytest.mark.parametrize("name", VALUES)
def test_it_finds_the_value_and_none_of_another_content(name):
    value = VALUES[name]
    finds, key = finder(value), fingerprint(value)
    assert finds(value)
    found = [n for n, other in VALUES.items() if finds(other)]
    assert found == [n for n, other in VALUES.items() if fingerprint(other) == key]


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_it_finds_equal_content_that_was_made_anew(make):
    if fingerprint(make()) == fingerprint(make()):
        assert finder(make())(make())


def _capturing(value):
    """A function that captures another one, which captures `value`; and one that replaces it."""

    def inner():
        return value

    def outer(x, scale=1):
        return x * inner() * scale

    def replace(new):
        nonlocal value
        value = new

    return outer, inner, replace


def _replace_cell(outer, inner, replace):
    replace(3)


def _replace_default(outer, inner, replace):
    outer.__defaults__ = (2,)


def _replace_keyword(outer, inner, replace):
    outer.__kwdefaults__ = {"scale": 2}


def _replace_attribute(outer, inner, replace):
    inner.note = "new"


def _replace_code(outer, inner, replace):
    inner.__code__ = (lambda value: lambda: value + 1)(0).__code__


@pytest.mark.parametrize(
    "change", [_replace_cell, _replace_default, _replace_keyword, _replace_attribute, _replace_code]
)
@pytest.mark.parametrize("around", [lambda f: f, lambda f: (f, (None, 1.0)), lambda f: [f], functools.partial])
def test_what_a_function_captures_is_seen_to_be_replaced(around, change):
    outer, inner, replace = _capturing(2)
    finds = finder(around(outer))
    assert finds(around(outer))
    change(outer, inner, replace)
    assert not finds(around(outer)) and finder(around(outer))(around(outer))


def _kind(part):
    return type(part).__name__


@pytest.mark.parametrize("part", [[1], {"a": 1}, {1}, np.ones(2), Plain(1), (1, [2])], ids=_kind)
def test_parts_of_functions_are_seen_to_change(part):
    outer, *_ = _capturing(part)
    finds = finder(outer)
    assert finds(outer)
    for x in part if isinstance(part, tuple) else [part]:
        if isinstance(x, list):
            x.append(5)
        elif isinstance(x, set):
            x.add(5)
        elif isinstance(x, dict):
            x["b"] = 5
        elif isinstance(x, np.ndarray):
            x[0] = 5
        elif isinstance(x, Plain):
            x.k = 5
    assert not finds(outer)


def test_functions_that_capture_themselves_or_what_holds_them():
    def itself(n):
        return itself(n - 1) if n else held

    held = (itself, [itself])
    ring = [1]
    ring.append(ring)
    for value in (itself, held, ring):
        finds = finder(value)
        assert finds(value)
        held[1].append(ring)
        assert finds(value) == (value is ring)
        held[1].pop()


def test_equal_functions_are_found_and_kept_by_nothing():
    one, two, three = _capturing(2)[0], _capturing(2)[0], _capturing(3)[0]
    finds = finder(one)
    assert finds(two) and not finds(three)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_an_equality_that_raises_is_told_by_tracing():
    class Refusing:
        def __init__(self):
            self.refuses = False

        def __hash__(self):
            return 1

        def __eq__(self, other):
            if self.refuses or other.refuses:
                raise ArithmeticError("no")
            return True

    f = gradix.jit(lambda s, x: x * 2, static_argnums=0)
    one, other = (Refusing(),), (Refusing(),)
    assert [float(f(one, 1.0)) for _ in range(5)] == [2.0] * 5
    other[0].refuses = True
    with pytest.raises(ValueError, match="raised while they were compared|comparing"):
        f(other, 1.0)


@pytest.mark.parametrize("around", [lambda f: f, lambda f: (None, (f, 2.0))])
def test_a_jitted_function_with_a_function_that_changes(around):
    outer, _, replace = _capturing(2)

    def call(given, x):
        return (given[1][0] if isinstance(given, tuple) else given)(x)

    doubled = gradix.jit(call, static_argnums=0)
    x = jnp.ones(())
    assert [float(doubled(around(outer), x)) for _ in range(6)] == [2.0] * 6
    replace(3)
    assert [float(doubled(around(outer), x)) for _ in range(6)] == [3.0] * 6
    replace(2)
    assert [float(doubled(around(outer), x)) for _ in range(6)] == [2.0] * 6
    assert doubled.stats().traces == 2


def test_signatures_that_differ_by_static_arguments_alone():
    f = gradix.jit(lambda s, x: x * sum(s["sizes"]), static_argnums=0)
    x = jnp.ones(())
    for _ in range(6):
        for sizes in itertools.permutations([1, 2, 4], 2):
            assert f({"sizes": list(sizes)}, x) == sum(sizes)
    assert f.stats().traces == 6
