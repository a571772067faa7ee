"""Operations spelled otherwise for what their results are used for: maxima under exponentials, logarithms in sums."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn
from gradix._platforms.cpu.hidden_extrema import is_hidden
from gradix._stablehlo.uses import Users
from gradix._transforms.cse import simplify

pytestmark = pytest.mark.rewritten

NAN, INF = np.nan, np.inf


def taken(f, *args, platform="cpu") -> dict[str, int]:
    """How often each of the platform's rewrites is taken."""
    return gradix.jit(lambda *args: f(*args)).trace(*args).lower(lowering_platforms=(platform,))._module.facts.rewrites


# -- extrema that drop NaN -----------------------------------------------------------------------------------------------


def softmax(x, axis=-1):
    e = jnp.exp(x - jnp.max(x, axis, keepdims=True))
    return e / jnp.sum(e, axis, keepdims=True)


def reciprocal_softmax(x):
    e = jnp.exp(x - lax.stop_gradient(x.max(-1, keepdims=True)))
    return e * (1 / e.sum(-1, keepdims=True))


def logsumexp(x, axis=-1):
    m = jnp.max(x, axis, keepdims=True)
    return (m + jnp.log(jnp.sum(jnp.exp(x - m), axis, keepdims=True))).squeeze(axis)


def flat_logsumexp(x):
    m = jnp.max(x, -1)
    return m + jnp.log(jnp.sum(jnp.exp(x - m[:, None]), -1))


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(-1, keepdims=True))


def softmin(x):
    e = jnp.exp(x.min(-1, keepdims=True) - x)
    return e / e.sum(-1, keepdims=True)


def masked_before(x):
    return softmax(jnp.where(jnp.arange(x.shape[-1]) % 3 == 0, -INF, x))


def half_softmax(x):
    e = jnp.exp((x - x.max(-1, keepdims=True)).astype(jnp.float16))
    return e / e.sum(-1, keepdims=True)


def gradient(x):
    return gradix.grad(lambda x: jnp.sum(reciprocal_softmax(x) ** 2))(x)


def whole_logsumexp(x):
    return x.max() + jnp.log(jnp.sum(jnp.exp(x - x.max())))


HIDDEN = [
    softmax,
    reciprocal_softmax,
    logsumexp,
    flat_logsumexp,
    log_softmax,
    softmin,
    masked_before,
    half_softmax,
    gradient,
    whole_logsumexp,
    lambda x: softmax(x, 0),
    lambda x: logsumexp(x, 0),
    lambda x: softmax(x, (0, 1)),
    lambda x: softmax(x) @ jnp.ones((x.shape[1], 3)),
]


def shifted(x):
    return jnp.exp(x - x.max(-1, keepdims=True))


def with_maximum(x):
    return softmax(x), x.max(-1)


def with_exponentials(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True), e[0]


