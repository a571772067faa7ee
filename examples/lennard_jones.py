"""Simulate a fluid of argon atoms from a formula for their energy, then find the atoms' parameters from forces alone.

The energy is written once, for a pair of atoms. `vmap` applies it to all pairs, `grad` makes forces of it, and `scan`
steps through time; all of it is one compiled program. If the forces are the exact slope of the energy, the total energy
stays constant; the figure shows how well it does. Then the reverse: from noisy forces alone, SciPy's minimizer finds
the size and binding energy of the atoms, by a gradient through the forces.

    python examples/lennard_jones.py [--out lennard_jones.png] [--quick]
"""

import argparse
import time
from typing import NamedTuple

import matplotlib
import numpy as np
import scipy.optimize

import gradix
import gradix.numpy as jnp
from gradix import grad, jit, lax, random, value_and_grad, vmap

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

CELLS = 4  # along each axis of the face-centred crystal that melts; each cell has 4 atoms
DENSITY = 0.8  # atoms in a cube as wide as an atom
TEMPERATURE = 1.2
STEP = 0.004  # about 8 femtoseconds
CUTOFF = 2.5  # in diameters of an atom
NOISE = 0.05  # as a share of the typical force

# --- Physics: an energy, and everything else by transformation ----------------------------------------------------


class Fluid(NamedTuple):
    """Positions in a periodic box, and velocities; masses, the atoms' diameter and their binding energy are 1."""

    x: gradix.Array
    v: gradix.Array


class Atom(NamedTuple):
    """The parameters of a Lennard-Jones atom: its binding energy, and the distance at which it starts to repel."""

    depth: gradix.Array
    size: gradix.Array


def pair_energy(squared, atom):
    """The energy of two atoms at this squared distance, smoothed so that it and its slope are 0 at the cutoff."""
    attraction = (atom.size**2 / squared) ** 3
    smooth = jnp.clip((CUTOFF**2 - squared) / CUTOFF**2, 0) ** 2
    return 4 * atom.depth * (attraction**2 - attraction) * smooth


def energy(x, atom, box):
    """The energy of all pairs; each atom meets the nearest of the other's periodic images."""

    def with_all(i, here):
        away = here - x
        away -= box * jnp.round(away / box)
        # At the cutoff the energy is 0, so this leaves out the pair of an atom with itself.
        squared = jnp.where(jnp.arange(len(x)) == i, CUTOFF**2, (away**2).sum(-1))
        return pair_energy(squared, atom).sum()

    return vmap(with_all)(jnp.arange(len(x)), x).sum() / 2


def forces(x, atom, box):
    """The forces on all atoms: minus the gradient of the energy."""
    return -grad(energy)(x, atom, box)


@jit(static_argnames="steps")
def simulate(fluid, atom, box, steps):
    """The fluid after `steps` steps of velocity Verlet, and the kinetic and potential energy after each step."""

    def step(state, _):
        fluid, force = state
        v = fluid.v + STEP / 2 * force
        x = (fluid.x + STEP * v) % box
        force = forces(x, atom, box)
        v = v + STEP / 2 * force
        return (Fluid(x, v), force), ((v**2).sum() / 2, energy(x, atom, box))

    (fluid, _), energies = lax.scan(step, (fluid, forces(fluid.x, atom, box)), None, length=steps)
    return fluid, energies


