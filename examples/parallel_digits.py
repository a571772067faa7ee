"""Train one network on eight devices in four ways, each with the same losses as on one device.

The network reads handwritten digits. It has eight layers, whose weights are one array of shape (layers, inputs,
outputs). The four ways differ in how this array and the images are divided over the devices of a mesh:

    data       each device has all weights, and an eighth of the images
    tensor     each device has an eighth of every layer's outputs, and all images
    sharded    weights and images are both divided; a layer's weights are gathered when it is computed (FSDP)
    pipeline   each device has one layer; images pass from device to device in small groups

    python examples/parallel_digits.py [--out shardings.png] [--steps 60]
    python -m gradix.launch -n 4 -d 2 examples/parallel_digits.py       # the same, in four processes
"""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random, value_and_grad
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

LAYERS = 8
WIDTH = 64
BATCH = 512
GROUPS = 8
RATE = 0.2

# --- The network ---------------------------------------------------------------------------------------------------


def start(key):
    """Weights of shape (layers, inputs, outputs), and biases."""
    return {"w": random.normal(key, (LAYERS, WIDTH, WIDTH)) / WIDTH, "b": jnp.zeros((LAYERS, WIDTH))}


def layer(x, params):
    """One layer, which adds its result to its input."""
    return x + jnp.tanh(x @ params["w"] + params["b"])


def network(params, images):
    """The layers one after the other."""
    return lax.scan(lambda x, p: (layer(x, p), None), images, params)[0]


def loss(net, params, images, labels):
    """Mean cross-entropy; the first ten outputs are the scores of the digits."""
    scores = nn.log_softmax(net(params, images)[:, :10])
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def step(net, params, images, labels):
    """One step of gradient descent; returns the new parameters and the loss before it."""
    value, slope = value_and_grad(partial(loss, net))(params, images, labels)
    return gradix.tree.map(lambda p, g: p - RATE * g, params, slope), value


# --- Four ways to divide it ------------------------------------------------------------------------------------------


def pipeline(mesh):
    """The network with a stage on each device; in each turn a group of images moves to the next device."""
    stages = mesh.size
    ring = [(i, (i + 1) % stages) for i in range(stages)]

    def stage(params, images):
        here = lax.axis_index("d")
        groups = images.reshape(GROUPS, -1, WIDTH)

        def turn(arriving, t):
            x = jnp.where(here == 0, groups[jnp.minimum(t, GROUPS - 1)], arriving)
            y = network(params, x)
            return lax.ppermute(y, "d", ring), y

        _, done = lax.scan(turn, jnp.zeros_like(groups[0]), jnp.arange(GROUPS + stages - 1))
        last = jnp.where(here == stages - 1, done[stages - 1 :], 0)
        return lax.psum(last, "d").reshape(images.shape)

    return gradix.shard_map(stage, mesh=mesh, in_specs=(P("d"), P()), out_specs=P())


def ways(mesh):
    """For each way by its name: the network to call, and the specs of weights, biases and images."""
    return {
        "data": (network, P(), P(), P("d")),
        "tensor": (network, P(None, None, "d"), P(None, "d"), P()),
        "sharded": (network, P(None, "d"), P(None, "d"), P("d")),
        "pipeline": (pipeline(mesh), P("d"), P("d"), P()),
    }


def trained(fitted, params, images, labels, steps):
    """Train for some steps; return the parameters and the loss before each step."""
    losses = []
    for i in range(steps):
        at = slice(BATCH * (i % 3), BATCH * (i % 3) + BATCH)
        params, value = fitted(params, images[at], labels[at])
        losses.append(float(value))
    return params, np.array(losses)


def train(mesh, way, params, images, labels, steps):
    """Train in one of the four ways; return the parameters and losses."""
    net, w, b, x = way
    places = {"w": NamedSharding(mesh, w), "b": NamedSharding(mesh, b)}
    batch = NamedSharding(mesh, x)
    fitted = gradix.jit(
        partial(step, net), in_shardings=(places, batch, batch), out_shardings=(places, NamedSharding(mesh, P()))
    )
    return trained(fitted, gradix.device_put(params, places), images, labels, steps)


# --- The report ------------------------------------------------------------------------------------------------------


