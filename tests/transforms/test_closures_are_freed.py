"""What a function captured goes when its user lets go of it, though its program is kept for the next like it."""

import gc
import weakref

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import io_callback

XS = jnp.arange(3.0)
USES = {
    "jit": lambda f: gradix.jit(f)(1.0),
    "jit of arguments that are static": lambda f: gradix.jit(
        lambda x, n: f(x) * n, static_argnums=1
    )(1.0, 2),
    "grad": lambda f: gradix.grad(f)(1.0),
    "grad of jit": lambda f: gradix.grad(gradix.jit(f))(1.0),
    "vmap": lambda f: gradix.vmap(f)(XS),
    "vmap of jit": lambda f: gradix.vmap(gradix.jit(f))(XS),
    "jvp": lambda f: gradix.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: gradix.linearize(f, 1.0)[1](1.0),
    "jacfwd": lambda f: gradix.jacfwd(f)(XS),
    "hessian": lambda f: gradix.hessian(lambda x: f(x).sum())(XS),
    "checkpoint": lambda f: gradix.grad(gradix.checkpoint(f))(1.0),
    "eval_shape": lambda f: gradix.eval_shape(f, 1.0),
    "make_jaxpr": lambda f: str(gradix.make_jaxpr(f)(1.0)),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, XS),
    "scan in grad": lambda f: gradix.grad(lambda x: lax.scan(lambda c, y: (f(c), y), x, XS)[0])(
        1.0
    ),
    "map": lambda f: lax.map(f, XS),
    "cond": lambda f: lax.cond(XS[0] > 1, f, lambda x: x, 1.0),
    "cond in jit": lambda f: gradix.jit(lambda x: lax.cond(x > 1, f, lambda x: x, x))(1.0),
    "while_loop": lambda f: lax.while_loop(lambda x: x < 9, f, 1.0),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
    "custom_jvp": lambda f: gradix.grad(_own_derivative(f))(1.0),
    "pure_callback": lambda f: gradix.jit(lambda x: gradix.pure_callback(f, x, x))(1.0),
    "io_callback": lambda f: gradix.jit(lambda x: io_callback(f, x, x))(1.0),
    "ordered io_callback": lambda f: gradix.jit(lambda x: io_callback(f, x, x, ordered=True))(1.0),
    "debug.callback": lambda f: gradix.jit(lambda x: gradix.debug.callback(f, x))(1.0),
    "debug.print": lambda f: gradix.jit(lambda x: gradix.debug.log("{}{}", x, Shown(f)))(1.0),
    "a callback that raises": lambda f: _raised(lambda x: gradix.pure_callback(_raising(f), x, x)),
    "a mapped callback": lambda f: gradix.jit(
        gradix.vmap(lambda x: gradix.pure_callback(f, x, x, vmap_method="sequential"))
    )(XS),
    "lower": lambda f: gradix.jit(f).lower(1.0).compile()(1.0),
}


def _own_derivative(f):
    g = gradix.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    return g


class Shown:
    """What a print shows, which is not an array."""

    def __init__(self, shown):
        self.shown = shown


def _raising(f):
    def raises(x):
        f(x)
        raise ValueError("no")

    return raises


def _raised(f):
    with pytest.raises(ValueError, match="no"):
        gradix.jit(f)(1.0)


class Model:
    pass


def used(use) -> weakref.ref:
    """A reference to what a function captured that was used so."""
    model = Model()
    use(lambda x: x * 2 + (model is not None))
    return weakref.ref(model)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_keeps_what_a_closure_holds(use):
    gone = used(use)
    gc.collect()
    assert gone() is None


class Wrapped:
    """A callable object that says to wrap another of its kind, without end."""

    __wrapped__ = property(lambda self: Wrapped())

    def __call__(self, c, x):
        return c * 2, x


def test_objects_that_wrap_others_without_end_are_traced_as_they_are():
    assert lax.scan(Wrapped(), 1.0, XS)[0] == 8
    assert gradix.jit(lambda c: lax.scan(Wrapped(), c, XS)[0])(1.0) == 8


def test_a_callback_that_holds_its_own_program_is_freed():
    class Learner:
        def __init__(self):
            self.step = gradix.jit(lambda x: gradix.pure_callback(self.read, x, x))

        def read(self, x):
            return x * 2

    learner = Learner()
    assert learner.step(jnp.float32(2.0)) == 4
    gone = weakref.ref(learner)
    del learner
    gc.collect()
    assert gone() is None
