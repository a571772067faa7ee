"""Cases where Gradix is known to differ from JAX, by the start of their id, and why.

A listed case that agrees fails the run: take its line out.
"""

import os

from tests.parity.outcome import difference

DIFFERENT = {
    "lax_ops": {
        "lax.cumlogsumexp(i32": "JAX fails by accident, converting an infinity; a TypeError names the dtype",
    },
    "autodiff": {"where nan": "what is not selected has no derivative here, and NaN is none"},
    "corners": {
        "slopes of float_power at 0.0, 0.0": "0 · 0 ** -1 is NaN in JAX's float_power and 0 in its power, as here",
        "slopes of float_power at nan, 0.0": "as above: a power of 0 is constant",
        "slopes of copysign at nan": "the derivative at NaN is NaN; JAX takes NaN for a negative number",
    },
    "inspect": {"complex64 x.argmax()": "JAX refuses complex numbers only once argmax runs, not in eval_shape"},
}


def known(group, case_id):
    """Why a case differs; None when it must agree, as all do with PARITY_TARGET=jax."""
    if os.environ.get("PARITY_TARGET", "gradix") != "gradix":
        return None
    return next((why for start, why in DIFFERENT.get(group, {}).items() if case_id.startswith(start)), None)


def failure(group, case, got, want):
    """What is wrong with the outcome of a case, as the lines of a report; None when nothing is."""
    reason, why = difference(got, want, case), known(group, case.id)
    if why is not None:
        reason = None if reason else f"agrees, though listed in tests/parity/differences.py: {why}"
    return f"{case.id}\n    {reason}" if reason else None
