"""Train a reader of handwritten digits for a few seconds, and write it to a file as a program for any number of images.

python examples/serving/export_model.py digits.gdx
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gradix
import gradix.numpy as jnp
from gradix import export, nn, random

STEPS, RATE = 400, 0.3


def scores(params, images):
    """Ten scores for each image of 64 pixels."""
    (w, b), (v, c) = params
    return nn.relu(images @ w + b) @ v + c


def read(params, images):
    """The digit on each image, and its probability."""
    chances = nn.softmax(scores(params, images))
    return {"digit": jnp.argmax(chances, axis=1), "chance": jnp.max(chances, axis=1)}


@gradix.jit
def step(params, images, labels):
    """The parameters after one step of gradient descent on the mean cross-entropy."""

    def loss(params):
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(scores(params, images)), labels[:, None], axis=1))

    return gradix.tree.map(lambda p, g: p - RATE * g, params, gradix.grad(loss)(params))


def train():
    """The trained parameters, and images and labels that were not used in training."""
    pixels, labels = load_digits(return_X_y=True)
    x, held, y, held_labels = train_test_split((pixels / 16).astype("f4"), labels.astype("i4"), random_state=0)
    keys = random.split(random.key(0), 2)
    params = [
        (random.normal(k, (m, n)) * (2 / m) ** 0.5, jnp.zeros(n))
        for k, m, n in zip(keys, (64, 128), (128, 10), strict=True)
    ]
    for _ in range(STEPS):
        params = step(params, x, y)
    return params, held, held_labels


def main(path):
    params, images, labels = train()
    (n,) = export.symbolic_shape("n", constraints=["n <= 1024"])
    program = export.export(gradix.jit(lambda images: read(params, images)))(
        gradix.ShapeDtypeStruct((n, 64), "float32")
    )
    Path(path).write_bytes(program.serialize())
    right = float(np.mean(np.asarray(program.call(images)["digit"]) == labels))
    print(f"{path}: {Path(path).stat().st_size} bytes, {right:.1%} of {len(labels)} unseen digits read right")
    print("Try next: python examples/serving/server.py", path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "digits.gdx")
