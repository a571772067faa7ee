"""Group by a key inside of a compiled function, and differentiate through it: offsets of sensors from shared events.

Many events are each measured by some sensors, which are wrong by an offset of their own. Nothing tells what an event
was, but its measurements should agree. So the loss groups the measurements by event with `jnp.unique`, takes each
group's mean, and sums the squared differences; its gradient finds the offsets. How many events are among the
measurements of a batch differs from batch to batch; one compiled program takes all of them.

    python examples/group_by.py [--out group_by.png]
"""

import argparse

import matplotlib
import numpy as np

import gradix.numpy as jnp
from gradix import jit, value_and_grad
from gradix.ops import segment_sum

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

SENSORS, BATCH, STEPS, RATE = 30, 512, 300, 8.0
NOISE = 0.1


def group_means(keys, values):
    """The distinct keys, the mean of the values of each, and for each value the number of its group."""
    groups, which = jnp.unique(keys, return_inverse=True)
    sums = segment_sum(values, which, num_segments=groups.shape[0])
    counts = segment_sum(jnp.ones_like(values), which, num_segments=groups.shape[0])
    return groups, sums / counts, which


def loss(offsets, keys, sensors, readings):
    """The mean squared difference of corrected readings from the mean of their event; and the number of events."""
    corrected = readings - offsets[sensors]
    groups, means, which = group_means(keys, corrected)
    return jnp.mean((corrected - means[which]) ** 2), jnp.asarray(groups.shape[0])


@jit
def update(offsets, *batch):
    """One step of gradient descent; also the loss, and the number of events of the batch."""
    (value, events), slope = value_and_grad(loss, has_aux=True)(offsets, *batch)
    return offsets - RATE * slope, value, events


def measurements(rng, offsets):
    """Keys of events, numbers of sensors and readings; events are measured two to eight times."""
    times = rng.integers(2, 9, size=BATCH)
    events = np.repeat(rng.integers(0, 2**31 - 1, size=BATCH), times)[:BATCH]
    true = np.repeat(rng.normal(scale=3.0, size=BATCH), times)[:BATCH]
    sensors = rng.integers(SENSORS, size=BATCH)
    order = rng.permutation(BATCH)
    readings = true + offsets[sensors] + rng.normal(scale=NOISE, size=BATCH)
    return events[order].astype(np.int32), sensors[order], readings[order].astype(np.float32)


def least_squares(batches):
    """The offsets that make the sum of all losses least, by the normal equations, in NumPy."""
    rows, right = [], []
    for keys, sensors, readings in batches:
        for key in np.unique(keys):
            mine = keys == key
            one = np.eye(SENSORS)[sensors[mine]]
            rows.append(one - one.mean(0))
            right.append(readings[mine] - readings[mine].mean())
    found, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)
    return found - found.mean()


def main():
    """Find the offsets, and compare them with the true ones and with those of least squares."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default="group_by.png", help="the file of the figure")
    given = options.parse_args()
    rng = np.random.default_rng(0)
    true = rng.normal(size=SENSORS)
    true -= true.mean()
    batches = [measurements(rng, true) for _ in range(8)]

    offsets, events, values = jnp.zeros(SENSORS), set(), []
    print(f"{SENSORS} sensors, batches of {BATCH} readings with a noise of {NOISE}")
    for step in range(STEPS):
        offsets, value, count = update(offsets, *batches[step % len(batches)])
        events.add(int(count))
        values.append(float(value))
        if step in (0, 9, 49, STEPS - 1):
            print(f"   step {step + 1:4}   {int(count)} events   loss {values[-1]:.4f}")
    found = np.asarray(offsets - offsets.mean())
    best = least_squares(batches)
    print(f"programs traced for {len(events)} numbers of events: {update.stats().traces}")
    print(
        f"largest error of an offset: {np.abs(found - true).max():.3f}, of least squares {np.abs(best - true).max():.3f}"
    )
    print(f"largest difference from least squares: {np.abs(found - best).max():.3f}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    left.semilogy(values)
    left.set(xlabel="step", ylabel="loss")
    right.plot(true, found, "o")
    right.set(xlabel="true offset", ylabel="found")
    figure.tight_layout()
    figure.savefig(given.out, dpi=120)
    print(f"wrote {given.out}")

    print("\nTry next, in this file:")
    print("   - NOISE = 1.0: the errors grow, those of least squares as well")
    print("   - in loss, jnp.abs in place of the square: a reading that is far off then matters less")
    print("   - group_means(keys, values) outside of jit: the same function, by NumPy's rules")


if __name__ == "__main__":
    main()
