"""Static arguments by content: what shares a trace, what does not, and what a class may do about it."""

import collections
import dataclasses
import functools
import types

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._api.jit.fingerprint import NoFingerprint, Walk, fingerprint


class Plain:
    def __init__(self, k):
        self.k = k


class Closed:
    """No hash, and an equality nobody may call."""

    __hash__ = None

    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        raise AssertionError("called")


class Slotted:
    __slots__ = ("__hidden", "shown")

    def __init__(self, hidden, shown):
        self.__hidden, self.shown = hidden, shown


@dataclasses.dataclass
class Record:
    a: object
    b: object = ()


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    note: str = dataclasses.field(default="", compare=False)


Pair = collections.namedtuple("Pair", "a b")


def scaled(k):
    return lambda x: x * k


def default(x, k=(1,)):
    return x


EQUAL = {
    "list": lambda: [1, [2.0, "a", None]],
    "dict": lambda: {"a": {1, 2}, 3: (4,)},
    "set": lambda: {1, "a", (2, 3)},
    "array": lambda: np.arange(6.0).reshape(2, 3),
    "large array": lambda: np.arange(10_000),
    "array of objects": lambda: np.array([1, "a", None], object),
    "scalar": lambda: np.float32(2),
    "nan": lambda: [float("nan"), complex(0, -0.0)],
    "deque": lambda: collections.deque([1, 2]),
    "default dict": lambda: collections.defaultdict(list, a=[1]),
    "named tuple": lambda: Pair([1], {2}),
    "bytes": lambda: [bytearray(b"ab"), b"ab"],
    "namespace": lambda: types.SimpleNamespace(a=[1]),
    "plain": lambda: Plain([1, {"x": 2}]),
    "closed": lambda: [Closed(Plain(2))],
    "slots": lambda: Slotted([1], 2),
    "dataclass": lambda: Record([1], np.ones(2)),
    "frozen": lambda: Frozen([1]),
    "frozen note": lambda: Frozen(1, "seen by no comparison" + str(id(object()))),
    "function": lambda: scaled([2.0]),
    "partial": lambda: functools.partial(scaled, [2.0], k=1),
    "method": lambda: Plain(1).__init__,
    "jax array in a list": lambda: [jnp.ones(2)],
}


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_equal_content_shares_a_trace(make):
    f = gradix.jit(lambda x, s: x, static_argnums=1)
    f(1.0, make()), f(1.0, make())
    assert f.stats().traces == 1


DIFFERENT = {
    "bool and int": ([True], [1]),
    "int and float": ((1,), (1.0,)),
    "zeros": (0.0, -0.0),
    "list and tuple": ([1], (1,)),
    "nested": ({"a": [[1]]}, {"a": [(1,)]}),
    "order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "dtype": (np.ones(2, "f4"), np.ones(2, "f8")),
    "shape": (np.ones((2, 1)), np.ones((1, 2))),
    "scalar and array": (np.float32(1), np.array(1, "f4")),
    "class": (Plain(1), Closed(1)),
    "attribute": (Plain([1]), Plain([2])),
    "slot": (Slotted(1, 2), Slotted(2, 2)),
    "frozen with equal fields of two types": (Frozen(True), Frozen(1)),
    "subclass": (collections.OrderedDict(a=1), {"a": 1}),
    "closure": (scaled(2.0), scaled(3.0)),
    "partial": (functools.partial(scaled, 2), functools.partial(scaled, 3)),
    "method": (Plain(1).__init__, Plain(2).__init__),
    "sentinel": (object(), object()),
    "large array": (np.arange(10_000), np.arange(10_000)[::-1]),
}


@pytest.mark.parametrize("one, other", DIFFERENT.values(), ids=DIFFERENT)
def test_different_content_does_not(one, other):
    f = gradix.jit(lambda x, s: x, static_argnums=1)
    f(1.0, one), f(1.0, other), f(1.0, one)
    assert f.stats().traces == 2


def test_defaults_of_a_function_are_content():
    one, other = types.FunctionType(default.__code__, globals()), types.FunctionType(default.__code__, globals())
    other.__defaults__ = ((2,),)
    assert fingerprint(one) != fingerprint(other) and fingerprint(default) == fingerprint(default)


def test_content_that_contains_itself():
    def ring(k):
        out = [k]
        out.append(out)
        return out

    assert fingerprint(ring(1)) == fingerprint(ring(1)) != fingerprint(ring(2))
    recursive = lambda n: n and recursive(n - 1)  # noqa: E731
    assert fingerprint(recursive) == fingerprint(recursive)


