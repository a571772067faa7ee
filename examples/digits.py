"""Learn to read handwritten digits in seconds, on an ordinary processor.

Three learners share one loss and one training step: a multilayer perceptron, a small convolutional network, and an
ensemble of perceptrons that `vmap` trains side by side. Then `vmap(grad)` computes how strongly each unseen digit
would still change the weights. The digits with the largest gradients are the hardest to read.

    python examples/digits.py [--out digits.png] [--quick]
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digits_figure import draw
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gradix
import gradix.numpy as jnp
from gradix import grad, jit, lax, nn, random, value_and_grad, vmap

HIDDEN = (256, 128)
CHANNELS = (16, 32)
MEMBERS = 8
EPOCHS = 40
BATCH = 64
LEARNING_RATE = 0.1
MOMENTUM = 0.9
NUDGE = 0.7
REQUIRED = 0.97

# --- The networks: each reads one 8x8 image; vmap applies them to many --------------------------------------------


def dense_init(key, inputs, outputs):
    """Weights, scaled so that activations keep their size from layer to layer (He et al., 2015), and a bias."""
    return random.normal(key, (inputs, outputs)) * jnp.sqrt(2 / inputs), jnp.zeros(outputs)


def mlp_init(key):
    """Random parameters of the perceptron: a (weight, bias) pair for each layer."""
    sizes = (64, *HIDDEN, 10)
    keys = random.split(key, len(sizes) - 1)
    return [dense_init(k, m, n) for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)]


def mlp(params, image):
    """Ten scores for one image."""
    x = image.ravel()
    *hidden, (weight, bias) = params
    for w, b in hidden:
        x = nn.relu(x @ w + b)
    return x @ weight + bias


def conv_init(key):
    """Random parameters of the conv net: a 3x3 kernel for each convolution, then one dense layer."""
    *keys, head_key = random.split(key, len(CHANNELS) + 1)
    shapes = [(3, 3, m, n) for m, n in zip((1, *CHANNELS[:-1]), CHANNELS, strict=True)]
    kernels = [random.normal(k, s) * jnp.sqrt(2 / (9 * s[2])) for k, s in zip(keys, shapes, strict=True)]
    return kernels, dense_init(head_key, 4 * 4 * CHANNELS[-1], 10)


def conv_net(params, image):
    """Ten scores for one image: convolve, keep the largest of every 2x2 pixels, and classify the result."""
    kernels, (weight, bias) = params
    x = image[None, :, :, None]
    for kernel in kernels:
        x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = x.reshape(4, 2, 4, 2, -1).max(axis=(1, 3))
    return x.ravel() @ weight + bias


# --- Training: the loss of one image, and everything else by transformation ---------------------------------------


def loss(net, params, image, label):
    """Cross-entropy of one image."""
    return -nn.log_softmax(net(params, image))[label]


def batch_loss(net, params, images, labels):
    """Mean cross-entropy of a minibatch."""
    return vmap(partial(loss, net, params))(images, labels).mean()


def nudge(key, image):
    """The image moved at random by less than a pixel, so that training does not learn exact places."""
    pixel = jnp.arange(8)
    move = random.uniform(key, (2, 1, 1), minval=-NUDGE, maxval=NUDGE)
    # Each move is a linear interpolation, written as an 8x8 matrix.
    down, right = nn.relu(1 - jnp.abs(pixel[:, None] - pixel - move))
    return down @ image @ right.T


class State(NamedTuple):
    """The values that a training step changes."""

    params: Any
    velocity: Any


def start(init, key):
    """Random parameters with a velocity of zero."""
    params = init(key)
    return State(params, gradix.tree.map(jnp.zeros_like, params))


def train_step(net, rate, key, images, labels, state):
    """One step of gradient descent with momentum; returns the new state and the loss before it."""
    images = vmap(nudge)(random.split(key, len(images)), images)
    value, slope = value_and_grad(partial(batch_loss, net))(state.params, images, labels)
    velocity = gradix.tree.map(lambda v, g: MOMENTUM * v - rate * g, state.velocity, slope)
    return State(gradix.tree.map(jnp.add, state.params, velocity), velocity), value


def scores(net, params, images):
    """Log-probabilities of the ten digits for every image."""
    return nn.log_softmax(vmap(partial(net, params))(images))


def vote(net, params, images):
    """The mean of the members' `scores`, for parameters with a leading axis of ensemble members."""
    return vmap(lambda member: scores(net, member, images))(params).mean(axis=0)


class Learner(NamedTuple):
    """One row of the comparison."""

    name: str
    state: State
    step: Any
    read: Any