def draw(mesh, losses, alone, path):
    """Draw which device holds which part of the weights and images in each way, and the losses of all ways."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(3, 4, figsize=(11, 8), height_ratios=[1, 1, 0.9], layout="constrained")
    number = {d: i for i, d in enumerate(mesh.devices.flat)}
    for column, (name, (_, w, _, x)) in enumerate(ways(mesh).items()):
        for row, (title, shape, spec, rows, columns) in enumerate(
            [("weights of a layer", (LAYERS, WIDTH, WIDTH), w, 1, 2), ("images", (BATCH, WIDTH), x, 0, 1)]
        ):
            ax = axes[row, column]
            if name == "pipeline" and row == 0:
                title, rows, columns = "weights, layer by layer", 0, 2
            held = holders(NamedSharding(mesh, spec), shape, rows, columns, number)
            paint(ax, held, len(number))
            ax.set_title(f"{name}\n{title}" if row == 0 else title, fontsize=10)
    for ax in axes[2]:
        ax.remove()
    ax = fig.add_subplot(axes[0, 0].get_gridspec()[2, :])
    ax.plot(alone, color="0.75", linewidth=7, label="one device")
    for (name, values), dash in zip(losses.items(), ["-", "--", "-.", ":"], strict=True):
        ax.plot(values, dash, linewidth=1.8, label=name)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend(ncols=5, fontsize=9, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=110)


def holders(sharding, shape, rows, columns, number):
    """The parts as boxes (top, left, height, width), and the numbers of the devices that hold each of them."""
    boxes = {}
    for device, index in sharding.devices_indices_map(shape).items():
        box = []
        for axis in (rows, columns):
            first, stop, _ = index[axis].indices(shape[axis])
            box.append((first / shape[axis], (stop - first) / shape[axis]))
        (top, height), (left, width) = box
        boxes.setdefault((top, left, height, width), []).append(number[device])
    return boxes


def paint(ax, boxes, count):
    """Draw the boxes, coloured by device; a box that all devices hold is grey."""
    import matplotlib.pyplot as plt

    for (top, left, height, width), held in boxes.items():
        color = "0.88" if len(held) == count > 1 else plt.cm.Set3(held[0] % 12)
        ax.add_patch(
            plt.Rectangle((left, 1 - top - height), width, height, facecolor=color, edgecolor="white", linewidth=2)
        )
        text = "all devices" if len(held) == count > 1 else ", ".join(map(str, held))
        ax.text(left + width / 2, 1 - top - height / 2, text, ha="center", va="center", fontsize=10)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect=0.8)
    for side in ax.spines.values():
        side.set_visible(False)


def main():
    """Train in all ways, compare the losses, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="also draw how arrays are divided")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    if "GRADIX_NUM_PROCESSES" in os.environ:
        gradix.distributed.initialize()
    else:
        gradix.config.update("jax_num_cpu_devices", LAYERS)
    digits = load_digits()
    images, labels = ((digits.data / 16).astype(np.float32)[: 3 * BATCH], digits.target.astype(np.int32)[: 3 * BATCH])
    params = gradix.device_get(start(random.key(0)))
    _, alone = trained(gradix.jit(partial(step, network)), params, images, labels, options.steps)

    mesh = Mesh(np.array(gradix.devices()), ("d",))
    speaks = gradix.process_index() == 0
    if speaks:
        print(f"{mesh.size} devices in {gradix.process_count()} process{'es' * (gradix.process_count() > 1)}")
        print(f"{'one device':<12} loss {alone[0]:.4f} -> {alone[-1]:.4f}")
    losses = {}
    for name, way in ways(mesh).items():
        _, losses[name] = train(mesh, way, params, images, labels, options.steps)
        apart = np.abs(losses[name] / alone - 1).max()
        if speaks:
            print(
                f"{name:<12} loss {losses[name][0]:.4f} -> {losses[name][-1]:.4f}   differs from one device's "
                f"by at most {apart:.1e}"
            )
        if apart > 1e-3:
            sys.exit(f"{name} does not give one device's losses")
    if options.out and speaks:
        draw(mesh, losses, alone, options.out)
        print(f"picture: {options.out}")
    if speaks:
        print(
            "Try next: change GROUPS, or add a way of your own to `ways`, such as data and tensor together on a "
            "mesh of 4 by 2."
        )


if __name__ == "__main__":
    main()
