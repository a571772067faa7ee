"""scico: total-variation deconvolution by ADMM, and block arrays."""

import jax
import numpy as np
import scico.numpy as snp
from scico import functional, linop, loss
from scico.optimize.admm import ADMM, LinearSubproblemSolver

PACKAGES = (
    "scico",
    "imageio",
    "tifffile",
    "matplotlib",
    "svmbir",
    "ipython",
    "pyparsing",
    "contourpy",
    "cycler",
    "kiwisolver",
    "fonttools",
    "python-dateutil",
    "pillow",
    "packaging",
    "six",
    "jaxtyping",
    "wadler-lindig",
)
STEPS = 5


def setup():
    rng = np.random.default_rng(0)
    truth = snp.array((rng.uniform(size=(4, 4)) > 0.5).repeat(6, 0).repeat(6, 1).astype(np.float32))
    blur = linop.Convolve(h=snp.ones((3, 3)) / 9, input_shape=truth.shape)
    seen = blur @ truth + 0.01 * snp.array(rng.normal(size=blur.output_shape).astype(np.float32))
    gradient = linop.FiniteDifference(input_shape=truth.shape, append=0)
    solver = ADMM(
        f=loss.SquaredL2Loss(y=seen, A=blur),
        g_list=[0.02 * functional.L21Norm()],
        C_list=[gradient],
        rho_list=[0.1],
        x0=blur.adj(seen),
        maxiter=3,
        subproblem_solver=LinearSubproblemSolver(cg_kwargs={"tol": 1e-4, "maxiter": 10}),
    )

    def step(state):
        solver.step()
        blocks = snp.blockarray([solver.x, jax.numpy.ones(3)])
        return state, snp.mean((solver.x - truth) ** 2) + snp.sum(blocks[1])

    return step, None