def test_a_snapshot_is_taken():
    f = gradix.jit(lambda x, s: x * len(s["a"]), static_argnames="s")
    s = {"a": [1]}
    assert f(1.0, s=s) == 1
    s["a"].append(2)
    assert f(1.0, s=s) == 2 and f(1.0, {"a": [0]}) == 1


class Hashed:
    """Equal by the first letter, as it says."""

    def __init__(self, word):
        self.word = word

    def __hash__(self):
        return hash(self.word[0])

    def __eq__(self, other):
        return self.word[0] == other.word[0]


def test_a_hash_and_equality_of_ones_own_decide():
    f = gradix.jit(lambda x, s: x, static_argnums=1)
    f(1.0, Hashed("ab")), f(1.0, Hashed("ac")), f(1.0, Hashed("b"))
    assert f.stats().traces == 2


def test_by_position_and_by_name_share_entries():
    f = gradix.jit(lambda x, n, m=1, *, k=0: x + n + m + k, static_argnames=("n", "m", "k"))
    assert f(1.0, 2, 3) == f(1.0, n=2, m=3) == f(1.0, 2, m=3) == f(1.0, m=3, n=2) == f(x=1.0, n=2, m=3) == 6
    assert f.stats().traces == 2  # x by name is another tree
    assert f(1.0, 2, 3, k=1) == f(1.0, k=1, m=3, n=2) == 7 and f.stats().traces == 3
    assert f(1.0, 3, 2) == 6 and f.stats().traces == 4


def test_numbers_and_names_given_together_are_taken_as_they_stand():
    def f(a, b, c=0):
        return [type(x) in (int, str) for x in (a, b, c)]

    def static(call, **options):
        seen = []
        call(gradix.jit(lambda a, b, c=0: seen.extend(f(a, b, c)), **options))
        return seen

    both = {"static_argnums": 0, "static_argnames": "c"}
    assert static(lambda g: g(1, 2, 3), **both) == [True, False, False]
    assert static(lambda g: g(1, 2, c=3), **both) == [True, False, True]
    assert static(lambda g: g(a=1, b=2), **both) == [False, False, True]
    assert static(lambda g: g(a=1, b=2, c=3), static_argnums=0) == [True, False, False]
    assert static(lambda g: g(1, 2, 3), static_argnames="c") == [False, False, True]


def test_a_wrapper_with_the_signature_of_what_it_wraps():
    @functools.wraps(lambda scope, x, b: None)
    def wrapper(first, groups, counts, *args, **kwargs):
        return counts + args[0] * len(kwargs["b"])

    f = gradix.jit(wrapper, static_argnums=0, static_argnames="b")
    assert f("s", 1.0, 2.0, 3.0, b="hi") == 8


def test_more_arguments_than_names():
    f = gradix.jit(lambda x, *rest: x * len(rest[0]) + rest[1], static_argnums=1)
    assert f(1.0, [1, 2], 3.0) == 5 and f(1.0, [3, 2], 3.0) == 5 and f(1.0, [2, 2, 2], 3.0) == 6
    assert f.stats().traces == 2 + 1


def test_a_method_whose_trace_counts_itself():
    class Layer:
        def __init__(self):
            self.traces, self.width = 0, 2.0

        @functools.partial(gradix.jit, static_argnums=0)
        def __call__(self, x):
            self.traces += 1
            return x * self.width

    layer = Layer()
    assert layer(1.0) == 2 and layer(1.0) == 2 and layer.traces == 1
    layer.width = 3.0
    assert layer(1.0) == 3 and layer.traces == 2


def test_a_function_within_a_tuple_that_counts_its_traces():
    traces = 0

    def f(x):
        nonlocal traces
        traces += 1
        return x * 2

    apply = gradix.jit(lambda x, given: given[0](x), static_argnums=1)
    assert apply(1.0, (f, "name")) == 2 and apply(3.0, (f, "name")) == 6 and traces == 1
    assert apply(1.0, (f, "other")) == 2 and traces == 2
    assert apply(1.0, (f, "name")) == 2 and traces == 2


def test_what_a_function_reads_is_content_and_what_it_assigns_is_not():
    factor = calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x * factor

    apply = gradix.jit(lambda x, f: f(x), static_argnums=1)
    for factor in (2, 3, 2):
        assert apply(1.0, f) == factor
    assert calls == 2


