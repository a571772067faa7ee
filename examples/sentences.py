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
GROUPS = ((2, 5), (6, 11), (12, LONGEST))  # lengths


def init(key):
    """The parameters of the model."""
    sizes = {"letters": (LETTERS, WIDTH), "places": (LONGEST, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH),
             "value": (WIDTH, WIDTH), "in": (WIDTH, HIDDEN), "out": (HIDDEN, 1)}  # fmt: skip
    keys = random.split(key, len(sizes))
    return {
        name: random.normal(k, size) / np.sqrt(size[0] if name not in ("letters", "places") else 2)
        for k, (name, size) in zip(keys, sizes.items())
    }


def looks(params, sentence):
    """The embedded letters of one sentence, a vector of numbers of letters, and how much each looks at each."""
    x = params["letters"][sentence] + params["places"][jnp.arange(sentence.shape[0])]
    query, key = x @ params["query"], x @ params["key"]
    return x, gradix.nn.softmax(query @ key.T / np.sqrt(WIDTH), axis=-1)


def answer(params, sentence):
    """The log-odds that the first letter of one sentence occurs again."""
    x, weights = looks(params, sentence)
    x = x + weights @ (x @ params["value"])
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


def shares(odds, sentences, truths):
    """The share answered right of sentences of short, middle and full length."""
    right, lengths = (np.asarray(odds) > 0) == np.asarray(truths), np.asarray(sentences.counts)
    return [right[(lengths >= low) & (lengths <= high)].mean() for low, high in GROUPS]


def draw(file, curves, params, sentences):
    """What is learned when, and where the first letter of each sentence looks."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 3))
    steps, values = zip(*curves)
    for (low, high), line in zip(GROUPS, np.array(values).T):
        left.plot(steps, line, label=f"{low} to {high} letters")
    left.set(
        xlabel="step",
        ylabel="share answered right",
        xlim=(0, 100),
        ylim=(0.45, 1.02),
        title="Short sentences are learned first",
    )
    left.legend(loc="lower right", frameon=False)
    for y, row in enumerate(sentences.to_list()[:10]):
        weights = np.asarray(looks(params, jnp.asarray(row))[1][0])
        for place, (letter, weight) in enumerate(zip(row, weights)):
            again = place and letter == row[0]
            box = plt.Rectangle((place, -y), 0.9, 0.9, facecolor=plt.cm.Blues(0.8 * weight / weights.max()),
                                edgecolor="tab:orange" if again else "lightgray", linewidth=2 if again else 0.5)  # fmt: skip
            right.add_patch(box)
            right.text(
                place + 0.45,
                0.4 - y,
                "abcdefgh"[letter],
                ha="center",
                va="center",
                color="white" if weight > 0.6 else "black",
            )
    right.set(
        xlim=(-0.2, LONGEST + 0.2), ylim=(-9.3, 1.2), title="Where the first letter looks; orange: it occurs again"
    )
    right.axis("off")
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main():
    """Train the model, and tell how well it answers for each length."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default="sentences.png", help="the file of the figure")
    options.add_argument("--quick", action="store_true", help="with fewer steps")
    given = options.parse_args()
    steps = 120 if given.quick else 200
    rng = np.random.default_rng(0)
    params = init(random.key(1))
    moments = (gradix.tree.map(jnp.zeros_like, params), gradix.tree.map(jnp.zeros_like, params))

    answers = jit(vmap(answer, (None, 0)))
    start, curves = time.perf_counter(), []
    for step in range(1, steps + 1):
        params, moments = update(params, moments, float(step), *batch(rng))
        if step == 1 or step % 5 == 0:
            sentences, truths = batch(rng, 1024)
            curves.append((step, shares(answers(params, sentences), sentences, truths)))
        if step in (1, steps // 4, steps // 2, steps):
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

    draw(given.out, curves, params, sentences)
    print(f"wrote {given.out}")

    print("\nTry next, in this file:")
    print("   - leave params['places'] out of answer: it no longer knows which letter was the first")
    print("   - LONGEST = 40: the same program, with more room")
    print("   - grad(loss) with respect to embedded sentences: a Ragged has a gradient, which is a Ragged")


if __name__ == "__main__":
    main()
