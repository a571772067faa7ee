"""Hand-made programs for the emitter and the executor."""

import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from gradix._core.primitive import Primitive
from gradix._runtime import xla
from gradix._stablehlo.module import lower_jaxpr


def aval_of(x, weak=False):
    x = np.asarray(x)
    return make_aval(x.shape, x.dtype, weak)


class Written(Primitive):
    """A primitive whose lowering is the function given."""

    multiple_results = True

    def __init__(self, fn):
        super().__init__("written")
        self.fn = fn

    def lower(self, em, outs, *values):
        return self.fn(em, outs, *values)


def program_of(fn, in_avals, out_avals, consts=()):
    """A one-equation program that `fn(em, outs, *values)` spells."""
    constvars, invars = [Var(aval_of(c)) for c in consts], [Var(a) for a in in_avals]
    outvars = [Var(a) for a in out_avals]
    eqn = JaxprEqn(Written(fn), [*constvars, *invars], outvars, {})
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, [eqn]), list(consts))


def compile_module(m):
    return xla.compile(m.text, m.in_avals, m.out_avals, m.host_callbacks)


@pytest.fixture
def spell():
    """Lower, compile and run what a Python function writes with the emitter; gives NumPy results."""

    def run(fn, args, out_avals, **options):
        args = [np.asarray(a) for a in args]
        m = lower_jaxpr(program_of(fn, [aval_of(a) for a in args], out_avals), "test", **options)
        buffers = [xla.put(a, aval_of(a)) for a in args]
        return [xla.get(b) for b in compile_module(m)(buffers)]

    return run


@pytest.fixture
def lower():
    def run(fn, in_avals, out_avals, consts=(), **options):
        return lower_jaxpr(program_of(fn, in_avals, out_avals, consts), "test", **options)

    return run


@pytest.fixture
def compiled():
    return compile_module


@pytest.fixture
def has_flag():
    """Whether this XLA takes a debug option."""

    def taken(name, value):
        try:
            xla.compile(
                "module @m { func.func public @main() { return } }",
                [],
                [],
                options=xla.options(compiler_options={name: value}),
            )
        except xla.RuntimeFailure as error:
            assert "No such compile option" in str(error)
            return False
        return True

    return taken
