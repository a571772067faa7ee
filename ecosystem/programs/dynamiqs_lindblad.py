"""dynamiqs: a driven, damped cavity by the master equation, its Hamiltonian made anew at each step."""

import dynamiqs as dq
import jax.numpy as jnp

PACKAGES = (
    "dynamiqs",
    "diffrax",
    "optimistix",
    "lineax",
    "equinox",
    "jaxtyping",
    "wadler-lindig",
    "qutip",
    "matplotlib",
    "cmap",
    "tqdm",
    "ipython",
    "traitlets",
    "stack_data",
    "executing",
    "asttokens",
    "pure_eval",
    "prompt_toolkit",
    "wcwidth",
    "jedi",
    "parso",
    "matplotlib-inline",
    "pexpect",
    "ptyprocess",
    "pygments",
)
STEPS = 8


def setup():
    dq.set_progress_meter(False)
    n = 12
    a = dq.destroy(n)
    times = jnp.linspace(0, 1.0, 11)

    def step(amplitude):
        drive = dq.modulated(lambda t: amplitude * jnp.cos(t), a + a.dag())
        hamiltonian = dq.constant(0.2 * a.dag() @ a) + drive
        found = dq.mesolve(hamiltonian, [0.5 * a], dq.fock(n, 1), times, exp_ops=[a.dag() @ a])
        photons = found.expects[0, -1].real
        return amplitude + 0.1 * (3.0 - photons), photons

    return step, jnp.float32(0.5)
