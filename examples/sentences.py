"""A small transformer over sentences of their own lengths: no padding, no masks, one compiled program.

A sentence is a row of letters, and the question is whether its first letter occurs again. The model is written for one
sentence, as if all had one length: embedding, attention, a layer for each letter, and the answer at the first place.
`vmap` maps it over a `gradix.Ragged`, whose rows have lengths of their own, and `grad` differentiates the mean of the
losses. Attention sees the letters of its sentence and nothing else.

    python examples/sentences.py [--out sentences.png] [--quick]
"""

import argparse
import time

import matplotlib
import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import grad, jit, random, vmap

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

LETTERS, LONGEST, WIDTH, HIDDEN = 8, 16, 24, 48
BATCH, RATE = 128, 0.01


def init(key):
    """The parameters of the model."""
    sizes = {"letters": (LETTERS, WIDTH), "places": (LONGEST, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH),
             "value": (WIDTH, WIDTH), "in": (WIDTH, HIDDEN), "out": (HIDDEN, 1)}  # fmt: skip
    keys = random.split(key, len(sizes))
    return {
        name: random.normal(k, size) / np.sqrt(size[0] if name not in ("letters", "places") else 2)
        for k, (name, size) in zip(keys, sizes.items())
    }


def answer(params, sentence):
    """The log-odds that the first letter of one sentence, a vector of numbers of letters, occurs again."""
    x = params["letters"][sentence] + params["places"][jnp.arange(sentence.shape[0])]
    query, key, value = [x @ params[name] for name in ("query", "key", "value")]
    weights = gradix.nn.softmax(query @ key.T / np.sqrt(WIDTH), axis=-1)
    x = x + weights @ value
    return (gradix.nn.relu(x @ params["in"]) @ params["out"])[0, 0]


def loss(params, sentences, truths):
    """The mean cross-entropy of the answers to a batch of sentences."""
    odds = vmap(answer, (None, 0))(params, sentences)
    return jnp.mean(gradix.nn.softplus(odds) - truths * odds)


@jit
def update(params, moments, step, sentences, truths):
    """One step of Adam (D. P. Kingma, J. Ba, 2015)."""
    slope = grad(loss)(params, sentences, truths)
    first = gradix.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
    second = gradix.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], slope)

    def moved(p, m, v):
        return p - RATE * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.99**step)) + 1e-8)

    return gradix.tree.map(moved, params, first, second), (first, second)


def batch(rng, count=BATCH):
    """Sentences of two to LONGEST letters, in half of which the first letter occurs again."""
    rows, truths = [], rng.integers(2, size=count)
    for again in truths:
        row = rng.integers(LETTERS, size=rng.integers(2, LONGEST + 1))
        row[1:] = (row[0] + rng.integers(1, LETTERS, size=len(row) - 1)) % LETTERS  # other letters
        if again:
            row[rng.integers(1, len(row))] = row[0]
        rows.append(row)
    return gradix.Ragged.of(rows, bound=LONGEST, dtype=np.int32), jnp.asarray(truths, jnp.float32)


def main():
    """Train the model, and tell how well it answers for each length."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default="sentences.png", help="the file of the figure")
    options.add_argument("--quick", action="store_true", help="with fewer steps")
    given = options.parse_args()
    steps = 120 if given.quick else 400
    rng = np.random.default_rng(0)
    params = init(random.key(1))
    moments = (gradix.tree.map(jnp.zeros_like, params), gradix.tree.map(jnp.zeros_like, params))

    answers = jit(vmap(answer, (None, 0)))
    start = time.perf_counter()
    for step in range(1, steps + 1):
        params, moments = update(params, moments, float(step), *batch(rng))
        if step in (1, steps // 4, steps // 2, steps):
            sentences, truths = batch(rng, 1024)
            right = np.mean((np.asarray(answers(params, sentences)) > 0) == np.asarray(truths))
            print(f"step {step:4}: {right:6.1%} of unseen sentences answered right")
    print(f"{steps} steps took {time.perf_counter() - start:.1f} s; programs traced: {update.stats().traces}")

    sentences, truths = batch(rng, 4096)
    right = (np.asarray(answers(params, sentences)) > 0) == np.asarray(truths)
    lengths = np.asarray(sentences.counts)
    share = {n: right[lengths == n].mean() for n in range(2, LONGEST + 1)}
    print("by length:", "  ".join([f"{n}: {s:.0%}" for n, s in share.items() if n % 2 == 0]))
    alone = np.array([answer(params, jnp.asarray(row)) for row in sentences.to_list()[:20]])
    together = np.asarray(answers(params, sentences))[:20]
    print(f"answers to sentences alone and in a batch differ by at most {np.abs(alone - together).max():.1e}")

    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.bar(list(share), list(share.values()))
    axes.set(xlabel="letters in the sentence", ylabel="share answered right", ylim=(0.5, 1))
    figure.tight_layout()
    figure.savefig(given.out, dpi=120)
    print(f"wrote {given.out}")

    print("\nTry next, in this file:")
    print("   - leave params['places'] out of answer: it no longer knows which letter was the first")
    print("   - LONGEST = 40: the same program, with more room")
    print("   - grad(loss) with respect to embedded sentences: a Ragged has a gradient, which is a Ragged")


if __name__ == "__main__":
    main()
