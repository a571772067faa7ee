"""Random programs under random transformations: each computed in two ways, eagerly and compiled.

The settings are those of the profile (see conftest.py); the slow tests try thousands of programs.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import gradix
import gradix.numpy as jnp

from .programs import OPS, Program, programs
from .transforms import Transformations

OURS = Transformations(gradix)
WRAPPERS, DERIVATIVES, stacked = OURS.wrappers, OURS.derivatives, OURS.stacked

QUICK = settings(max_examples=120, derandomize=True)
SLOW = settings(max_examples=2000, suppress_health_check=list(HealthCheck), derandomize=False)


@st.composite
def wrappings(draw):
    """Up to four transformations, at most two of them derivatives."""
    names = draw(st.lists(st.sampled_from(sorted(WRAPPERS)), max_size=3))
    for name in draw(st.lists(st.sampled_from(sorted(DERIVATIVES)), max_size=2)):
        names.insert(draw(st.integers(0, len(names))), name)
    names = tuple(names[:4])
    return tuple([n for i, n in enumerate(names) if n != "custom_vjp" or not only_transposed(names[:i])])


def only_transposed(outer) -> bool:
    """Whether a reverse rule would be pushed forward by the transformations around it, which is an error."""
    derivatives = [n for n in outer if n in DERIVATIVES]
    return derivatives[-1:] == ["linearize"]


def assert_close(got, want, rtol=1e-7):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * (1 + np.abs(want).max(initial=0)))


def sensible(y):
    return np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e6


def check_stack(program: Program, names) -> None:
    with gradix.enable_x64(True):
        xs = program.inputs()
        want = stacked(names, 1, program)(*map(jnp.asarray, xs))
        if not sensible(want):
            return
        f = stacked(names, 0, program)
        assert_close(f(*xs), want)
        assert_close(gradix.jit(f)(*xs), want)


def check_derivatives(program: Program) -> None:
    with gradix.enable_x64(True):
        xs = program.inputs()
        ts = [np.cos(np.arange(x.size) + k).reshape(x.shape) for k, x in enumerate(xs)]
        y, t = gradix.jvp(program, xs, ts)
        if not (sensible(y) and sensible(t)):
            return
        if program.is_smooth:
            along = lambda eps: np.asarray(program(*[x + eps * t for x, t in zip(xs, ts)]))
            eps = 1e-3
            slope = (8 * (along(eps) - along(-eps)) - (along(2 * eps) - along(-2 * eps))) / (12 * eps)
            assert_close(t, slope, rtol=2e-6)
        ct = np.sin(np.arange(y.size) + 1.0).reshape(y.shape)
        value, pull = gradix.vjp(program, *xs)
        assert_close(value, y)
        back = pull(ct)
        assert_close(sum([np.vdot(c, t) for c, t in zip(back, ts)]), np.vdot(ct, t))
        for c, again in zip(back, gradix.jit(lambda *xs: gradix.vjp(program, *xs)[1](ct))(*xs)):
            assert_close(again, c)


def test_the_vocabulary_is_wide():
    assert len(OPS) >= 100 and len(WRAPPERS) + len(DERIVATIVES) >= 12


@QUICK
@given(programs(), wrappings())
def test_transformations(program, names):
    check_stack(program, names)


@QUICK
@given(programs())
def test_derivatives(program):
    check_derivatives(program)


@pytest.mark.slow
@SLOW
@given(programs(most=10), wrappings())
def test_many_transformations(program, names):
    check_stack(program, names)


@pytest.mark.slow
@SLOW
@given(programs(most=12))
def test_many_derivatives(program):
    check_derivatives(program)


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_operation(name):
    """Each operation by itself, so that a failure of a random program is one of composition."""
    op = OPS[name]
    shapes = next(
        s
        for s in ([(2, 3)], [(3,)], [(2, 2)], [(2, 3)] * 2, [(3,)] * 2, [(2, 3), (3,)])
        if len(s) == op.arity and op.fits(*s)
    )
    program = Program(tuple(shapes), ((name, tuple(range(op.arity))),))
    check_derivatives(program)
    check_stack(program, ("vmap",))