def over_other_axis(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(0, keepdims=True)


def of_something_else(x):
    e = jnp.exp(2 * x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def masked_after(x):
    e = jnp.where(x > 0, jnp.exp(x - x.max(-1, keepdims=True)), 0)
    return e / e.sum(-1, keepdims=True)


def misplaced(x):
    """Of a square, the rows divided by the sums of other rows."""
    x = x[:, : x.shape[0]]
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1)[None]


def unnormalised_product(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return (e @ jnp.ones((x.shape[1], 3))) / e.sum(-1, keepdims=True)


def in_a_loop(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return lax.fori_loop(0, 2, lambda _, y: y * 0.5, e) / e.sum(-1, keepdims=True)


def compared(x):
    return jnp.sum(x == x.max(-1, keepdims=True)), softmax(x)


def scaled(x):
    return x / x.max(-1, keepdims=True)


def powered(x):
    m = x.max(-1, keepdims=True)
    return jnp.exp(x - m).sum(-1) + lax.integer_pow(m, 0)[:, 0] * 0 + lax.max(m, 0.0)[:, 0]


SEEN = [
    shifted,
    with_maximum,
    with_exponentials,
    over_other_axis,
    of_something_else,
    masked_after,
    misplaced,
    unnormalised_product,
    in_a_loop,
    compared,
    scaled,
    lambda x: x.max(-1),
    lambda x: x.max(-1) * 2,
]


def rows_with_nan(rows=70, columns=90):
    x = np.random.default_rng(7).standard_normal((rows, columns)).astype("float32") * 3
    x[1, 0] = x[3, -1] = x[5] = NAN
    x[7, 3], x[7, 4] = NAN, INF
    x[9, 2] = INF
    x[11, :] = -INF
    x[13, 7] = -INF
    x[15, 5], x[15, 6] = -INF, NAN
    return x


def drops(f, x, platform="cpu") -> bool:
    return "extrema_that_hide_nan" in taken(f, x, platform=platform)


def check_values(f, x):
    """Compiled results, NaN among them, are those of the program as it is written, which eager work keeps to."""
    want = f(jnp.array(x))
    found = gradix.jit(f)(x)
    for got, expected in zip(gradix.tree.leaves(found), gradix.tree.leaves(want)):
        np.testing.assert_allclose(
            np.asarray(got), np.asarray(expected), rtol=2e-3 if got.dtype == "float16" else 2e-5, atol=1e-6
        )


@pytest.mark.parametrize("f", HIDDEN)
def test_a_maximum_that_nobody_sees_may_drop_nan(f):
    x = rows_with_nan()
    assert drops(f, x)
    check_values(f, x)


@pytest.mark.parametrize("f", SEEN)
def test_a_maximum_that_somebody_sees_keeps_nan(f):
    x = rows_with_nan()
    assert not drops(f, x)
    check_values(f, x)


def test_rows_with_nan_are_nan():
    x = rows_with_nan()
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        want = e / e.sum(-1, keepdims=True)
    found = np.asarray(gradix.jit(softmax)(x))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)
    assert np.isnan(found[[1, 3, 5, 7, 9, 11, 15]]).all()
    assert not np.isnan(found[[0, 2, 13]]).any()


def test_only_what_the_library_would_take_drops_nan():
    large, small = np.ones((64, 64), "float32"), np.ones((8, 8), "float32")
    assert drops(softmax, large)
    assert not drops(softmax, small) and not drops(softmax, large.astype("int32"))
    assert not drops(softmax, large.astype("float16")) and not drops(softmax, large, platform="cuda")


def test_the_program_itself_is_not_changed():
    x = np.ones((64, 64), "float32")
    closed = gradix.make_jaxpr(softmax)(x)
    before = str(closed)
    gradix.jit(softmax).lower(x)
    assert str(closed) == before


def test_maps_and_inner_functions():
    x = rows_with_nan()
    check_values(gradix.vmap(lambda row: jnp.exp(row - row.max()) / jnp.exp(row - row.max()).sum()), x)
    check_values(lambda x: gradix.jit(softmax)(x) * 2, x)
    check_values(lambda x: lax.map(lambda block: softmax(block), x[None]), x)


STEPS = (
    "exp",
    "neg",
    "log",
    "abs",
    "tanh",
    "sum",
    "spread",
    "squeeze",
    "add",
    "sub",
    "mul",
    "div",
    "max",
    "select",
    "eq",
    "transpose",
    "other sum",
    "square",
    "half",
)


def drawn_program(seed: int):
    """A program of a few operations on an array, its maxima over rows (by `take`), and what they make, and of which results."""
    draw = np.random.default_rng(seed)
    steps = [(STEPS[draw.integers(len(STEPS))], *draw.integers(0, 1 << 30, 2)) for _ in range(draw.integers(1, 8))]

    def run(x, take):
        m = take(x)
        e = jnp.exp(x - m[:, None])
        made = [m, x - m[:, None], e, x, e.sum(-1, keepdims=True)]

        def pick(k):
            return made[::-1][min(int(np.log2(1 + k % 64)), len(made) - 1)]

        for step, i, j in steps:
            a, b = pick(i), pick(j)
            if step in ("add", "sub", "mul", "div", "max", "eq", "select"):
                if a.ndim != b.ndim:
                    a, b = (v[:, None] if v.ndim == 1 else v for v in (a, b))
                if step == "select":
                    new = jnp.where(jnp.ones_like(a, bool), a, a) if a.shape != b.shape else jnp.where(b > 0, a, b)
                elif step == "eq":
                    new = (a == b).astype(jnp.float32)
                else:
                    new = {
                        "add": jnp.add,
                        "sub": jnp.subtract,
                        "mul": jnp.multiply,
                        "div": jnp.divide,
                        "max": jnp.maximum,
                    }[step](a, b)
            elif step == "sum":
                new = a.sum(-1, keepdims=bool(j % 2)) if a.ndim == 2 else a * 2
            elif step == "other sum":
                new = a.sum(0, keepdims=True) if j % 8 == 0 else a + 1
            elif step == "spread":
                new = jnp.broadcast_to(a[:, None] if a.ndim == 1 else a, x.shape) if a.shape[0] == x.shape[0] else a * 2
            elif step == "squeeze":
                new = a.reshape(-1) if a.ndim == 2 and a.shape[1] == 1 else a - 1
            elif step == "transpose":
                new = a.T if j % 8 == 0 else a * 3
            elif step == "half":
                new = a.astype(jnp.float16).astype(jnp.float32)
            else:
                new = {
                    "exp": jnp.exp,
                    "neg": jnp.negative,
                    "log": jnp.log,
                    "abs": jnp.abs,
                    "tanh": jnp.tanh,
                    "square": jnp.square,
                }[step](a)
            if new.shape not in ((6, 6), (6,), (6, 1)):
                new = new * jnp.ones((6, 6))
            made.append(new)
        return made[-1 - int(draw_results) :]

    draw_results = draw.integers(0, 2)
    return run


def test_what_is_called_hidden_is_hidden():
    """Programs drawn at random, with both maxima: where one is hidden, nothing tells them apart."""
    x = np.random.default_rng(3).standard_normal((6, 6)).astype("float32")
    x[1, 2] = x[3] = x[4, 0] = x[4, 5] = NAN
    x[2, 1], x[5, 5] = INF, -INF
    x = jnp.array(x)
    hidden = 0
    for seed in range(400):
        run = drawn_program(seed)
        program = simplify(gradix.make_jaxpr(lambda x: run(x, lambda x: x.max(-1)))(x)).jaxpr
        found = [eqn for eqn in program.eqns if eqn.primitive.name == "reduce_max"]
        if not found or not is_hidden(found[0], Users(program, False)):
            continue
        hidden += 1
        keeping = run(x, lambda x: x.max(-1))
        dropping = run(x, lambda x: jnp.where(jnp.isnan(x), -INF, x).max(-1))
        for a, b in zip(keeping, dropping):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=str(program))
    assert hidden >= 30


# -- logarithms that are summed ------------------------------------------------------------------------------------------


def cross_entropy(x):
    return jnp.mean(jnp.maximum(x, 0) - x * 0.3 + jnp.log1p(jnp.exp(-jnp.abs(x))))


SUMMED = [
    lambda x: jnp.sum(jnp.log1p(x)),
    lambda x: jnp.mean(jnp.log1p(x), 0),
    lambda x: -jnp.sum(2 * jnp.log1p(x), -1),
    cross_entropy,
    gradix.value_and_grad(cross_entropy),
    lambda x: (jnp.sum(jnp.log1p(x)), jnp.log1p(2 * x).sum()),
]
KEPT = [
    jnp.log1p,
    lambda x: (jnp.sum(jnp.log1p(x)), jnp.log1p(x)),
    lambda x: jnp.sum(jnp.log1p(x) ** 2),
    lambda x: jnp.sum(jnp.where(x > 0, jnp.log1p(x), 0)),
    lambda x: jnp.max(jnp.log1p(x)),
    lambda x: jnp.log1p(x) * 2,
    lambda x: jnp.sum(jnp.log1p(x)[:2]),
]


def summed(f, x, **how) -> bool:
    return "log1p_in_sums" in taken(f, x, **how)


@pytest.mark.parametrize("f", SUMMED)
def test_a_log1p_that_is_only_summed_is_xlas(f):
    x = np.random.default_rng(1).uniform(0, 3, (64, 100)).astype("float32")
    assert summed(f, x)
    assert "log_plus_one" in gradix.jit(f).lower(x).as_text()
    for got, want in zip(gradix.tree.leaves(gradix.jit(f)(x)), gradix.tree.leaves(f(x.astype("float64")))):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=3e-6, atol=1e-9)