def test_a_list_that_the_trace_makes_longer_has_another_content():
    grow = gradix.jit(lambda x, given: x + len(given) + (given.append(0) or 0), static_argnums=1)
    assert grow(1.0, [0]) == 2 and grow(1.0, [0, 0]) == 3


@pytest.mark.parametrize("bad", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}], ids=["bare", "list", "dict"])
def test_traced_arrays_are_no_static_arguments(bad):
    inner = gradix.jit(lambda y, s: y, static_argnums=1)
    with pytest.raises(ValueError, match="Non-hashable static arguments.*name 's'"):
        gradix.jit(lambda x: inner(1.0, bad(x)))(1.0)
    with pytest.raises(NoFingerprint):
        fingerprint(jnp.ones(2))


def test_a_function_closing_over_a_traced_array():
    apply = gradix.jit(lambda x, f: f(x), static_argnums=1)
    assert gradix.grad(lambda w: apply(2.0, lambda x: w * x))(3.0) == 2
    assert gradix.jit(lambda w: apply(2.0, lambda x: w * x))(4.0) == 8


def test_a_function_closing_over_a_tree_of_traced_arrays():
    """As the method of a solver does, which is given the tree that the user solves for."""
    apply = gradix.jit(lambda x, parts: parts[0](x), static_argnums=1)

    @dataclasses.dataclass(frozen=True)
    class Model:
        weights: tuple

    def outer(w):
        tree, model = {"w": (w, 2 * w)}, Model((w,))
        inner = lambda x: tree["w"][1] * x + model.weights[0]  # noqa: E731
        return apply(2.0, (lambda x: inner(x) + w, ()))

    assert gradix.grad(outer)(3.0) == 6
    assert gradix.jit(outer)(3.0) == 18 and gradix.jit(outer)(4.0) == 24


def test_own_functions_are_not_read_and_what_functions_capture_is(monkeypatch):
    read = []
    by_parts = Walk._by_parts
    monkeypatch.setattr(Walk, "_by_parts", lambda self, f: read.append(f) or by_parts(self, f))
    factors = [2.0]

    def scaled(x):
        return jnp.cos(x) * factors[0]

    f = gradix.jit(lambda functions, x: sum(g(x) for g in functions), static_argnums=0)
    for factor in (2.0, 2.0, 3.0):
        factors[0] = factor
        out = f((jnp.cos, gradix.lax.exp, scaled), jnp.zeros(2))
        np.testing.assert_array_equal(out, np.full(2, 2 + factor))
    assert set(read) == {scaled} and f.stats().traces == 2
    # a function that only says that it is of gradix is read
    stranger = types.FunctionType(
        scaled.__code__, {"jnp": jnp, "__name__": "gradix.numpy"}, "cos", None, scaled.__closure__
    )
    f((stranger,), jnp.zeros(2))
    assert stranger in read and stranger.__module__ == "gradix.numpy"


@pytest.mark.parametrize(
    "make",
    [
        lambda: gradix.random.key(1),
        lambda: gradix.random.PRNGKey(1),
        lambda: gradix.random.split(gradix.random.key(1, impl="rbg"), 2),
        lambda: jnp.ones(3, "bfloat16"),
        lambda: jnp.zeros((2, 0)),
        lambda: gradix.device_put(jnp.ones(3), gradix.devices()[0]),
    ],
)
def test_objects_that_hold_arrays_of_any_kind(make):
    class Sampler:
        def __init__(self, held):
            self.held, self.n = held, 3

        @functools.partial(gradix.jit, static_argnums=0)
        def draw(self, x):
            return x * self.n

    sampler = Sampler(make())
    for _ in range(6):
        assert sampler.draw(2.0) == 6
    sampler.held = make()
    assert sampler.draw(2.0) == 6 and Sampler.draw.stats().traces == 1
    sampler.held.delete()
    assert sampler.draw(2.0) == 6 and sampler.draw(3.0) == 9


def test_an_object_that_holds_a_key_and_renews_it():
    class Sampler:
        def __init__(self):
            self.key = gradix.random.key(0)

        def next(self):
            self.key, key = gradix.random.split(self.key)
            return self.draw(key)

        @functools.partial(gradix.jit, static_argnums=0)
        def draw(self, key):
            return gradix.random.uniform(key)

    sampler, key = Sampler(), gradix.random.key(0)
    for _ in range(3):
        key, now = gradix.random.split(key)
        assert sampler.next() == gradix.random.uniform(now)
