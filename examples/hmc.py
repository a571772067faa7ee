"""Which measurements predict the progress of diabetes? An answer by Hamiltonian Monte Carlo.

The data are ten measurements of 442 patients, and the progress of the disease a year later (Efron et al., 2004). The
model is linear with normal noise; its weights share an unknown scale. `vmap` runs eight chains side by side. Each draw
takes a dozen leapfrog steps in a `scan`, and the whole run, tuning included, is one compiled program.

    python examples/hmc.py [--out hmc.png] [--quick]
"""

import argparse
import time
from typing import NamedTuple

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes

import gradix
import gradix.numpy as jnp
from gradix import grad, jit, lax, random, vmap
from gradix.flatten_util import ravel_pytree
from gradix.scipy.stats import norm

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

CHAINS = 8
LEAPS = 12
WANTED = 0.8  # the share of proposals to accept
COLOURS = ("#00798c", "#e0a030", "#d1495b", "#6a4c93")

# --- The model: the unknown parameters, and the logarithm of their density given the data -------------------------


class Unknown(NamedTuple):
    """The parameters to be found. Scales are positive, so the chains walk through their logarithms."""

    weights: gradix.Array
    bias: gradix.Array
    log_noise: gradix.Array
    log_scale: gradix.Array


def log_density(u, x, y):
    """The logarithm of prior times likelihood, up to a constant."""
    prior = norm.logpdf(u.weights, 0, jnp.exp(u.log_scale)).sum() + norm.logpdf(u.bias)
    prior += norm.logpdf(u.log_noise) + norm.logpdf(u.log_scale)
    return prior + norm.logpdf(y, x @ u.weights + u.bias, jnp.exp(u.log_noise)).sum()


# --- The sampler: Neal, "MCMC using Hamiltonian dynamics" (2011) --------------------------------------------------


class Chain(NamedTuple):
    """The place of a chain, and what tunes its steps: their length, and sums for each coordinate's variance."""

    place: gradix.Array
    log_step: gradix.Array
    mean: gradix.Array
    squares: gradix.Array
    turns: gradix.Array


def leapfrog(energy, place, momentum, step, spread):
    """Follow a path of constant energy; the error of the energy is of second order in the step."""

    def leap(state, _):
        place, momentum = state
        momentum = momentum - step / 2 * grad(energy)(place)
        place = place + step * spread * momentum
        return (place, momentum - step / 2 * grad(energy)(place)), None

    return lax.scan(leap, (place, momentum), None, length=LEAPS)[0]


def transition(energy, chain, key, is_tuning):
    """Accept or reject one proposal; while tuning, the step grows if more are accepted than wanted."""
    push, choice, jitter = random.split(key, 3)
    spread = jnp.where(chain.turns > 50, chain.squares / jnp.maximum(chain.turns - 1, 1), 1.0)
    momentum = random.normal(push, chain.place.shape) / jnp.sqrt(spread)
    step = jnp.exp(chain.log_step) * random.uniform(jitter, minval=0.8, maxval=1.2)
    place, end = leapfrog(energy, chain.place, momentum, step, spread)

    total = lambda place, momentum: energy(place) + (spread * momentum**2).sum() / 2
    change = total(place, end) - total(chain.place, momentum)
    accepted = jnp.exp(jnp.minimum(0.0, jnp.nan_to_num(-change, nan=-jnp.inf)))
    place = jnp.where(random.uniform(choice) < accepted, place, chain.place)

    turns = chain.turns + 1
    mean = chain.mean + (place - chain.mean) / turns  # Welford's sums
    tuned = Chain(place, chain.log_step + (accepted - WANTED) / jnp.sqrt(turns), mean,
                  chain.squares + (place - chain.mean) * (place - mean), turns)  # fmt: skip
    kept = chain._replace(place=place)
    return gradix.tree.map(lambda a, b: jnp.where(is_tuning, a, b), tuned, kept), accepted


@jit(static_argnames=("warm_up", "draws"))
def sample(key, x, y, *, warm_up, draws):
    """The draws of all chains, an `Unknown` of arrays (chains, draws, …), and each chain's mean acceptance."""
    zero = Unknown(jnp.zeros(x.shape[1]), jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))
    flat, unravel = ravel_pytree(zero)
    energy = lambda place: -log_density(unravel(place), x, y)

    def walk(key):
        first, steps = random.split(key)
        place = random.normal(first, flat.shape)
        chain = Chain(place, jnp.log(0.1), jnp.zeros_like(flat), jnp.zeros_like(flat), jnp.zeros(()))
        turn = lambda chain, at: (lambda c, a: (c, (c.place, a)))(*transition(energy, chain, at[0], at[1]))
        keys = random.split(steps, warm_up + draws)
        _, (places, accepted) = lax.scan(turn, chain, (keys, jnp.arange(warm_up + draws) < warm_up))
        return places[warm_up:], accepted[warm_up:].mean()

    places, accepted = vmap(walk)(random.split(key, CHAINS))
    return vmap(vmap(unravel))(places), accepted