@pytest.mark.parametrize("f", KEPT)
def test_a_log1p_that_is_seen_is_the_formula(f):
    x = np.random.default_rng(1).uniform(0, 3, (64, 100)).astype("float32")
    assert not summed(f, x)
    assert "log_plus_one" not in gradix.jit(f).lower(x).as_text()


def test_only_sums_for_the_library_take_its_log1p():
    total = SUMMED[0]
    assert not summed(total, np.ones(100, "float32"))
    assert summed(total, np.ones(5000, "float32"))
    assert not summed(total, np.ones(5000, "float32"), platform="cuda")
    with gradix.enable_x64(True):
        assert not summed(total, jnp.ones(5000, "float64"))


def test_sums_of_one_log1p_are_close_and_keep_what_is_special():
    """Rows of zeros but for one number, whose logarithm the sum is."""
    draw = np.random.default_rng(5)
    special = np.array([0, -1, -2, INF, -INF, NAN, 1e-45, 3e38, -0.99999994], "float32")
    x = np.concatenate([special, draw.uniform(-1, 1, 2000), 10.0 ** draw.uniform(-30, 30, 2000)]).astype("float32")
    rows = np.zeros((len(x), 32), "float32")
    rows[:, 9] = x
    found = np.asarray(gradix.jit(lambda x: jnp.log1p(x).sum(-1))(rows))
    with np.errstate(all="ignore"):
        want = np.log1p(x.astype("float64"))
    np.testing.assert_allclose(found, want, rtol=5e-7, atol=1e-44)