def crystal(key, cells):
    """Atoms on a face-centred cubic lattice with random velocities, and the width of their box."""
    n = 4 * cells**3
    box = (n / DENSITY) ** (1 / 3)
    corners = jnp.stack(jnp.meshgrid(*[jnp.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    faces = jnp.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    v = random.normal(key, (n, 3)) * np.sqrt(2 * TEMPERATURE)  # melting takes half of this energy
    return Fluid(((corners + faces).reshape(-1, 3) + 0.25) * box / cells, v - v.mean(0)), box


@jit
def neighbours(x, box):
    """The pair distribution g(r): the density of atoms at a distance r from an atom, over the mean density."""
    away = x[:, None] - x
    r = jnp.sqrt(((away - box * jnp.round(away / box)) ** 2).sum(-1))
    edges = jnp.linspace(0.5, box / 2, 80)
    counts, _ = jnp.histogram(jnp.where(r > 0, r, 0), edges)
    shells = 4 / 3 * jnp.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    return (edges[1:] + edges[:-1]) / 2, counts / (len(x) ** 2 / box**3 * shells)


# --- The reverse: parameters from forces --------------------------------------------------------------------------


def fit(snapshots, measured, box):
    """The atom whose forces are nearest to the measured ones, found by SciPy's L-BFGS with gradients of Gradix."""

    def misfit(logs):
        atom = Atom(*jnp.exp(logs))
        return ((vmap(lambda x: forces(x, atom, box))(snapshots) - measured) ** 2).sum() / (measured**2).sum()

    slope = jit(value_and_grad(misfit))
    path = []

    def judge(logs):
        value, gradient = slope(jnp.asarray(logs, "float32"))
        path.append((*np.exp(logs), float(value)))
        return float(value), np.asarray(gradient, "float64")

    found = scipy.optimize.minimize(judge, np.log([0.5, 0.9]), jac=True, method="L-BFGS-B")
    return Atom(*np.exp(found.x)), np.array(path)


def draw_figure(path, energies, distances, tried):
    """Draw the energies over time, the density of neighbours by distance, and the minimizer's path."""
    kinetic, potential = map(np.asarray, energies)
    times = STEP * np.arange(len(kinetic))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    for values, name, colour in ((kinetic, "kinetic", "#e0a030"), (potential, "potential", "#00798c"),
                                 (kinetic + potential, "total", "#22303c")):  # fmt: skip
        left.plot(times, values, color=colour, label=name)
    left.set(title="The total energy stays constant", xlabel="time", ylabel="energy")
    left.legend(frameon=False, loc=(0.66, 0.62))

    middle.plot(*map(np.asarray, distances), color="#00798c")
    middle.axhline(1, color="#8a97a3", lw=1, ls=":")
    middle.set(title="Shells of neighbours: a liquid", xlabel="distance, in diameters", ylabel="g(r)")

    right.plot(tried[:, 0], tried[:, 1], "o-", color="#6a4c93", ms=4, lw=1)
    right.plot(1, 1, "*", color="#d1495b", ms=16, label="the truth")
    right.set(title="The minimizer's path to the atom", xlabel="depth", ylabel="size")
    right.legend(frameon=False)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    """Melt a crystal, check that the energy is constant, and find the atoms again from noisy forces."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="lennard_jones.png")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    cells, steps = (2, 300) if options.quick else (CELLS, 2000)

    truth = Atom(jnp.float32(1), jnp.float32(1))
    fluid, box = crystal(random.key(0), cells)
    fluid, _ = simulate(fluid, truth, box, steps)  # compiles the program and melts the crystal
    start = time.perf_counter()
    fluid, energies = gradix.block_until_ready(simulate(fluid, truth, box, steps))
    took = time.perf_counter() - start
    kinetic, potential = energies
    total = kinetic + potential
    print(f"{len(fluid.x)} atoms, {steps} steps in {took:.2f} s: {steps / took:,.0f} steps a second")
    print(
        f"temperature {2 / 3 * kinetic.mean() / len(fluid.x):.3f}; the total energy stays within "
        f"{float(jnp.ptp(total) / jnp.ptp(kinetic)):.2%} of the range of the kinetic energy"
    )

    snapshots = []
    for _ in range(4):
        fluid, _ = simulate(fluid, truth, box, steps // 4)
        snapshots.append(fluid.x)
    snapshots = jnp.stack(snapshots)
    exact = vmap(lambda x: forces(x, truth, box))(snapshots)
    measured = exact + NOISE * exact.std() * random.normal(random.key(1), exact.shape)
    atom, tried = fit(snapshots, measured, box)
    print(
        f"from forces with {NOISE:.0%} noise: depth {atom.depth:.4f}, size {atom.size:.4f} (both are 1), "
        f"{len(tried)} evaluations"
    )

    draw_figure(options.out, energies, neighbours(fluid.x, box), tried)
    print(f"\nThe picture: {options.out}")
    print("Try next: STEP = 0.02: the energy drifts; TEMPERATURE = 0.3: the atoms keep the shells of a crystal")


if __name__ == "__main__":
    main()
