"""The more sines a program has, the larger arrays must be for one more formula of vectors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp


def _formulas(function, count, size):
    def f(x):
        for _ in range(count):
            x = function(x) * 0.5
        return x

    return gradix.jit(f).lower(np.ones(size, "f4"))._module.facts.rewrites.get("sines_by_vectors", 0)


@pytest.mark.parametrize(
    "function, count, size, formulas",
    [
        (jnp.sin, 1, 1 << 12, 0),
        (jnp.sin, 1, 1 << 13, 1),
        (jnp.sin, 20, 1 << 13, 8),
        (jnp.cos, 20, 1 << 14, 16),
        (jnp.sin, 20, 1 << 16, 20),
        (jnp.tan, 20, 1 << 11, 20),  # XLA has no vectors of it
    ],
)
def test_small_sines_of_programs_with_many_stay_with_xla(function, count, size, formulas):
    assert _formulas(function, count, size) == formulas