def test_nn_losses_of_large_arrays():
    x = np.random.default_rng(2).standard_normal((100, 200)).astype("float32") * 4
    want = np.mean(np.log1p(np.exp(-np.abs(x.astype("float64")))) + np.maximum(x, 0))
    np.testing.assert_allclose(gradix.jit(lambda x: jnp.mean(nn.softplus(x)))(x), want, rtol=1e-5)


# -- long formulas of which the extremum is taken ---------------------------------------------------------------------------


@pytest.mark.parametrize("f", [lax.erfc, lax.digamma])
def test_long_formulas_are_alone_before_an_extremum(f):
    x = np.random.default_rng(3).uniform(0.1, 3, (70, 90)).astype("float32")
    x[3, 4] = NAN

    def alone(g, platform="cpu"):
        return "formulas_before_extrema" in taken(g, x, platform=platform)

    def smallest(x):
        return jnp.min(2 * f(x) + 1, 0)

    assert alone(smallest) and alone(lambda x: jnp.max(f(x)))
    assert not alone(lambda x: f(x) + 1) and not alone(lambda x: jnp.sum(f(x)))
    assert not alone(lambda x: (f(x), jnp.max(f(x)))) and not alone(smallest, platform="gpu")
    np.testing.assert_allclose(gradix.jit(smallest)(x), np.asarray(2 * f(jnp.asarray(x)) + 1).min(0), rtol=1e-5)


# -- powers with known exponents -----------------------------------------------------------------------------------------

