"""jit: what makes it trace again, static and keyword arguments, methods, results, closures, nesting and threads."""

import functools
import threading

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

x3 = np.arange(3, dtype=np.float32)


class Counted:
    """A jitted function that knows how often it was traced."""

    def __init__(self, fun, **options):
        self.traces = 0

        @functools.wraps(fun)
        def counting(*args, **kwargs):
            self.traces += 1
            return fun(*args, **kwargs)

        self.jitted = gradix.jit(counting, **options)

    def __call__(self, *args, **kwargs):
        return self.jitted(*args, **kwargs)


# -- when it traces ----------------------------------------------------------------------------------------------------


def test_traces_once_per_type():
    f = Counted(lambda x: x * 2)
    for x in (1.0, 2.0, gradix.jit(lambda: 1.0)()):
        f(x)
    assert f.traces == 1  # weak floats
    f(np.float32(1))
    f(jnp.float32(2))
    assert f.traces == 2
    f(1)
    f(True)
    f(x3)
    f(x3 + 1)
    f(x3.astype(np.float16))
    f(np.zeros((3, 1), np.float32))
    assert f.traces == 7
    assert f.jitted._cache_size() == 7
    f.jitted.clear_cache()
    f(1.0)
    assert f.traces == 8


def test_traces_once_per_tree():
    f = Counted(lambda t: gradix.tree_util.tree_leaves(t)[0])
    f([1.0, 2.0])
    f([3.0, 4.0])
    assert f.traces == 1
    f((1.0, 2.0))
    f([1.0, 2.0, None])
    f({"a": 1.0, "b": 2.0})
    f({"b": 2.0, "a": 1.0})
    f({"a": 1.0, "c": 2.0})
    assert f.traces == 5


def test_the_order_of_keywords_does_not_matter():
    f = Counted(lambda **k: k["a"] - k["b"])
    assert f(a=3.0, b=1.0) == 2 and f(b=1.0, a=3.0) == 2
    assert f.traces == 1


@pytest.mark.x32
def test_traces_again_where_options_change_the_meaning():
    f = Counted(lambda x: x * 1.5)
    f(1.0)
    with gradix.enable_x64(True):
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32
    assert f.traces == 2


def test_traces_depend_on_the_named_axes_around():
    f = Counted(lambda x: x * gradix.lax.psum(1, "i"))
    np.testing.assert_array_equal(gradix.vmap(f, axis_name="i")(jnp.ones(3)), [3, 3, 3])
    np.testing.assert_array_equal(gradix.vmap(f, axis_name="i")(jnp.ones(4)), [4, 4, 4, 4])
    assert f.traces == 2
    gradix.vmap(f, axis_name="i")(jnp.ones(3))
    assert f.traces == 2
    with pytest.raises(NameError, match="unbound axis name: i"):
        f(1.0)


def test_a_function_that_raises_is_traced_again():
    f = Counted(lambda x: x if f.traces > 1 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        f(1.0)
    assert f(1.0) == 1
    assert gradix.jit(lambda x: x + 1)(1.0) == 2  # nothing of the failed trace is left


# -- static arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnames": "n"},
        {"static_argnums": -1},
        {"static_argnames": ("n",)},
        {"static_argnums": [1]},
    ],
    ids=str,
)
def test_static_arguments_by_number_or_name(options):
    f = Counted(lambda x, n=2: x * n if n > 1 else x, **options)
    assert f(3.0, 2) == 6 and f(3.0, n=2) == 6 and f(3.0) == 6 and f(3.0, 1) == 3
    assert f.traces == 3  # given by position or by name; not at all; another value
    f(1.0, 2)
    f(1.0, n=2)
    f(1.0)
    assert f.traces == 3


def test_static_values_are_told_apart_by_type():
    f = Counted(lambda x, n: (x, type(n).__name__ == "bool"), static_argnums=1)
    f(1.0, 1)
    f(1.0, True)
    f(1.0, 1.0)
    assert f.traces == 3


def test_static_among_varargs_and_keyword_only():
    assert gradix.jit(lambda *a: a[0] * len(a[1]), static_argnums=1)(2.0, "abc") == 6
    assert gradix.jit(lambda *a: a[0] * len(a[-1]), static_argnums=-1)(2.0, "abc") == 6
    assert gradix.jit(lambda x, *, n: x * len(n), static_argnames="n")(2.0, n="abc") == 6
    assert gradix.jit(lambda f, x: f(x), static_argnums=0)(jnp.cos, 0.0) == 1


class Surly:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no comparison")


