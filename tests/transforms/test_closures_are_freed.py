"""What a function captured goes when its user lets go of it, though its program is kept for the next like it."""

import functools
import gc
import weakref

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import checkify, io_callback
from gradix.sharding import AxisType, PartitionSpec as P

XS = jnp.arange(3.0)
MESH = gradix.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
# a reduction cannot capture arrays
NO_ARRAYS = ("reduce",)
USES = {
    "jit": lambda f: gradix.jit(f)(1.0),
    "jit of arguments that are static": lambda f: gradix.jit(lambda x, n: f(x) * n, static_argnums=1)(1.0, 2),
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
    "scan in grad": lambda f: gradix.grad(lambda x: lax.scan(lambda c, y: (f(c), y), x, XS)[0])(1.0),
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
    "fori_loop of jit": lambda f: lax.fori_loop(0, 3, lambda i, x: gradix.jit(f)(x), 1.0),
    "cond of jit": lambda f: lax.cond(XS[0] > 1, gradix.jit(f), lambda x: x, 1.0),
    "switch of jit": lambda f: lax.switch(1, [gradix.jit(f)] * 2, 1.0),
    "while_loop of jit": lambda f: lax.while_loop(lambda x: x < 9, gradix.jit(f), 1.0),
    "map of jit": lambda f: lax.map(gradix.jit(f), XS),
    "gradient of cond of jit": lambda f: gradix.grad(lambda x: lax.cond(x > 1, gradix.jit(f), lambda x: x, x))(1.0),
    "associative_scan": lambda f: lax.associative_scan(lambda x, y: f(x) + y, XS),
    "partial in scan": lambda f: lax.scan(functools.partial(lambda f, c, x: (f(c), x), f), 1.0, XS),
    "method in scan": lambda f: lax.scan(Step(f).call, 1.0, XS),
    "object in scan": lambda f: lax.scan(Step(f), 1.0, XS),
    "method": lambda f: gradix.jit(gradix.grad(Step(f).first))(1.0),
    "reduce": lambda f: lax.reduce(XS, 0.0, lambda x, y: x + f(y), (0,)),
    "custom_vjp": lambda f: gradix.jit(gradix.grad(_own_pullback(f)))(1.0),
    "custom_vmap": lambda f: gradix.jit(gradix.vmap(_own_batching(f)))(XS),
    "composite": lambda f: gradix.jit(lambda x: lax.composite(f, "my.op")(x))(1.0),
    "checkify": lambda f: gradix.jit(checkify.checkify(f))(1.0),
    "specialize": lambda f: gradix.jit(lambda x: f(x) if x > 0 else x, specialize=True)(1.0),
    "symbolic": lambda f: gradix.jit(lambda x: f(x), symbolic="n")(XS),
    "export": lambda f: gradix.export.export(gradix.jit(f))(1.0).call(1.0),
    "pmap": lambda f: gradix.pmap(f)(XS[:1]),
    "shard_map": lambda f: gradix.shard_map(f, mesh=MESH, in_specs=P("i"), out_specs=P("i"))(XS),
    "an error": lambda f: _failed(lambda x: f(x) + jnp.ones(3) @ jnp.ones(4)),
    "a tracer that leaked": lambda f: _leaked(f),
    "lower": lambda f: gradix.jit(f).lower(1.0).compile()(1.0),
}


def _own_pullback(f):
    g = gradix.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (f(x) * ct,))
    return g


def _own_batching(f):
    g = gradix.custom_batching.custom_vmap(f)
    g.def_vmap(lambda size, batched, x: (f(x), batched[0]))
    return g


def _failed(f):
    with pytest.raises(TypeError):
        gradix.jit(f)(1.0)


def _leaked(f):
    leaked = []
    gradix.jit(lambda x: leaked.append(f(x)))(1.0)
    with pytest.raises(gradix.errors.UnexpectedTracerError):
        leaked[0] + 1


class Step:
    def __init__(self, f):
        self.f = f

    def call(self, c, x):
        return self.f(c), x

    __call__ = call

    def first(self, c):
        return self.call(c, c)[0]


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


def used_array(use) -> weakref.ref:
    """A reference to an array that a jitted function captured that was used so."""
    array = jnp.arange(300.0)
    use(gradix.jit(lambda x: x * 2 + array[1]))
    return weakref.ref(array)


COUNTS = [3, pytest.param(500, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_keeps_what_a_closure_holds(use, count):
    gone = [used(use) for _ in range(count)]
    gc.collect()
    assert not any(ref() for ref in gone)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "use", [u for n, u in USES.items() if n not in NO_ARRAYS], ids=[n for n in USES if n not in NO_ARRAYS]
)
def test_nothing_keeps_an_array_that_a_jitted_function_holds(use, count):
    gone = [used_array(use) for _ in range(count)]
    gc.collect()
    assert sum(ref() is not None for ref in gone) == 0


class Reader:
    @functools.partial(gradix.jit, static_argnums=0)
    def read(self, x):
        return x * 2


def test_clear_caches_frees_static_arguments_and_loops_with_callbacks():
    def loop():
        model = Model()
        read = lambda y: y * (model is not None)  # noqa: E731
        lax.scan(lambda c, x: (c, gradix.pure_callback(read, x, x)), 0.0, XS)
        return weakref.ref(model)

    reader = Reader()
    reader.read(1.0)
    gone = [weakref.ref(reader), *[loop() for _ in range(3)]]
    del reader
    gradix.clear_caches()
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def test_a_call_kept_for_replays_does_not_keep_its_arrays():
    gone = []
    for _ in range(20):
        x = jnp.arange(9.0) + 1
        gone.append(weakref.ref(x))
        jnp.median(x), jnp.std(x), jnp.linalg.norm(x), jnp.stack([x, x])
        del x
    gc.collect()
    assert not any(ref() is not None for ref in gone)


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
