"""Interpreters as libraries write them: over jaxprs, over traces of their own, over containers; and what `extend` has for them."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, lax
from gradix.extend import backend, core as jex, linear_util as lu
from gradix.interpreters import batching

# -- over jaxprs: inverses, and where a value comes from -------------------------------------------------------------

INVERSES = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.neg_p: jnp.negative}


def inverse(f):
    def wrapped(*args):
        closed = gradix.make_jaxpr(f)(*args)
        return invert(closed.jaxpr, closed.consts, *args)

    return wrapped


def invert(jaxpr, consts, *args):
    env = dict(zip(jaxpr.outvars, args)) | dict(zip(jaxpr.constvars, consts))
    for eqn in reversed(jaxpr.eqns):
        known = [env[v] for v in eqn.outvars]
        with eqn.ctx.manager:
            if "jaxpr" in eqn.params:
                inner = eqn.params["jaxpr"]
                env.update(zip(eqn.invars, invert(inner.jaxpr, inner.consts, *known)))
            else:
                env[eqn.invars[0]] = INVERSES[eqn.primitive](*known)
    return [env[v] for v in jaxpr.invars]


def test_a_program_is_run_backwards():
    f = gradix.jit(lambda x: -jnp.exp(jnp.tanh(x)))
    back = inverse(f)
    assert back(f(0.5))[0] == pytest.approx(0.5, rel=1e-5)
    slope = gradix.jit(gradix.vmap(gradix.grad(lambda y: back(y)[0])))(jnp.array([-1.2, -1.5]))
    np.testing.assert_allclose(slope, [1 / gradix.grad(f)(back(y)[0]) for y in (-1.2, -1.5)], rtol=1e-5)


# -- over a trace of one's own: values that are no arrays ------------------------------------------------------------


class Zeros:
    """A matrix of zeros that holds none."""

    def __init__(self, shape, dtype):
        self.type = core.ShapedArray(shape, np.dtype(dtype))


class ValueTracer(core.Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    @property
    def aval(self):
        return self.value.type if isinstance(self.value, Zeros) else gradix.typeof(self.value)


class ValueTrace(core.Trace):
    def __init__(self, parent, tag):
        super().__init__()
        self.parent, self.tag = parent, tag

    def unwrap(self, x):
        return x.value if isinstance(x, ValueTracer) and x._trace.tag is self.tag else x

    def process_primitive(self, primitive, tracers, params):
        values = [self.unwrap(t) for t in tracers]
        with jex.set_current_trace(self.parent):
            out = RULES.get(primitive, functools.partial(by_arrays, primitive))(*values, **params)
        return gradix.tree.map(lambda v: ValueTracer(self, v), out, is_leaf=lambda v: isinstance(v, Zeros))


def by_arrays(primitive, *values, **params):
    return primitive.bind(
        *[jnp.zeros(v.type.shape, v.type.dtype) if isinstance(v, Zeros) else v for v in values], **params
    )


def mul(x, y):
    kept = next((v for v in (x, y) if isinstance(v, Zeros)), None)
    return kept if kept is not None else lax.mul_p.bind(x, y)


RULES = {lax.mul_p: mul}


def with_zeros(f):
    @functools.wraps(f)
    def wrapped(*args):
        leaves, tree = gradix.tree.flatten(args, is_leaf=lambda v: isinstance(v, Zeros))
        leaves = [v if isinstance(v, Zeros) else jnp.asarray(v) for v in leaves]
        with jex.take_current_trace() as parent:
            trace = ValueTrace(parent, jex.TraceTag())
            with jex.set_current_trace(trace):
                out = f(*tree.unflatten([ValueTracer(trace, v) for v in leaves]))
                return gradix.tree.map(trace.unwrap, out)

    return wrapped


def program(z, x):
    y = gradix.nn.relu(x) * z  # a custom derivative, and a product that stays no array
    total = lax.scan(lambda c, _: (c + x, c.sum()), x, None, length=3)[0]
    return y, lax.mul(x, y), total + gradix.jit(jnp.sin)(x)


@pytest.mark.x32
def test_a_trace_of_ones_own_keeps_what_is_no_array():
    z, x = Zeros((3,), "float32"), jnp.array([-1.0, 0.5, 2.0])
    y, product, total = with_zeros(program)(z, x)
    assert isinstance(y, Zeros) and isinstance(product, Zeros)
    np.testing.assert_allclose(total, 4 * x + jnp.sin(x), rtol=1e-6)


ONE, MANY = jnp.float32(0.7), jnp.array([0.7, 1.4], "float32")


@pytest.mark.parametrize(
    "around, value",
    [
        (gradix.jit, ONE),
        (gradix.grad, ONE),
        (gradix.vmap, MANY),
        (lambda g: gradix.jit(gradix.vmap(gradix.grad(g))), MANY),
        (lambda g: gradix.grad(gradix.checkpoint(g)), ONE),
        (lambda g: lambda x: lax.map(g, x), MANY),
        (with_zeros, ONE),
    ],
    ids=["jit", "grad", "vmap", "all", "checkpoint", "map", "itself"],
)
def test_it_lies_within_transformations(around, value):
    def f(x):
        return jnp.sum(with_zeros(program)(Zeros((), "float32"), x)[2])

    def plain(x):
        return jnp.sum(4 * x + jnp.sin(x))

    np.testing.assert_allclose(around(f)(value), around(plain)(value), rtol=1e-5)


# -- over containers -------------------------------------------------------------------------------------------------


class Table:
    """Columns, by name: no pytree."""

    def __init__(self, **columns):
        self.columns = columns


class Rows:
    def __init__(self, axis=0):
        self.axis = axis

    def __repr__(self):
        return f"Rows({self.axis})"


def one_row(cont, index, table, spec):
    return Table(number=index(), **{k: cont(v, spec.axis) for k, v in table.columns.items() if k != "number"})


def all_rows(cont, size, row, spec):
    return Table(**{k: cont(size, v, spec.axis) for k, v in row.columns.items()})


@pytest.fixture
def tables():
    batching.register_vmappable(Table, Rows, int, one_row, all_rows, None)
    yield
    batching.unregister_vmappable(Table)


def test_containers_are_mapped(tables):
    def f(row, scale):
        c = row.columns
        return Table(s=jnp.sin(c["a"]) * scale, n=c["number"]), c["b"].sum()

    table = Table(a=jnp.arange(3.0), b=jnp.ones((3, 2)))
    for g in (gradix.vmap(f, (Rows(), None), (Rows(), 0)), gradix.vmap(f, (Rows(), None), (Rows(), 0), axis_size=3)):
        out, sums = g(table, 2.0)
        assert type(out) is Table and (out.columns["n"] == jnp.arange(3)).all() and (sums == 2).all()
        np.testing.assert_allclose(out.columns["s"], 2 * np.sin(np.arange(3.0)), rtol=1e-6)
    turned = gradix.vmap(lambda row: Table(b=row.columns["b"]), Rows(), Rows(1))(Table(b=jnp.ones((3, 2))))
    assert turned.columns["b"].shape == (2, 3)
    shared = gradix.vmap(lambda row, x: row.columns["a"].sum() + x, (None, 0))(table, jnp.arange(2.0))
    assert shared.tolist() == [3.0, 4.0]
    slope = gradix.grad(
        lambda a: gradix.vmap(f, (Rows(), None), (Rows(), 0))(Table(a=a, b=a[:, None]), 2.0)[0].columns["s"].sum()
    )
    np.testing.assert_allclose(slope(jnp.arange(3.0)), 2 * np.cos(np.arange(3.0)), rtol=1e-6)


class Line:
    """An array with one name for each axis, which its class checks."""

    def __init__(self, names, data):
        assert len(names) == data.ndim
        self.names, self.data = names, data


@pytest.mark.parametrize("jit", [False, True])
def test_rules_of_containers_compute_with_the_arrays_of_all_examples(jit):
    def one(cont, _, many, axis):
        names = many.names[:axis] + many.names[axis + 1 :]
        return Line(names, cont(many.data, axis))

    def many(cont, size, one, axis):
        return Line((*one.names[:axis], "batch", *one.names[axis:]), cont(size, one.data + 1, axis))

    def mapped():
        lines = Line(("batch", "x"), jnp.arange(6.0).reshape(3, 2))
        twice = gradix.vmap(
            lambda line: (Line(line.names, line.data * 2), line.data.sum()), out_axes=(1, 0), axis_size=3
        )
        parts = gradix.vmap(lambda line: line, axis_size=3)(lines)
        line, sums = twice(lines)
        assert line.names == ("x", "batch") and parts.names == ("batch", "x")
        return line.data, sums, parts.data

    batching.register_vmappable(Line, int, int, one, many, None)
    try:
        doubled, sums, parts = (gradix.jit(mapped) if jit else mapped)()
    finally:
        batching.unregister_vmappable(Line)
    np.testing.assert_array_equal(doubled, [[1, 5, 9], [3, 7, 11]])
    np.testing.assert_array_equal(sums, [1, 5, 9])
    np.testing.assert_array_equal(parts, [[1, 2], [3, 4], [5, 6]])


def test_wrong_axes_of_containers_are_told(tables):
    with pytest.raises(ValueError, match="examples that differ, of type float32"):
        batching.unregister_vmappable(Table)
        batching.register_vmappable(
            Table, Rows, int, one_row, lambda cont, n, t, _: cont(n, t.columns["a"], None), None
        )
        gradix.vmap(lambda t: t, Rows(), Rows())(Table(a=jnp.arange(3.0)))
    batching.unregister_vmappable(Table)
    batching.register_vmappable(Table, Rows, int, one_row, all_rows, None)
    table = Table(a=jnp.arange(3.0))
    with pytest.raises(ValueError, match="in_axes has 0 for a Table, which is mapped by an instance of Rows"):
        gradix.vmap(lambda t: t.columns["a"])(table)
    with pytest.raises(ValueError, match=r"out_axes has Rows\(0\) for a VmapTracer, which is mapped by the number"):
        gradix.vmap(lambda t: t.columns["a"], Rows(), Rows())(table)
    with pytest.raises(ValueError, match="registered for vmap already"):
        batching.register_vmappable(Table, Rows, int, one_row, all_rows, None)
    batching.unregister_vmappable(Table)
    try:
        with pytest.raises(TypeError, match="Rows"):
            gradix.vmap(lambda t: t, Rows())
    finally:
        batching.register_vmappable(Table, Rows, int, one_row, all_rows, None)


# -- the rest of extend ----------------------------------------------------------------------------------------------


def test_calls_are_kept_by_function():
    met = []
    traced = lu.cache(lambda f, *args: met.append(args) or f.call_wrapped(*args))

    def double(x):
        return 2 * x

    assert [traced(lu.wrap_init(double), n) for n in (1, 2, 1)] == [2, 4, 2] and met == [(1,), (2,)]
    assert (
        traced(lu.wrap_init(double), [1]) == [1, 1]
        and traced(lu.wrap_init(double, {}), [1]) == [1, 1]
        and len(met) == 4
    )
    traced.cache_clear()
    traced(lu.wrap_init(double), 1)
    assert len(met) == 5
    assert jex.call_impl(lu.wrap_init(double), 4) == 8 and isinstance(jex.primitives.call_p, jex.CallPrimitive)
    assert isinstance(lax.create_token(), jex.Token)


def test_a_cached_function_whose_call_fails_is_called_once():
    calls = []

    def fails(fun, *args):
        calls.append(args)
        raise TypeError("no")

    with pytest.raises(TypeError, match="no"):
        lu.cache(fails)(lu.wrap_init(lambda x: x), 1)
    assert calls == [(1,)]
    assert lu.cache(lambda f, x: f.call_wrapped(x))(lu.wrap_init(len), [1, 2]) == 2  # a list has no hash


def test_options_to_compile_with():
    options = backend.get_compile_options(1, 1, env_options_overrides={"xla_cpu_enable_fast_math": False})
    assert (options.num_replicas, options.num_partitions) == (1, 1)
    with pytest.raises(ValueError, match="devices, got 3"):
        backend.get_compile_options(1, 2, [0, 1, 2])
    gradix.devices()
    with pytest.raises(RuntimeError, match="after a client had been started"):
        backend.register_backend_factory("other", lambda: None)


def test_effects_stand_on_equations():
    def f(x):
        gradix.debug.print("{}", x)
        y = gradix.experimental.io_callback(lambda v: v, x, x, ordered=True)
        return lax.fori_loop(0, 2, lambda i, c: (gradix.debug.callback(print, c), c)[1], y)

    closed = gradix.make_jaxpr(f)(1.0)
    found = {e.primitive.name: e.effects for e in closed.eqns}
    assert all(found[name] for name in ("debug_callback", "io_callback"))
    assert found["debug_callback"] <= next(e for name, e in found.items() if name in ("scan", "while"))
    assert closed.effects == frozenset().union(*found.values()) and jex.no_effects <= closed.effects
    assert gradix.make_jaxpr(jnp.sin)(1.0).effects == jex.no_effects