@pytest.mark.x32
@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: gradix.jit(lambda x, n: x, static_argnums=1)(1.0, jnp.ones(2)),
            ValueError,
            "Non-hashable static arguments.*an array",
        ),
        (lambda: gradix.jit(lambda x, n: x, static_argnames="n")(1.0, n=jnp.ones(2)), ValueError, "Non-hashable"),
        (
            lambda: gradix.jit(lambda x: gradix.jit(lambda y, n: y, static_argnums=1)(x, x))(1.0),
            ValueError,
            "Non-hashable",
        ),
        (lambda: [gradix.jit(lambda x, n: x, static_argnums=1)(1.0, s) for s in [Surly(), Surly()]], None, ""),
        (lambda: gradix.jit(lambda x, n: x, static_argnums=5), ValueError, "only accepts 2 positional arguments"),
        (lambda: gradix.jit(lambda x, n: x, static_argnames="q"), ValueError, "invalid argname 'q' in static_argnames"),
        (lambda: gradix.jit(lambda x, n: x, static_argnums="n"), TypeError, "static_argnums must be an int"),
        (lambda: gradix.jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "cannot intersect"),
        (lambda: gradix.jit(3), TypeError, "expects a function.*got 3"),
        (lambda: gradix.jit(lambda x: (yield x)), TypeError, "generator"),
        (lambda: gradix.jit(lambda x, n: x)(1.0, "a"), TypeError, "argument n of <lambda>.*static_argnums"),
        (lambda: gradix.jit(lambda x: x)({"a": [object()]}), TypeError, r"argument x\['a'\]\[0\]"),
        (lambda: gradix.jit(lambda x: {"a": ["text"]})(1.0), TypeError, r"result\['a'\]\[0\].*'text'"),
        (lambda: gradix.jit(lambda x: x)(np.array([None])), TypeError, "object"),
        (lambda: gradix.jit(lambda x: x)(np.ma.array([1.0], mask=[True])), (TypeError, ValueError), "masked"),
        (lambda: gradix.jit(lambda x: x)(2**40), OverflowError, "int32"),
    ],
)
def test_errors(call, error, message):
    if error is None:
        call()
        return
    with pytest.raises(error, match=message):
        call()


def test_a_static_argument_that_cannot_be_compared():
    f = gradix.jit(lambda x, n: x, static_argnums=1)
    f(1.0, Surly())
    with pytest.raises(ValueError, match="comparable using __eq__.*no comparison"):
        f(1.0, Surly())


# -- what may be jitted ------------------------------------------------------------------------------------------------


class Scaled:
    factor = 3.0

    def __init__(self):
        self.calls = 0

    @functools.partial(gradix.jit, static_argnums=0)
    def method(self, x):
        self.calls += 1
        return x * self.factor

    @staticmethod
    @gradix.jit
    def plus_one(x):
        return x + 1

    @classmethod
    def double(cls, x):
        return 2 * x

    def __call__(self, x):
        return x - 1


def test_methods_and_callables():
    one = Scaled()
    assert one.method(2.0) == 6 and one.method(3.0) == 9 and one.calls == 1
    assert Scaled().method(2.0) == 6
    assert Scaled.plus_one(1.0) == 2 and one.plus_one(1.0) == 2
    assert gradix.jit(Scaled.double)(2.0) == 4
    assert gradix.jit(one)(3.0) == 2
    assert gradix.jit(functools.partial(lambda a, x: a * x, 2.0))(4.0) == 8
    assert gradix.jit(functools.partial(lambda x, n: x if n else -x, n=False))(4.0) == -4


def test_keeps_the_face_of_the_function():
    @gradix.jit
    def f(x, y=2):
        """What f does."""
        return x

    assert (f.__name__, f.__doc__, f.__wrapped__(5)) == ("f", "What f does.", 5)


# -- arguments and results ---------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_results_of_every_kind():
    out = gradix.jit(lambda x: (x, None, 3, 2.5, True, np.float16(1), np.arange(2), {"a": ()}, [x, x]))(1.0)
    assert out[1] is None and out[7] == {"a": ()} and isinstance(out[8], list)
    kinds = [(o.dtype.name, o.weak_type) for o in (out[0], *out[2:7])]
    assert kinds == [
        ("float32", True),
        ("int32", True),
        ("float32", True),
        ("bool", False),
        ("float16", False),
        ("int32", False),
    ]


