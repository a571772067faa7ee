"""Draws: the numbers JAX gives for the same keys, eager and compiled."""

import numpy as np
import pytest

import gradix
from gradix import dtypes, numpy as jnp, random
from gradix.random import permutations

KEY = random.key(42)


@pytest.mark.x32
def test_known_draws():
    np.testing.assert_array_equal(random.bits(KEY, (3,), "uint8"), [162, 217, 249])
    assert int(random.bits(KEY)) == 2098992034
    np.testing.assert_array_equal(random.uniform(KEY, (3,)), np.float32([0.48870957, 0.6797972, 0.6162715]))
    np.testing.assert_allclose(random.normal(KEY, (3,)), [-0.02830462, 0.46713185, 0.29570296], rtol=1e-6)
    np.testing.assert_array_equal(random.randint(KEY, (3,), 0, 256, "uint8"), [196, 18, 183])
    np.testing.assert_array_equal(random.randint(KEY, (3,), jnp.arange(3), 10), [4, 7, 9])
    np.testing.assert_array_equal(random.permutation(KEY, 4), [2, 3, 0, 1])
    np.testing.assert_allclose(
        random.normal(KEY, (2,), "complex64"), [0.05368746 + 0.42833984j, -0.34389618 + 0.5650095j], rtol=1e-5
    )


DRAWS = {
    "uniform": lambda k, s: random.uniform(k, s, minval=-3.3, maxval=5.7),
    "half": lambda k, s: random.uniform(k, s, "float16"),
    "bfloat": lambda k, s: random.uniform(k, s, "bfloat16"),
    "normal": lambda k, s: random.normal(k, s),
    "truncated": lambda k, s: random.truncated_normal(k, -1.0, 2.0, s),
    "randint": lambda k, s: random.randint(k, s, -5, 1000),
    "randint8": lambda k, s: random.randint(k, s, -1000, 1000, "int8"),
    "randint_full": lambda k, s: random.randint(k, s, -(2**31), 2**31 - 1),
    "bernoulli": lambda k, s: random.bernoulli(k, 0.3, s),
    "bernoulli_high": lambda k, s: random.bernoulli(k, 0.3, s, "high"),
    "choice": lambda k, s: random.choice(k, 10, s),
    "choice_p": lambda k, s: random.choice(k, 3, s, p=jnp.array([0.2, 0.3, 0.5])),
    "categorical": lambda k, s: random.categorical(k, jnp.array([0.2, 0.3, 0.5]), shape=s),
    "gumbel": lambda k, s: random.gumbel(k, s),
    "gumbel_high": lambda k, s: random.gumbel(k, s, mode="high"),
    "rademacher": lambda k, s: random.rademacher(k, s),
    "geometric": lambda k, s: random.geometric(k, 0.2, s),
    "cauchy": lambda k, s: random.cauchy(k, s),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 0), (3, 40)], ids=str)
def test_compiled_draws_are_the_eager_ones(name, shape):
    eager = DRAWS[name](KEY, shape)
    compiled = gradix.jit(lambda k: DRAWS[name](k, shape))(KEY)
    assert eager.shape == compiled.shape == shape and eager.dtype == compiled.dtype
    exact = eager.dtype.kind in "biu" or name in ("half", "bfloat")
    # Where the processor multiplies and adds in one step, a sum of a product is rounded once, elsewhere twice.
    rtol, atol = (0, 0) if exact else (0, 1e-6) if name == "uniform" else (2e-4, 2e-6)
    np.testing.assert_allclose(np.asarray(eager, float), np.asarray(compiled, float), rtol=rtol, atol=atol)


def test_a_draw_larger_than_a_block_of_bits_agrees_with_its_parts():
    whole = np.asarray(random.bits(KEY, (70_000,)))
    np.testing.assert_array_equal(whole[:100], random.bits(KEY, (100,)))


def test_permutations():
    x = jnp.arange(12).reshape(3, 4)
    rows = np.asarray(random.permutation(KEY, x))
    assert sorted(map(tuple, rows)) == [tuple(r) for r in np.asarray(x)]
    apart = np.asarray(random.permutation(KEY, x, axis=1, independent=True))
    assert [sorted(r) for r in apart] == np.asarray(x).tolist()
    assert sorted(np.asarray(random.permutation(KEY, 2000))) == list(range(2000))


@pytest.mark.x32
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("rounds, n", [(1, 1600), (2, 3000), (3, 3001)])
def test_a_permutation_is_rounds_of_stable_sorts_by_32_bits(impl, rounds, n, monkeypatch):
    if rounds == 3:  # as many as 3 million have
        monkeypatch.setattr(permutations, "_ROUND", permutations._ROUND / 2)
    left, wanted = random.key(3, impl=impl), np.arange(n)
    for _ in range(rounds):
        left, key = random.split(left)
        wanted = wanted[np.argsort(np.asarray(random.bits(key, (n,))), kind="stable")]
    for way in (lambda f: f, gradix.jit):
        np.testing.assert_array_equal(way(lambda k: random.permutation(k, n))(random.key(3, impl=impl)), wanted)
        halves = way(lambda k: random.permutation(k, jnp.arange(n) / 2))(random.key(3, impl=impl))
        np.testing.assert_array_equal(halves, wanted.astype("float32") / 2)
    if impl == "threefry2x32":  # the bits of several rbg keys are others
        by_key = gradix.vmap(lambda k: random.permutation(k, n))(random.key(3, impl=impl)[None])
        np.testing.assert_array_equal(by_key[0], wanted)
    weights = np.arange(n, dtype="float32")
    gradient = gradix.grad(lambda x: (random.permutation(random.key(3, impl=impl), x) * weights).sum())(weights)
    np.testing.assert_array_equal(gradient, np.argsort(wanted))


