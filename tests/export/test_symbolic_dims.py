"""Symbolic dimensions: arithmetic against integers, decisions against all values in small ranges, texts and errors."""

import copy
import itertools
import operator
import pickle
import random

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, export, lax
from gradix._core.dimensions.expression import is_known_at_most, larger, smaller
from gradix.errors import InconclusiveDimensionOperation

CONSTRAINTS = (
    (),
    ("a >= 4",),
    ("a <= b",),
    ("a <= 6", "b >= 2"),
    ("mod(a, 2) == 0",),
    ("b <= 10", "c <= b"),
    ("a == b",),
    ("a >= b + 1",),
    ("floordiv(a, 2) == c",),
)
COMPARISONS = (operator.ge, operator.gt, operator.le, operator.lt)
ENVIRONMENTS = [dict(zip("abc", v)) for v in itertools.product(range(1, 8), repeat=3)]


def drawn(rng, depth: int):
    """A random expression as nested tuples."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice("abc") if rng.random() < 0.7 else rng.randint(-3, 6)
    op = rng.choice(["+", "-", "*", "+", "-", "//", "%", "max", "min", "scaled"])
    if op == "scaled":
        return "*", rng.choice([-3, -2, 2, 3, 4]), drawn(rng, depth - 1)
    if op in ("//", "%"):
        return op, drawn(rng, depth - 1), rng.choice([2, 3, 4, 5]) if rng.random() < 0.8 else rng.choice("ab")
    return op, drawn(rng, depth - 1), drawn(rng, depth - 1)


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


def value(e, env, largest=max, least=min):
    if isinstance(e, str):
        return env[e]
    if isinstance(e, int):
        return e
    op, x, y = e
    x, y = value(x, env, largest, least), value(y, env, largest, least)
    return {"max": largest, "min": least, **OPERATIONS}[op](x, y)


def allowed(constraints, env) -> bool:
    names = {"mod": operator.mod, "floordiv": operator.floordiv, **env}
    return all(eval(c, {}, names) for c in constraints)


def check(seed: int, count: int) -> tuple[int, int]:
    """How many of drawn comparisons there were, and how many were decided; every decision is checked."""
    rng, asked, decided = random.Random(seed), 0, 0
    for _ in range(count):
        constraints = rng.choice(CONSTRAINTS) if rng.random() < 0.5 else ()
        scope = export.SymbolicScope(constraints)
        symbols = dict(zip("abc", export.symbolic_shape("a, b, c", scope=scope)))
        left, right = drawn(rng, 3), drawn(rng, 2)
        x, y = (value(e, symbols, larger, smaller) for e in (left, right))
        if type(x) is type(y) is int:
            continue
        envs = [env for env in ENVIRONMENTS if allowed(constraints, env)]
        numbers = [(value(left, env), value(right, env)) for env in envs]
        for env, (n, m) in zip(envs[::7], numbers[::7]):
            for dim, number in ((x, n), (y, m)):
                assert (dim if type(dim) is int else dim.evaluate(env)) == number, (left, right, env)
        for compare in COMPARISONS:
            asked += 1
            try:
                answer = compare(x, y)
            except InconclusiveDimensionOperation:
                continue
            decided += 1
            assert {compare(n, m) for n, m in numbers} <= {answer}, (str(x), compare, str(y), constraints)
        if x == y:
            assert all(n == m for n, m in numbers), (str(x), str(y), constraints)
    return asked, decided


def test_decisions_hold_for_all_small_values():
    asked, decided = check(0, 250)
    assert asked > 800 and decided > asked // 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_decisions_hold_for_all_small_values(seed):
    asked, _ = check(seed, 1400)
    assert asked > 5000


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("a*b + 2*a - 1", "a*b + 2*a - 1"),
        ("1 + a", "a + 1"),
        ("-a", "- a"),
        ("2 - a", "- a + 2"),
        ("b*a*b", "a*b^2"),
        ("c*a + b*a + b", "a*c + a*b + b"),
        ("floordiv(a, 2)", "floordiv(a, 2)"),
        ("mod(-a, 2)", "mod(- a, 2)"),
        ("floordiv(a*b + a, b + 1)", "a"),
        ("mod(6*a + 4, 3)", "1"),
        ("max(a, b)", "max(a, b)"),
        ("max(a, 1)", "a"),
        ("min(a, 1)", "1"),
        ("floordiv(4*a + 3, 4)", "a"),
        ("(a + 1)*(a - 1)", "a^2 - 1"),
        ("a - a", "0"),
        ("floordiv(a, -2)", "floordiv(a, - 2)"),
        ("2*(a + b) - 2*b", "2*a"),
    ],
)
def test_expressions_have_one_form(expression, text):
    (found,) = (
        export.symbolic_shape(expression.join("()"))
        if "," not in expression
        else [export.SymbolicScope().parse(expression)]
    )
    assert str(found) == text


def test_multiples_are_known_as_such():
    b, c = export.symbolic_shape("b, c", constraints=["mod(b, 4) == 0"])
    assert b % 2 == (3 * b) % 4 == (2 * b) % 8 == (b * c) % 4 == (5 * b * c + 8) % 4 == 0 and (3 * b + c) % 2 == c % 2
    assert 4 * ((3 * b) // 4) == 3 * b and 2 * (b // 2) == b and 4 * ((b * c) // 4) == b * c
    for n, m in itertools.product((4, 8, 12), range(1, 5)):
        for x in (3 * b, b * c, 5 * b + c, 7 * b * c - 3 * c, -b, b // 2 + c):
            for y in (2, 3, 4, 8, -2, -4):
                value = x.evaluate({"b": n, "c": m})
                for have, want in ((x // y, value // y), (x % y, value % y)):
                    assert (have if type(have) is int else have.evaluate({"b": n, "c": m})) == want, (x, y, n, m)
    (a,) = export.symbolic_shape("a")
    assert (
        (3 * a) % 2 is a % 2
        and (9 * a - 9) % 8 is (a - 1) % 8
        and str((-a) % 8) == "mod(- a, 8)"
        and str((3 * a) // 2) == "floordiv(3*a, 2)"
    )


@pytest.mark.parametrize(
    ("spec", "like", "shape"),
    [
        ("a, b", None, "(a, b)"),
        ("(a,)", None, "(a,)"),
        ("", None, "()"),
        ("()", None, "()"),
        ("_, 3", (2, 3), "(2, 3)"),
        ("(a, ...)", (2, 3), "(a, 3)"),
        (None, (2, 3), "(2, 3)"),
        ("...", (), "()"),
        (" a , a^2 ", None, "(a, a^2)"),
    ],
)
def test_shapes_are_parsed(spec, like, shape):
    assert str(export.symbolic_shape(spec, like=like)) == shape


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("2 a", {}, "syntax error"),
        ("a b", {}, "syntax error"),
        ("a)", {}, "syntax error"),
        ("a@b", {}, "at '@'"),
        ("(a", {}, "'\\)'"),
        ("_", {}, "'_'"),
        ("...", {}, "like="),
        ("_", {"like": (None,)}, "which is None in"),
        ("a", {"like": (1, 2)}, "1 dimensions"),
        ("max(a)", {}, "','"),
        ("a^b", {}, "exponent"),
        ("a", {"constraints": ["a > 2"]}, "'=='"),
        ("a", {"constraints": ["0 >= 1"]}, "never"),
        ("a", {"constraints": ["a + 1 == 3"]}, "left side"),
        ("a", {"constraints": "a >= 2"}, "sequence of strings"),
    ],
)
def test_wrong_shapes_are_named(spec, options, message):
    with pytest.raises(ValueError, match=message):
        export.symbolic_shape(spec, **options)
    with pytest.raises(ValueError, match="not both"):
        export.symbolic_shape("a", constraints=["a >= 2"], scope=export.SymbolicScope())


def test_questions_without_one_answer_raise():
    a, b = export.symbolic_shape("a, b", constraints=["a <= 9"])
    for ask in (lambda: a > 1, lambda: a >= b, lambda: max(a, b), lambda: sorted([a, 3])):
        with pytest.raises(InconclusiveDimensionOperation, match="inconclusive.*a <= 9|inconclusive.*b"):
            ask()
    with pytest.raises(InconclusiveDimensionOperation, match="constant"):
        int(a)
    with pytest.raises(TypeError):
        range(a)
    with pytest.raises(TypeError, match="compared with"):
        a < 2.5  # noqa: B015
    assert (
        a != b
        and a == a + 0
        and a != 3
        and bool(a)
        and is_known_at_most(a, 9)
        and not is_known_at_most(b, 9)
        and bool(a - 1)
    )


def test_scopes_do_not_mix():
    (a,) = export.symbolic_shape("a")
    (other,) = export.symbolic_shape("a")
    assert a != other
    for mix in (lambda: a + other, lambda: a <= other, lambda: a // other):
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
            mix()
    (b,) = export.symbolic_shape("b", scope=a.scope)
    assert str(a + b) == "b + a"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: jnp.stack([x, y]),
        lambda x, y: x @ y,
        lambda x, y: x.reshape(y.shape),
        lambda x, y: x.at[:].set(y),
        lambda x, y: gradix.jit(lambda y: lax.scan(lambda c, z: (c, z[0] + z[1]), 0.0, (x, y)))(y),
        lambda x, y: x.shape[0] >= y.shape[0],
    ],
)
def test_errors_of_two_scopes_name_both(function):
    """Sizes of one name from two scopes are different sizes, which no error could show otherwise."""
    (a,) = export.symbolic_shape("a", constraints=["a >= 2"])
    (b,) = export.symbolic_shape("a")
    specs = [gradix.ShapeDtypeStruct((d,), "float32") for d in (a, b)]
    for run, exported in (
        (gradix.eval_shape, False),
        (lambda f, *s: gradix.jit(f).trace(*s), False),
        (lambda f, *s: gradix.make_jaxpr(f)(*s), False),
        (lambda f, *s: export.export(gradix.jit(f))(*s), True),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            run(function, *specs)
        told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert told.count("are of different scopes") == 1 and str(a.scope) in told and str(b.scope) in told, told
        assert ("'a' of args[0] and 'a' of args[1]" if exported else "'a' of x and 'a' of y") in told


def test_dimensions_outside_of_programs_have_no_value():
    (a,) = export.symbolic_shape("a")
    for use in (lambda: a * 2.0, lambda: a / 2, lambda: 2**a, lambda: np.asarray(0.5) * a):
        with pytest.raises((NotImplementedError, TypeError), match="symbolic dimension|ufunc|float"):
            use()
    assert np.int32(3) * a == a * np.int32(3) == 3 * a and divmod(4 * a + 3, 4) == (a, 3)
    with pytest.raises(ZeroDivisionError):
        a // 0


def test_copies_and_pickles_are_the_same_dimension():
    (a,) = export.symbolic_shape("2*a + 1")
    assert copy.deepcopy(a) is a and copy.copy(a) is a
    again = pickle.loads(pickle.dumps(a))
    assert str(again) == str(a) and again.scope is not a.scope


def test_specs_for_arguments():
    args = {"x": np.ones((2, 3), "f4"), "y": [np.ones(3, "i4")]}
    specs = export.symbolic_args_specs((args,), ({"x": "b, ...", "y": None},))
    assert str(specs[0]["x"].shape) == "(b, 3)" and specs[0]["y"][0].shape == (3,)
    with pytest.raises(ValueError, match=r"args\[0\]\['x'\].*3 dimensions"):
        export.symbolic_args_specs((args,), ({"x": "a, b, c", "y": None},))


@pytest.mark.parametrize(
    ("constraints", "named"),
    [
        (("a >= 5", "a <= 3"), ("'a >= 5' and 'a <= 3'",)),
        (("b >= 2", "a >= 5", "c >= 7", "a <= 3"), ("'a >= 5' and 'a <= 3'",)),
        (("a >= 4", "a*a <= 9"), ("'a >= 4' and 'a*a <= 9'",)),
        (("a == 5", "a >= 6"), ("'a == 5' and 'a >= 6'",)),
        (("a >= 6", "a == 5"), ("'a >= 6' and 'a == 5'",)),
        (("a >= b", "b >= a + 1"), ("'a >= b' and 'b >= a + 1'",)),
        (("a >= 2*b", "b >= 4", "a <= 7"), ("'a <= 7' contradicts", "'a >= 2*b', 'b >= 4'")),
        (("a == 2*b", "a <= 1"), ("'a == 2*b' and 'a <= 1'",)),
        (("mod(a, 2) == 0", "mod(a, 2) == 1"), ("'mod(a, 2) == 0' and 'mod(a, 2) == 1'",)),
        (("mod(a, 4) == 1", "mod(a, 6) == 2"), ("'mod(a, 4) == 1' and 'mod(a, 6) == 2'",)),
        (("mod(a, 8) == 0", "a <= 7"), ("'mod(a, 8) == 0' and 'a <= 7'",)),
        (("a <= b", "b <= c", "c <= a - 1"), ("'c <= a - 1' contradicts", "'a <= b', 'b <= c'")),
        (("a <= 0",), ("'a <= 0' can never hold",)),
        (("b >= 2", "a + b <= 1"), ("'a + b <= 1' can never hold",)),
    ],
)
def test_contradictory_constraints_are_named(constraints, named):
    with pytest.raises(ValueError) as caught:
        export.SymbolicScope(constraints)
    assert all(text in str(caught.value) for text in named)


def test_only_constraints_that_no_sizes_satisfy_are_refused():
    rng, refused = random.Random(7), 0
    for _ in range(400):
        sides = [
            (
                rng.choice(["a", "b", "a + b", "2*a - b", "mod(a, 3)", "mod(b, 4)", "mod(a, 2)", "floordiv(a, 2)"]),
                rng.choice([">=", "<=", "=="]),
                rng.choice(["b", "c", *map(str, range(6))]),
            )
            for _ in range(3)
        ]
        constraints = [
            " ".join(s) for s in sides if "==" not in s or (s[2].isdigit() and s[0][:3] in ("a", "b", "mod", "flo"))
        ]
        try:
            export.SymbolicScope(constraints)
        except ValueError as e:
            assert "contradict" in str(e) or "never hold" in str(e) or "left side of ==" in str(e), e
            if "left side" not in str(e):
                refused += 1
                assert not any(allowed(constraints, env) for env in ENVIRONMENTS), constraints
    assert refused > 50


def test_bounds_of_dimensions():
    a, b = export.symbolic_shape("a, b", constraints=["a >= 3", "a <= 9", "b >= a"])
    inf = float("inf")
    wanted = {
        a: (3, 9),
        b: (3, inf),
        2 * a + 1: (7, 19),
        a // 2: (1, 4),
        -b: (-inf, -3),
        a - b: (-inf, 0),
        7: (7, 7),
        np.int8(3): (3, 3),
    }
    assert {d: export.symbolic_dim_bounds(d) for d in wanted} == wanted
    with pytest.raises(TypeError):
        export.symbolic_dim_bounds("a")


@pytest.mark.parametrize(
    "ends",
    [(2, None, 1), (None, None, -1), (2, "b", -1), ("b", -4, -1), ("b", "b", 1), (-2, "b", 1), (-3, 0, -2)]
    + [(0, 4, -2), (4, 0, -2), (-30, None, -2), (30, -30, -2)],
)
def test_slices_with_symbolic_steps_are_those_of_numpy_empty_ones_included(ends):
    b, c = export.symbolic_shape("b, c")

    def part(x, y):
        start, stop, times = [y.shape[0] if e == "b" else e for e in ends]
        return x[start : stop : times * y.shape[0]], x[start : stop : 2 * times]

    types = [gradix.ShapeDtypeStruct((d,), np.float32) for d in (c, b)]
    exported = export.export(gradix.jit(part))(*types)
    for n, m in ((20, 3), (2, 1), (7, 6)):
        x, y = np.arange(n, dtype=np.float32), np.zeros(m, np.float32)
        for have, want in zip(exported.call(x, y), part(x, y)):
            np.testing.assert_array_equal(have, want)


def test_a_step_of_unknown_sign_says_so():
    b, c = export.symbolic_shape("b, c")
    with pytest.raises(InconclusiveDimensionOperation, match="the step - c [+] b, whose sign"):
        gradix.eval_shape(
            lambda x, y: x[:: x.shape[0] - y.shape[0]], *[gradix.ShapeDtypeStruct((d,), np.float32) for d in (b, c)]
        )


def test_shapes_as_vectors():
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3] and lax.shape_as_value(()).shape == (0,)
    f = gradix.jit(lambda x: lax.shape_as_value(x.shape))
    for shape, given in (("a", (2,)), ("a, b", (1, 2)), ("a, 3, 2*b", (5, 3, 4))):
        struct = gradix.ShapeDtypeStruct(export.symbolic_shape(shape), jnp.float32)
        got = export.export(f)(struct).call(np.ones(given, np.float32))
        assert got.dtype == jnp.asarray(1).dtype and got.tolist() == list(given)
    with pytest.raises(NotImplementedError, match="has a value only inside a program"):
        lax.shape_as_value(export.symbolic_shape("a"))


@pytest.mark.parametrize("sequence", [[0], (0,), "a", b"a"])
def test_no_sequence_of_python_is_repeated_by_a_size(sequence):
    (n,) = export.symbolic_shape("n")
    for product in (lambda: sequence * n, lambda: n * sequence):
        with pytest.raises(TypeError, match=rf"repeat a {type(sequence).__name__} by it.*\n.*jnp.full"):
            product()


def test_a_size_is_not_below_a_part_of_it_whose_multiple_it_is():
    b, c = export.symbolic_shape("b, c", constraints=["mod(b, 4) == 0"])
    quarter = b // 4
    for n in range(5):
        assert b >= n * quarter
    assert 5 * quarter >= b and quarter >= 1 and b == 4 * quarter
    assert (b * c) // 4 >= c


def test_zero_is_divided_without_a_question():
    (b,) = export.symbolic_shape("b")
    assert divmod(0, b) == (0, 0)


def test_shapes_that_are_written_differ_in_no_known_size():
    assert export.symbolic_shape("+ 2, + b - 1")[0] == 2
    for text, like in (("3", (4,)), ("b, 3", (None, 4))):
        with pytest.raises(ValueError, match="has a different size in dimension"):
            export.symbolic_shape(text, like=like)


def test_symbolic_sizes_as_indices_and_counts():
    x = np.arange(15.0, dtype="float32").reshape(3, 5)
    for f in (
        lambda x: lax.index_in_dim(x, x.shape[0] - 1, 0, keepdims=False),
        lambda x: gradix.image.resize(x, (2 * x.shape[0], 3), "nearest"),
        lambda x: jnp.repeat(x, x.shape[0], axis=0, total_repeat_length=8),
    ):
        made = export.export(gradix.jit(f))(gradix.ShapeDtypeStruct(export.symbolic_shape("b, 5"), "float32"))
        np.testing.assert_array_equal(made.call(x), f(x))


def test_the_left_side_of_an_equality_may_be_a_multiple():
    (b, t) = export.symbolic_shape("b, t", constraints=["16*b*floordiv(t, 16) == b*t"])
    assert 16 * b * (t // 16) == b * t and 32 * b * (t // 16) == 2 * b * t
    assert str(8 * b * (t // 16)) == "8*b*floordiv(t, 16)"
    a, c = export.symbolic_shape("a, c", constraints=["-2*a == c - 8"])
    assert 2 * a + c == 8 and str(a) == "a"
    (d,) = export.symbolic_shape(  # an equality that those before it imply says nothing
        "d", constraints=["mod(d + mod(d, 2), -2) == 0", "-2*floordiv(d + mod(d, 2), -2) == d + mod(d, 2)"]
    )
    assert -2 * ((d + d % 2) // -2) == d + d % 2 and (d + d % 2) % 2 == 0 and 2 * ((d + d % 2) // 2) == d + d % 2
    with pytest.raises(ValueError, match="the left side of == must be one variable.* Move the other terms"):
        export.symbolic_shape("a, b", constraints=["a + 1 == b"])


def test_constraints_on_operations_bound_them():
    a, b = export.symbolic_shape(
        "a, b", constraints=["max(a, b) >= 8", "min(a, b) <= 2", "mod(a, b) >= 2", "floordiv(a, 4) >= 2"]
    )
    assert core.max_dim(a, b) >= 6 and core.min_dim(a, b) <= 6
    assert core.max_dim(b, a) is core.max_dim(a, b)
    assert a % b >= 1 and a // 4 >= 1
    c, d = export.symbolic_shape("c, d", constraints=["min(c, d) == d - 2"])
    assert core.min_dim(d, c) == d - 2


def test_a_symbolic_number_of_sections_is_refused_with_what_to_write():
    (b,) = export.symbolic_shape("2*b")
    with pytest.raises(ValueError, match="split with a symbolic number of sections.*\n?.*indices to split at"):
        gradix.eval_shape(lambda x: jnp.split(x, x.shape[0] // 2), gradix.ShapeDtypeStruct((b,), "float32"))


def test_axes_of_open_sizes_are_not_squeezed():
    b, c = export.symbolic_shape("b, c")
    with pytest.raises(ValueError, match=r"size not equal to one, got shape=\(b, c\) and dimensions=\(1,\)"):
        gradix.eval_shape(lambda x: jnp.squeeze(x, -1), gradix.ShapeDtypeStruct((b, c), "float32"))
    with pytest.raises(ZeroDivisionError, match="arange: division by the step.*stop=b, step=0"):
        gradix.eval_shape(lambda x: jnp.arange(0, x.shape[0], 0), gradix.ShapeDtypeStruct((b, c), "float32"))