@pytest.mark.parametrize(
    "x",
    [
        x3[::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.float64(1.5),
        np.uint8(3),
        np.zeros((0, 2)),
        np.array(2.0),
        True,
        1 + 2j,
        np.arange(3)[None].T,
    ],
    ids=repr,
)
def test_numpy_arguments(x):
    y = gradix.jit(lambda x: x)(x)
    np.testing.assert_array_equal(y, x)
    assert y.dtype == jnp.asarray(x).dtype and y.weak_type == isinstance(x, (int, float, complex, bool)) * (
        not isinstance(x, (bool, np.generic))
    )


@pytest.mark.parametrize("n", [3, 300_000])
@pytest.mark.parametrize("f", [lambda x: x, lambda x: x * 2], ids=["identity", "double"])
def test_changing_a_numpy_argument_afterwards_changes_nothing(n, f):
    x = np.ones(n, np.float32)
    y = gradix.jit(f)(x)
    x[:] = 7
    assert float(y[0]) == float(y[-1]) == float(f(1.0))


def test_a_captured_numpy_array_is_captured_as_it_is():
    c = np.ones(3, np.float32)
    f = gradix.jit(lambda x: x + c)
    f(1.0)
    c[:] = 5
    np.testing.assert_array_equal(f(1.0), [2, 2, 2])


def test_results_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(gradix.jit(lambda x: x)(x3))[0] = 1


def test_a_list_that_contains_itself():
    loop = [1.0]
    loop.append(loop)

    def returns_loop(x):
        result = [x]
        result.append(result)
        return result

    for transformed in (gradix.jit(len), gradix.vmap(len), gradix.grad(len), gradix.checkpoint(len)):
        with pytest.raises(RecursionError, match="contains itself"):
            transformed(loop)
    with pytest.raises(RecursionError, match="contains itself"):
        gradix.jit(returns_loop)(1.0)


def test_keep_unused_and_inline():
    f = gradix.jit(lambda x, y: x + 1, keep_unused=True)
    assert f(1.0, x3) == 2 and f.lower(1.0, x3).as_text().count("tensor<3xf32>") == 1
    g = gradix.jit(jnp.sin, inline=True)
    assert "jit" not in str(gradix.make_jaxpr(lambda x: g(x))(1.0))
    assert gradix.grad(g)(0.0) == 1


# -- closures, nesting, recursion --------------------------------------------------------------------------------------


def test_closures_over_arrays_and_tracers():
    table = jnp.arange(1000.0)
    assert gradix.jit(lambda i: table[i])(7) == 7
    assert "%arg0: tensor<1000xf32>" in gradix.jit(lambda i: table[i]).lower(7).as_text()  # no constant
    f = gradix.jit(
        lambda y: gradix.jit(lambda x: x * y)(2.0) + gradix.grad(lambda z: gradix.jit(lambda x: x * z * y)(3.0))(1.0)
    )
    assert f(5.0) == 25
    assert gradix.grad(lambda y: gradix.jit(lambda x: x * y)(2.0))(3.0) == 2
    np.testing.assert_array_equal(gradix.vmap(lambda y: gradix.jit(lambda x: x * y)(2.0))(x3), 2 * x3)


def test_a_closure_over_a_tracer_is_not_kept():
    box = {}
    inner = gradix.jit(lambda x: x * box["y"])

    def f(y):
        box["y"] = y
        return inner(2.0)

    assert gradix.grad(f)(3.0) == 2 and gradix.grad(f)(4.0) == 2 and f(5.0) == 10


def test_recursion():
    @functools.partial(gradix.jit, static_argnums=1)
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert power(2.0, 10) == 1024
    assert gradix.grad(power)(2.0, 3) == 12

    @gradix.jit
    def endless(x):
        return endless(x + 1)

    with pytest.raises(RecursionError):
        endless(1.0)
    assert power(3.0, 2) == 9


def test_disable_jit():
    seen = []
    f = gradix.jit(lambda x: seen.append(isinstance(x, gradix.core.Tracer)) or (x if x > 0 else -x))
    with gradix.disable_jit():
        assert f(-2.0) == 2
    assert seen == [False]


# -- threads -----------------------------------------------------------------------------------------------------------


def test_threads_call_one_function_and_trace_others():
    shared, errors = gradix.jit(lambda x: jnp.sin(x).sum()), []
    want = {n: float(np.sin(np.arange(n)).sum()) for n in range(1, 9)}

    def work(k):
        try:
            own = gradix.jit(gradix.grad(lambda x: (k * x * x).sum()))
            for n in (*want, *want):
                np.testing.assert_allclose(shared(np.arange(n, dtype=np.float32)), want[n], rtol=1e-5)
                np.testing.assert_allclose(own(np.ones(n, np.float32)), np.full(n, 2 * k))
                np.testing.assert_allclose(gradix.vmap(own)(np.ones((n, 2), np.float32)), np.full((n, 2), 2 * k))
        except BaseException as e:  # reported by the main thread
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[0]


class CallableWithNames:
    """A callable object whose attributes have names that `jit` and its like use themselves."""

    def __init__(self):
        self._call = self.lower = self.stats = self.defjvp = self.def_vmap = self._forward = None
        self.weight = 3.0

    def __call__(self, x):
        return x * self.weight


def test_attributes_of_a_callable_object_do_not_replace_those_of_jit():
    wrapped = gradix.jit(CallableWithNames())
    assert wrapped(2.0) == 6.0 and wrapped.weight == 3.0
    assert wrapped.lower(2.0).compile()(2.0) == 6.0 and wrapped.stats().traces >= 1
    assert gradix.jit(jnp.maximum)(1.0, 2.0) == 2.0 and gradix.jit(jnp.add)(1.0, 2.0) == 3.0
    made = gradix.custom_jvp(CallableWithNames())
    made.defjvp(lambda primals, tangents: (made(*primals), 5.0 * tangents[0]))
    assert gradix.grad(made)(1.0) == 5.0


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
def test_names_of_arguments_that_are_given_by_position(option):
    def f(a, /, b, *rest, **named):
        return a

    for name in ("a", "rest"):
        with pytest.raises(ValueError, match=f"{name!r} in {option}.*only given by position"):
            gradix.jit(f, **{option: ("b", name)})
    gradix.jit(f, **{option: ("b", "anything")})