def test_choice_without_replacement():
    drawn = np.asarray(random.choice(KEY, 10, (2, 5), replace=False))
    assert sorted(drawn.ravel()) == list(range(10))
    assert random.choice(KEY, jnp.zeros((3, 4)), (2, 1), axis=1).shape == (3, 2, 1)
    weighted = random.choice(KEY, 4, (2,), replace=False, p=jnp.array([0.0, 0.5, 0.5, 0.0]))
    assert sorted(np.asarray(weighted)) == [1, 2]
    with pytest.raises(ValueError, match="must not be larger"):
        random.choice(KEY, 3, (4,), replace=False)


def test_categorical_shapes():
    logits = jnp.zeros((2, 3, 4))
    assert random.categorical(KEY, logits).shape == (2, 3)
    assert random.categorical(KEY, logits, axis=1, shape=(5, 2, 4)).shape == (5, 2, 4)
    apart = np.asarray(random.categorical(KEY, logits, shape=(4, 2, 3), replace=False))
    assert (np.sort(apart, axis=0) == np.arange(4)[:, None, None]).all()
    with pytest.raises(ValueError, match="must end with"):
        random.categorical(KEY, logits, shape=(2,))


def test_gradients_flow_to_parameters():
    key = random.key(3)
    slope = gradix.grad(lambda m: random.uniform(key, minval=0.0, maxval=m))(2.0)
    np.testing.assert_allclose(slope, random.uniform(key), rtol=1e-6)
    assert np.isfinite(gradix.grad(lambda a: random.truncated_normal(key, a, 1.0))(-1.0))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: random.poisson(KEY, x * 20, (3,)),
        lambda x: random.binomial(KEY, 30.0, x, (3,)),
        lambda x: random.gamma(KEY, x, (3,)),
        lambda x: random.beta(KEY, x, 1.0, (3,)),
    ],
)
def test_draws_by_rejection_with_mapped_parameters(draw):
    x = jnp.array([0.1, 0.3, 0.9])
    np.testing.assert_allclose(gradix.vmap(draw)(x), jnp.stack([draw(v) for v in x]), rtol=1e-6)


@pytest.mark.x32
def test_weibull_parameters_widen_the_draw():
    scale, concentration = jnp.array([1.0, 2.0, 3.0]), jnp.array([[0.5], [2.0]])
    drawn = random.weibull_min(KEY, scale, concentration, (3,))
    np.testing.assert_allclose(drawn, random.exponential(KEY, (3,)) ** (1 / concentration) * scale, rtol=1e-6)
    assert random.weibull_min(KEY, scale, 1, (3,), "float16").dtype == "float32"
    assert random.weibull_min(KEY, 1, jnp.arange(1, 4), (3,), "float16").dtype == "float16"


def test_double_sided_maxwell_draws_for_each_pair_of_parameters():
    drawn = random.double_sided_maxwell(KEY, jnp.array([0.0, 9.0]), 1.0, (3,))
    assert drawn.shape == (3, 2)
    np.testing.assert_allclose(
        drawn, random.double_sided_maxwell(KEY, 0.0, 1.0, (3, 2)) + jnp.array([0.0, 9.0]), rtol=1e-6
    )
    assert random.double_sided_maxwell(KEY, 0.0, jnp.ones(2)).shape == (2, 2)
    assert random.double_sided_maxwell(KEY, jnp.float32(0), 1.0, (2,), "float16").dtype == "float32"


@pytest.mark.promotes
@pytest.mark.parametrize(
    "name, others",
    [
        ("pareto", ()),
        ("rayleigh", ()),
        ("wald", ()),
        ("lognormal", ()),
        ("t", ()),
        ("chisquare", ()),
        ("beta", (1.0,)),
        ("f", (1.0,)),
        ("triangular", (1.5, 2.0)),
    ],
)
def test_parameters_wider_than_the_draw_are_refused(name, others):
    draw = getattr(random, name)
    assert draw(KEY, jnp.float16(1), *others, dtype="float16").dtype == "float16"
    assert draw(KEY, jnp.broadcast_to(1.0, (2,)), *others, dtype="float16").shape == (2,)  # weak types give way
    with pytest.raises(dtypes.TypePromotionError, match=f"{name} cannot safely cast .* float32 to dtype=float16"):
        draw(KEY, jnp.float32(1), *others, dtype="float16")


@pytest.mark.x32
def test_multivariate_normal_has_the_wider_dtype():
    mean, cov = jnp.zeros(2), jnp.eye(2)
    assert random.multivariate_normal(KEY, mean, cov, dtype="float16").dtype == "float32"
    assert random.multivariate_normal(KEY, mean.astype("bfloat16"), cov.astype("float16")).dtype == "float32"
    with pytest.raises(ValueError, match="complex64"):
        random.multivariate_normal(KEY, mean.astype(complex), cov)