def learners(key):
    """The three learners, untrained. The ensemble is made of the perceptron's start and step by `vmap`."""
    mlp_step = partial(train_step, mlp)
    members = vmap(partial(start, mlp_init))(random.split(key, MEMBERS))
    each_member = vmap(mlp_step, in_axes=(None, None, None, None, 0))
    return [
        Learner("perceptron", start(mlp_init, key), mlp_step, partial(scores, mlp)),
        Learner("conv net", start(conv_init, key), partial(train_step, conv_net), partial(scores, conv_net)),
        Learner(f"ensemble of {MEMBERS}", members, each_member, partial(vote, mlp)),
    ]


def train(learner, data, epochs, key):
    """Train for some epochs; return the parameters, the test accuracy after each epoch and the last readings."""
    train_x, test_x, train_y, test_y = data
    step, read = jit(learner.step), jit(learner.read)
    state, curve, began = learner.state, [], time.perf_counter()
    for epoch, epoch_key in enumerate(random.split(key, epochs)):
        rate = LEARNING_RATE * (1 + np.cos(np.pi * epoch / epochs)) / 2
        order_key, *step_keys = random.split(epoch_key, 1 + len(train_x) // BATCH)
        order = np.asarray(random.permutation(order_key, len(train_x)))
        for i, step_key in enumerate(step_keys):
            pick = order[i * BATCH : (i + 1) * BATCH]
            state, value = step(rate, step_key, train_x[pick], train_y[pick], state)
        readings = np.asarray(read(state.params, test_x)).argmax(axis=1)
        curve.append((readings == test_y).mean())
        show_progress(learner.name, epoch + 1, epochs, float(value.mean()), curve[-1], began)
    return state.params, curve, readings


def pull(params, image, label):
    """The norm of the gradient of one image's loss: how much this image would still change the network."""
    slope = grad(partial(loss, conv_net))(params, image, label)
    return jnp.sqrt(sum(jnp.sum(g**2) for g in gradix.tree.leaves(slope)))


# --- The report ---------------------------------------------------------------------------------------------------


def show_progress(name, done, total, value, accuracy, began, width=28):
    """Show a bar, redrawn in place on a terminal; if the output is no terminal, print one line at the end."""
    bar = ("━" * (done * width // total)).ljust(width, "╌")
    seconds = time.perf_counter() - began
    line = f"{name:<14} {bar} {done:3}/{total}  loss {value:.4f}  test {accuracy:6.2%}  {seconds:4.1f} s"
    if sys.stderr.isatty():
        print(f"\r{line}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done == total:
        print(line, file=sys.stderr)


def suggestions():
    """Three things to try next, each with the line to change."""
    file = globals().get("__file__")  # a notebook has none
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file else []
    numbers = {line.split(" =")[0]: i for i, line in reversed(list(enumerate(lines, 1)))}
    where = {name: f"line {numbers[name]:3}: " if file else "" for name in ("NUDGE", "CHANNELS", "MEMBERS")}
    return (
        "Try next, in this file:\n"
        f"  {where['NUDGE']}NUDGE = 0.0          train only on digits that are not moved; the test accuracy falls\n"
        f"  {where['CHANNELS']}CHANNELS = (32, 64)  use twice as many kernels: is it better, and how much slower?\n"
        f"  {where['MEMBERS']}MEMBERS = 32         train more perceptrons in one vmap; compare the times\n"
    )


def main():
    """Train the learners, report and draw; the exit status is 0 if all of them read well enough."""
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("--out", type=Path, default=Path("digits.png"), help="where the figure goes")
    parser.add_argument("--quick", action="store_true", help="half the training")
    options = parser.parse_args()
    epochs = EPOCHS // 2 if options.quick else EPOCHS

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 8, 8)
    data = train_test_split(images, labels.astype(np.int32), test_size=0.25, random_state=4, stratify=labels)
    _, test_x, _, test_y = data
    print(f"{len(data[0])} digits to learn from, {len(test_x)} to be tested on")

    key = random.key(0)
    results = {each.name: train(each, data, epochs, key) for each in learners(key)}
    curves = {name: curve for name, (_, curve, _) in results.items()}
    params, _, readings = results["conv net"]
    pulls = np.asarray(jit(vmap(pull, in_axes=(None, 0, 0)))(params, test_x, test_y))
    draw(options.out, REQUIRED, curves, test_x, test_y, readings, pulls)

    for name, curve in curves.items():
        print(f"{name:<14} reads {curve[-1]:6.2%} of the test digits")
    print(f"Figure: {options.out}\n\n{suggestions()}", end="")
    return 0 if min(curve[-1] for curve in curves.values()) >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
