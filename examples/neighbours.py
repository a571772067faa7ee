"""Forces of atoms with a list of neighbours that has no capacity: it holds as many pairs as there are.

Atoms that are far apart do not feel each other, so a simulation lists the pairs that are near and sums over these. How
many there are is known only when the program runs. Elsewhere one guesses a capacity, and checks that it was enough;
here `jnp.nonzero` inside of a compiled function returns the pairs there are, and the gradient of their energy is the
force. Atoms in a box that shrinks have ever more neighbours; one program computes all of them.

    python examples/neighbours.py [--out neighbours.png] [--quick]
"""

import argparse
import time

import matplotlib
import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import jit, random, value_and_grad

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

REACH = 2.5  # in diameters of an atom; beyond it two atoms do not feel each other
ROUNDS, STEPS, STEP = 12, 10, 0.002


def pair_energy(squared):
    """The energy of two atoms at this squared distance, which is 0 from REACH on."""
    attraction = (1 / squared) ** 3
    smooth = jnp.clip((REACH**2 - squared) / REACH**2, 0) ** 2
    return 4 * (attraction**2 - attraction) * smooth


def between(x, i, j, width):
    """The squared distances of pairs of atoms, each with the nearest of the other's periodic images."""
    away = x[i] - x[j]
    away = away - width * jnp.round(away / width)
    return (away**2).sum(-1)


def neighbours(x, width):
    """The numbers of the atoms of each pair that is near, as two arrays of as many elements as there are such pairs."""
    n = x.shape[0]
    i, j = jnp.arange(n)[:, None], jnp.arange(n)[None, :]
    squared = between(x, i, j, width)
    return jnp.nonzero((squared < REACH**2) & (i < j))


def energy(x, width):
    """The energy of the pairs in the list."""
    return pair_energy(between(x, *neighbours(x, width), width)).sum()


@jit
def forces(x, width):
    """The energy, the forces, and the number of pairs."""
    value, slope = value_and_grad(energy)(x, width)
    return value, -slope, jnp.asarray(neighbours(x, width)[0].shape[0])


@jit
def relaxed(x, width):
    """The atoms after some steps along the forces, none of which is long."""

    def step(_, x):
        force = -gradix.grad(energy)(x, width)
        return (x + jnp.clip(STEP * force, -0.05, 0.05)) % width

    return gradix.lax.fori_loop(0, STEPS, step, x)


def by_all_pairs(x, width):
    """The energy and forces from all pairs, in double precision by NumPy."""
    away = x[:, None] - x[None, :]
    away -= width * np.round(away / width)
    squared = (away**2).sum(-1)
    np.fill_diagonal(squared, np.inf)
    near = squared < REACH**2
    s = np.where(near, squared, 1.0)
    a, smooth = s**-3.0, (1 - s / REACH**2) ** 2
    e = 4 * (a**2 - a)
    slope = 4 * (-6 * a**2 + 3 * a) / s * smooth - 2 * e * (1 - s / REACH**2) / REACH**2
    slope = np.where(near, slope, 0)
    return np.where(near, e * smooth, 0).sum() / 2, -2 * (slope[..., None] * away).sum(1)


def main():
    """Shrink the box, list the pairs, and compare the forces with those of all pairs."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default="neighbours.png", help="the file of the figure")
    options.add_argument("--quick", action="store_true", help="with fewer atoms")
    given = options.parse_args()
    side = 4 if given.quick else 7
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3) + 0.5
    count = len(grid)
    shake = random.uniform(random.key(0), (count, 3), minval=-0.15, maxval=0.15)

    print(f"{count} atoms, {count * (count - 1) // 2} pairs; the energy of an atom, and the pairs nearer than {REACH}:")
    rows, worst, taken = [], 0.0, []
    for width in np.linspace(1.7, 1.15, ROUNDS, dtype=np.float32) * side:
        x = relaxed((jnp.asarray(grid / side, jnp.float32) * width + shake) % width, width)
        start = time.perf_counter()
        value, force, pairs = gradix.block_until_ready(forces(x, width))
        taken.append(time.perf_counter() - start)
        exact, exact_force = by_all_pairs(np.asarray(x, np.float64), float(width))
        scale = np.abs(exact_force).max()
        worst = max(worst, float(np.abs(force - exact_force).max() / scale), abs(float(value) - exact) / abs(exact))
        rows.append((count / float(width) ** 3, int(pairs), float(value) / count))
        print(f"   density {rows[-1][0]:.2f}   {rows[-1][1]:6} pairs   energy {rows[-1][2]:8.4f}")
    print(f"forces and energies differ from those of all pairs by {worst:.1e} of the largest at most")
    print(f"programs traced for {ROUNDS} lists of different lengths: {forces.stats().traces}")
    print(f"a list and its forces take {1e3 * min(taken[1:]):.2f} ms")

    density, pairs, per_atom = zip(*rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    left.plot(density, pairs, "o-")
    left.set(xlabel="density", ylabel="pairs in the list")
    right.plot(density, per_atom, "o-")
    right.set(xlabel="density", ylabel="energy of an atom")
    figure.tight_layout()
    figure.savefig(given.out, dpi=120)
    print(f"wrote {given.out}")

    print("\nTry next, in this file:")
    print("   - REACH = 1.5: fewer pairs, and less energy")
    print("   - in neighbours, jnp.argwhere in place of jnp.nonzero: the pairs as the rows of one array")
    print("   - gradix.vmap(energy, (0, None))(boxes, width): many boxes, each with a list of its own length")


if __name__ == "__main__":
    main()