# --- How good the draws are ---------------------------------------------------------------------------------------


def r_hat(draws):
    """How far the halves of all chains disagree; 1 if they agree (Gelman and Rubin, 1992)."""
    halves = draws.reshape(2 * CHAINS, -1, *draws.shape[2:])
    within, between = halves.var(1).mean(0), halves.mean(1).var(0)
    return jnp.sqrt(1 + between / within)


def draw_figure(path, names, draws, least_squares):
    """Draw the walks of four chains, the posterior of each weight, and that of two weights together."""
    weights = np.asarray(draws.weights)
    figure, (walk, forest, pair) = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    for chain, colour in zip(weights[:4, :150, names.index("bmi")], COLOURS, strict=True):
        walk.plot(chain, color=colour, lw=1)
    walk.set(title="Four chains: the weight of bmi", xlabel="draw", ylabel="weight")

    every = weights.reshape(-1, len(names))
    order = np.argsort(every.mean(0))
    low, high = np.quantile(every[:, order], [0.025, 0.975], axis=0)
    forest.hlines(range(len(names)), low, high, color=COLOURS[0], lw=5, alpha=0.4)
    forest.plot(every.mean(0)[order], range(len(names)), "o", color=COLOURS[0], label="posterior, 95 %")
    forest.plot(least_squares[order], range(len(names)), "x", color=COLOURS[2], label="least squares")
    forest.axvline(0, color="#8a97a3", lw=1, ls=":")
    forest.set_yticks(range(len(names)), [names[i] for i in order])
    forest.set(title="What each measurement says", xlabel="weight, in standard deviations")
    forest.legend(frameon=False, loc="lower right")

    a, b = names.index("s1"), names.index("s2")
    pair.plot(every[::5, a], every[::5, b], ".", color=COLOURS[3], ms=2, alpha=0.3)
    pair.set(title="s1 and s2 cannot be told apart", xlabel="weight of s1", ylabel="weight of s2")
    for ax in (walk, forest, pair):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    """Draw a sample, check it, and report what it says about the weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="hmc.png")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    data = load_diabetes()
    names = list(data.feature_names)
    x = jnp.asarray(data.data / data.data.std(0), "float32")
    y = jnp.asarray((data.target - data.target.mean()) / data.target.std(), "float32")

    sizes = {"warm_up": 200, "draws": 200} if options.quick else {"warm_up": 600, "draws": 1500}
    start = time.perf_counter()
    draws, accepted = gradix.block_until_ready(sample(random.key(0), x, y, **sizes))
    first = time.perf_counter() - start
    start = time.perf_counter()
    gradix.block_until_ready(sample(random.key(1), x, y, **sizes))
    again = time.perf_counter() - start

    gradients = CHAINS * sum(sizes.values()) * 2 * LEAPS
    print(
        f"{CHAINS} chains of {sizes['draws']} draws: {first:.2f} s with the compilation, {again:.2f} s again "
        f"({gradients / again:,.0f} gradients a second)"
    )
    worst = max(float(r_hat(d).max()) for d in draws)
    print(f"accepted {accepted.mean():.2f}, worst R-hat {worst:.3f} (below 1.01 the chains agree)\n")

    least_squares, *_ = np.linalg.lstsq(np.asarray(x), np.asarray(y), rcond=None)
    every = np.asarray(draws.weights).reshape(-1, len(names))
    print("weight   posterior        least squares   positive")
    for i in np.argsort(-abs(every.mean(0))):
        print(
            f"{names[i]:6} {every[:, i].mean():+7.3f} ± {every[:, i].std():.3f} {least_squares[i]:+15.3f} "
            f"{(every[:, i] > 0).mean():9.1%}"
        )
    print(f"noise  {np.exp(draws.log_noise).mean():7.3f} of the standard deviation of the progress")

    draw_figure(options.out, names, draws, least_squares)
    print(f"\nThe picture: {options.out}")
    print("Try next: use scipy.stats.laplace for norm in the prior of u.weights: more weights are then near zero;")
    print("          LEAPS = 2: the chains walk at random, and R-hat is larger")


if __name__ == "__main__":
    main()