POINTS = np.array([-INF, -0.0, 0, -1, 4, INF, NAN, 2.5, -2.5, 1e20, 1e-10], "float32")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 2.0, 3.0, -1.0, 1.0, 0.0, 1.5, -2.0])
def test_powers_with_known_exponents(exponent, dtype):
    """As with exponents that are not known, which formulas take, and as on the host."""
    x = jnp.asarray(np.tile(POINTS, 400)).astype(dtype)
    y = jnp.full(x.shape, exponent, dtype)
    found = gradix.jit(lambda x: lax.pow(x, jnp.array(exponent, dtype)))(x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(gradix.jit(lax.pow)(x, y)), rtol=1e-6, atol=1e-37)
    with np.errstate(all="ignore"):
        want = np.power(np.asarray(x, "float64"), np.full(x.shape, exponent)).astype(dtype)
    rtol, atol = (1e-6, 1e-37) if dtype == "float32" else (2e-3, 1e-7)
    np.testing.assert_allclose(np.asarray(found), want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("exponent, formula", [(0.5, False), (2.0, False), (1.5, True), (-0.5, True)])
def test_roots_and_squares_are_xlas(exponent, formula):
    x = np.ones(5000, "float32")
    text = gradix.jit(lambda x: x**exponent).lower(x).as_text()
    assert ("stablehlo.power" in text) != formula
    assert ("@power" in text) == formula


def test_the_slope_of_a_power_has_a_known_exponent():
    x = np.ones(5000, "float32")
    slope = gradix.jit(gradix.grad(lambda x: jnp.sum(x**1.5)))
    assert "stablehlo.power" in slope.lower(x).as_text()
    np.testing.assert_allclose(slope(np.full(5000, 4, "float32")), 3.0)
    for exponent, want in ((0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (-1.0, -INF)):
        assert float(gradix.grad(lambda x, e=exponent: lax.pow(x, e))(0.0)) == want


# -- bounds that are summed ----------------------------------------------------------------------------------------------


def hinge(x):
    return jnp.mean(jnp.maximum(0, 1 - x * 2))


def below(x):
    return jnp.sum(3 * jnp.minimum(1 - x * 2, 0.5))


@pytest.mark.parametrize("f, name", [(hinge, "maximum"), (below, "minimum")])
def test_a_bound_with_a_derivative_is_a_selection_where_it_is_summed(f, name):
    x = np.random.default_rng(4).standard_normal((70, 90)).astype("float32")
    x[3, 3], x[5, 5] = 0.5, 0.25  # where both are equal
    both = gradix.jit(gradix.value_and_grad(f))
    assert f"stablehlo.{name}" in gradix.jit(f).lower(x).as_text()
    assert f"stablehlo.{name}" not in both.lower(x).as_text()
    assert f"stablehlo.{name}" in both.lower(x[:8, :8]).as_text()
    for got, want in zip(both(x), gradix.value_and_grad(f)(jnp.asarray(x))):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


@pytest.mark.parametrize("f", [hinge, below])
@pytest.mark.parametrize("special", [NAN, INF, -INF])
def test_such_a_bound_keeps_what_is_special(f, special):
    x = np.zeros((70, 90), "float32")
    x[3, 3] = special
    got, want = gradix.jit(gradix.value_and_grad(f))(x), gradix.value_and_grad(f)(jnp.asarray(x))
    for a, b in zip(got, want):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_slopes_of_absolute_values():
    """1 at zeros of both signs, and NaN at NaN."""
    x = jnp.array([0.0, -0.0, 2.0, -2.0, INF, -INF, NAN])
    for slope in (gradix.grad(lambda x: jnp.sum(abs(x))), gradix.jit(gradix.grad(lambda x: jnp.sum(abs(x))))):
        np.testing.assert_array_equal(np.asarray(slope(x)), [1, 1, 1, -1, 1, -1, NAN])


# -- loops that hardly ever run ------------------------------------------------------------------------------------------


def powers(text: str) -> tuple[int, int]:
    """How many powers a compiled program takes in its loops, and in all."""
    computations = dict(re.findall(r"^(%[\w.-]+) [^\n]*\{\n(.*?)\n\}", text, re.MULTILINE | re.DOTALL))
    waiting, found = re.findall(r"body=(%[\w.-]+)", text), ""
    while waiting:
        body = computations.pop(waiting.pop(), "")
        found += body
        waiting += re.findall(r"(?:calls|to_apply|body)=(%[\w.-]+)", body)
    return found.count(" power("), text.count(" power(")


def test_zeta_far_below_zero_is_computed_in_the_loop_alone():
    """XLA takes out of a loop what depends on nothing that changes in it: three more zetas for every argument."""
    x = np.full(5000, 2, "float32")
    inside, all_powers = powers(gradix.jit(lax.zeta).lower(x, x).compile().as_text())
    assert inside > all_powers / 2
