"""Interpreters that run unchanged on JAX: inverses with log-determinants, harvests, and values with units."""

from functools import partial, wraps
from importlib import import_module

import numpy as np
import pytest

import gradix
from gradix.extend import core as our_extend
from gradix.interpreters import ad as our_ad, batching as our_batching, mlir as our_mlir

pytestmark = pytest.mark.x32


def is_literal(extend, v):
    return isinstance(v, extend.Literal)


# -- inverses, and how they change volumes ---------------------------------------------------------------------------


def inverses(lib, extend):
    """`inverse(f)(y) -> (x, log |dx/dy|)` of an elementwise function of one argument, which may use constants."""
    np_, lax = lib.numpy, lib.lax

    unary = {
        lax.exp_p: (np_.log, lambda x: x),
        lax.log_p: (np_.exp, lambda x: -np_.log(x)),
        lax.tanh_p: (np_.arctanh, lambda x: np_.log1p(-(np_.tanh(x) ** 2))),
        lax.logistic_p: (lambda y: np_.log(y) - np_.log1p(-y), lambda x: -lib.nn.softplus(x) - lib.nn.softplus(-x)),
        lax.neg_p: (np_.negative, np_.zeros_like),
        lax.log1p_p: (np_.expm1, lambda x: -np_.log1p(x)),
    }
    binary = {  # of two operands, of which the first or the second is known
        lax.add_p: (lambda y, k, first: (y - k, np_.zeros_like(y))),
        lax.sub_p: (lambda y, k, first: ((k - y) if first else (y + k), np_.zeros_like(y))),
        lax.mul_p: (lambda y, k, first: (y / k, np_.log(np_.abs(k)) + np_.zeros_like(y))),
        lax.div_p: (
            lambda y, k, first: (
                (k / y, np_.log(np_.abs(y * y / k))) if first else (y * k, -np_.log(np_.abs(k)) + np_.zeros_like(y))
            )
        ),
    }

    def run(jaxpr, consts, unknown, y):
        """The value of the input `unknown`, and log |dy/dx|, where the only result is `y`."""
        env = dict(zip(jaxpr.constvars, consts))
        (target,) = jaxpr.outvars
        known, log_det = {target: y}, np_.zeros_like(y)

        def value(v):
            return v.val if is_literal(extend, v) else env.get(v)

        for eqn in jaxpr.eqns:  # what depends on constants alone is computed first
            if all(value(v) is not None for v in eqn.invars):
                out = eqn.primitive.bind(*map(value, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
                env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
        for eqn in reversed(jaxpr.eqns):
            if eqn.outvars[0] not in known:
                continue
            (out,) = [known[v] for v in eqn.outvars]
            inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
            free = [i for i, v in enumerate(eqn.invars) if value(v) is None]
            (i,) = free  # a value used twice has no inverse here
            if inner is not None:
                given = [value(v) for j, v in enumerate(eqn.invars) if j != i]
                rest = [v for j, v in enumerate(inner.jaxpr.invars) if j != i]
                program = inner.jaxpr
                x, more = (
                    run(program, [*inner.consts], program.invars[i], out)
                    if not rest
                    else run_with(program, inner.consts, rest, given, program.invars[i], out)
                )
            elif len(eqn.invars) == 1:
                back, change = unary[eqn.primitive]
                x = back(out)
                more = change(x)
            else:
                x, more = binary[eqn.primitive](out, value(eqn.invars[1 - i]), i == 1)
            known[eqn.invars[i]] = x
            log_det = log_det + more
        return known[unknown], log_det

    def run_with(jaxpr, consts, names, values, unknown, y):
        closed = jaxpr.replace(constvars=[*jaxpr.constvars, *names], invars=[unknown])
        return run(closed, [*consts, *values], unknown, y)

    def inverse(f):
        @wraps(f)
        def back(y):
            closed = lib.make_jaxpr(f)(y)
            x, log_det = run(closed.jaxpr, closed.consts, closed.jaxpr.invars[0], y)
            return x, -log_det

        return back

    return inverse


def flows(lib):
    np_ = lib.numpy
    scale = np_.array([2.0, -3.0, 0.5])
    return {
        "affine": lambda x: 1.0 + scale * x,
        "nested": lambda x: lib.jit(lambda u: np_.exp(u) / 2.0)(3.0 - x) * np_.abs(scale),
        "logistic": lambda x: lib.nn.sigmoid(x / scale),
        "tanh": lambda x: np_.log1p(np_.exp(-np_.tanh(x))),
        "reciprocal": lambda x: 2.0 / (lib.jit(np_.exp)(x) + 0.0),
    }


def check_inverse(lib, extend, name):
    np_, inverse = lib.numpy, inverses(lib, extend)
    f, x = flows(lib)[name], np_.array([0.3, -0.8, 0.6])
    back = inverse(f)
    y = f(x)
    found, log_det = back(y)
    slopes = lib.vmap(lambda i: lib.grad(lambda x: f(x)[i])(x)[i])(np_.arange(3))
    np.testing.assert_allclose(found, x, rtol=2e-4)
    np.testing.assert_allclose(log_det, -np.log(np.abs(slopes)), rtol=1e-3, atol=1e-4)
    again = lib.jit(lambda y: back(y))(y)
    through = lib.grad(lambda y: back(y)[0].sum())(y)
    np.testing.assert_allclose(through, 1 / np.asarray(slopes), rtol=1e-3)
    return [found, log_det, *again, through]


# -- harvests --------------------------------------------------------------------------------------------------------


def harvests(lib, extend, ad, batching, mlir):
    """`sow(x, name)` marks a value; `reap(f)` also returns the marked ones; `plant(f)` replaces them."""
    sow_p = extend.Primitive("sow_value")
    sow_p.def_impl(lambda x, *, name: x)
    sow_p.def_abstract_eval(lambda x, *, name: x)
    mlir.register_lowering(sow_p, lambda ctx, x, *, name: [x])
    ad.deflinear2(sow_p, lambda ct, x, *, name: [ct])
    batching.primitive_batchers[sow_p] = lambda args, axes, *, name: (sow_p.bind(*args, name=name), axes[0])

    def evaluate(jaxpr, consts, args, reaped, planted):
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
        for eqn in jaxpr.eqns:
            values = [v.val if is_literal(extend, v) else env[v] for v in eqn.invars]
            rule = rules.get(eqn.primitive.name)
            if eqn.primitive is sow_p:
                name = eqn.params["name"]
                out = planted.get(name, values[0])
                reaped[name] = out
            elif rule is not None:
                out = rule(eqn, values, reaped, planted)
            else:
                out = eqn.primitive.bind(*values, **eqn.primitive.get_bind_params(eqn.params))
            env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
        return [v.val if is_literal(extend, v) else env[v] for v in jaxpr.outvars]

    def call(eqn, values, reaped, planted):
        """A jitted function stays one, and returns what it reaped."""
        inner = eqn.params["jaxpr"]

        @lib.jit
        def run(values, planted):
            found = {}
            return evaluate(inner.jaxpr, inner.consts, values, found, planted), found

        out, found = run(values, planted)
        reaped.update(found)
        return out

    def ruled(eqn, values, reaped, planted):
        inner = eqn.params["call_jaxpr"]
        return evaluate(inner.jaxpr, inner.consts, values, reaped, planted)

    def loop(eqn, values, reaped, planted):
        """Of a scan, the values of all steps are reaped, one above the other."""
        p, inner = eqn.params, eqn.params["jaxpr"]
        # From version 0.12 on, the reference keeps the trees of (constants, carry, rows) instead of the two numbers.
        k, c = (p["num_consts"], p["num_carry"]) if "num_consts" in p else map(len, p["ft_in"].unpack()[:2])
        consts, init, rows = values[:k], values[k : k + c], values[k + c :]

        def body(carry, row):
            x, planted = row
            found = {}
            out = evaluate(inner.jaxpr, inner.consts, [*consts, *carry, *x], found, planted)
            return out[:c], (out[c:], found)

        carry, (ys, found) = lib.lax.scan(body, init, (rows, planted), length=p["length"], reverse=p["reverse"])
        reaped.update(found)
        return [*carry, *ys]

    def chosen(eqn, values, reaped, planted):
        index, *operands = values
        branches = []
        for b in eqn.params["branches"]:

            def branch(*operands, b=b):
                found = {}
                return evaluate(b.jaxpr, b.consts, operands, found, planted), found

            branches.append(branch)
        out, found = lib.lax.switch(index, branches, *operands)
        reaped.update(found)
        return out

    rules = {"jit": call, "pjit": call, "scan": loop, "cond": chosen, "custom_jvp_call": ruled}

    def harvest(f):
        def run(planted, *args):
            shape = lib.eval_shape(f, *args)
            closed = lib.make_jaxpr(f)(*args)
            reaped = {}
            out = evaluate(closed.jaxpr, closed.consts, lib.tree.leaves(args), reaped, planted)
            return lib.tree.structure(shape).unflatten(out), reaped

        return run

    def sow(x, name):
        return sow_p.bind(x, name=name)

    return sow, harvest


def check_harvest(lib, extend, ad, batching, mlir):
    np_, lax = lib.numpy, lib.lax
    sow, harvest = harvests(lib, extend, ad, batching, mlir)
    w = np_.arange(9.0).reshape(3, 3) / 9

    def f(x):
        h = sow(lib.jit(lambda x: sow(np_.tanh(w @ x), "inner") * 2)(x), "hidden")
        h = lib.nn.relu(h)

        def step(c, row):
            return sow(np_.sin(c + row), "state"), c.sum()

        c, sums = lax.scan(step, h, w)
        return lax.cond(c.sum() > 0, lambda c: sow(c, "branch") * 1.0, lambda c: sow(-c, "branch") * 3.0, c), sums

    x = np_.array([0.5, -1.0, 2.0])
    plain = f(x)
    out, reaped = harvest(f)({}, x)
    for a, b in zip(lib.tree.leaves(out), lib.tree.leaves(plain)):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert sorted(reaped) == ["branch", "hidden", "inner", "state"] and reaped["state"].shape == (3, 3)
    np.testing.assert_allclose(reaped["hidden"], 2 * np.tanh(w @ x), rtol=1e-6)
    jitted = lib.jit(lambda x: harvest(f)({}, x))(x)
    mapped = lib.vmap(lambda x: harvest(f)({}, x)[1])(np_.stack([x, -x, 2 * x]))
    slope = lib.grad(lambda x: harvest(f)({}, x)[1]["state"].sum())(x)
    planted, after = harvest(f)({"inner": np_.ones(3)}, x)
    np.testing.assert_allclose(after["hidden"], 2 * np.ones(3))
    found = lib.grad(lambda h: harvest(f)({"hidden": h}, x)[0][0].sum())(reaped["hidden"])
    return lib.tree.leaves([out, reaped, jitted, mapped, slope, planted, found])


# -- values with units -----------------------------------------------------------------------------------------------


class Quantity:
    """An array and the powers of its units, such as {"m": 1, "s": -2}."""

    def __init__(self, value, **units):
        self.value, self.units = value, {k: p for k, p in sorted(units.items()) if p}


def quantities(lib, extend):
    """`with_units(f)`: the function `f` of arrays as one of quantities; operations that mix units raise."""
    tree = lib.tree

    class UnitTracer(lib.core.Tracer):
        def __init__(self, trace, quantity):
            super().__init__(trace, lib.typeof(quantity.value))
            self.quantity = quantity

    class UnitTrace(lib.core.Trace):
        def __init__(self, parent):
            super().__init__()
            self.parent = parent

        def opened(self, x):
            return x.quantity if isinstance(x, UnitTracer) and x._trace is self else Quantity(x)

        def process_primitive(self, primitive, tracers, params, /):
            given = [self.opened(t) for t in tracers]
            with extend.set_current_trace(self.parent):
                out = rules.get(primitive.name, partial(plain, primitive))(primitive, given, params)
            return tree.map(lambda q: UnitTracer(self, q), out, is_leaf=lambda q: isinstance(q, Quantity))

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, *, symbolic_zeros):
            with extend.set_current_trace(self):
                return fun.call_wrapped(*tracers)

    def bind(primitive, given, params):
        params = primitive.get_bind_params(params)
        return primitive.bind(*[q.value for q in given], **params)

    def plain(called, primitive, given, params):
        """Operations that know no units take numbers without."""
        with_some = [q for q in given if q.units]
        if with_some:
            raise TypeError(f"{primitive.name} of a quantity in {with_some[0].units}")
        out = bind(primitive, given, params)
        return tree.map(Quantity, out)

    def alike(primitive, given, params):
        if any(q.units != given[0].units for q in given):
            raise TypeError(f"{primitive.name} of {' and '.join(str(q.units) for q in given)}")
        return Quantity(bind(primitive, given, params), **given[0].units)

    def kept(primitive, given, params):
        return Quantity(bind(primitive, given, params), **given[0].units)

    def product(sign):
        def rule(primitive, given, params):
            a, b = given
            units = {k: a.units.get(k, 0) + sign * b.units.get(k, 0) for k in {*a.units, *b.units}}
            return Quantity(bind(primitive, given, params), **units)

        return rule

    def power(primitive, given, params):
        return Quantity(bind(primitive, given, params), **{k: p * params["y"] for k, p in given[0].units.items()})

    def clamped(primitive, given, params):
        """A maximum with a number without units, which is zero in this test."""
        return alike(primitive, [Quantity(q.value, **given[0].units) for q in given], params)

    def square(primitive, given, params):
        return Quantity(bind(primitive, given, params), **{k: 2 * p for k, p in given[0].units.items()})

    def root(primitive, given, params):
        return Quantity(bind(primitive, given, params), **{k: p / 2 for k, p in given[0].units.items()})

    def call(primitive, given, params):
        """A jitted function stays one: units are known while it is traced."""
        closed, units = params["jaxpr"], []

        @lib.jit
        def run(values):
            out = with_units(extend.jaxpr_as_fun(closed))(*[Quantity(v, **q.units) for v, q in zip(values, given)])
            units[:] = [q.units for q in out]
            return [q.value for q in out]

        return [Quantity(v, **u) for v, u in zip(run([q.value for q in given]), units)]

    def ruled(primitive, given, params):
        return list(with_units(extend.jaxpr_as_fun(params["call_jaxpr"]))(*given))

    rules = {
        "add": alike,
        "sub": alike,
        "max": clamped,
        "reduce_sum": kept,
        "broadcast_in_dim": kept,
        "neg": kept,
        "reshape": kept,
        "squeeze": kept,
        "convert_element_type": kept,
        "mul": product(1),
        "div": product(-1),
        "dot_general": product(1),
        "integer_pow": power,
        "sqrt": root,
        "jit": call,
        "pjit": call,
        "custom_jvp_call": ruled,
        "square": square,
    }

    def with_units(f):
        @wraps(f)
        def run(*args):
            is_quantity = lambda q: isinstance(q, Quantity)
            with extend.take_current_trace() as parent:
                trace = UnitTrace(parent)
                with extend.set_current_trace(trace):
                    given = tree.map(lambda q: UnitTracer(trace, q) if is_quantity(q) else q, args, is_leaf=is_quantity)
                    out = f(*given)
                    return tree.map(trace.opened, out)

        return run

    return with_units


def check_units(lib, extend):
    np_ = lib.numpy
    with_units = quantities(lib, extend)

    def energy(m, v, k, x):
        kinetic = 0.5 * m * v**2
        spring = lib.jit(lambda x: k * (x @ x))(x) / 2.0
        return kinetic + spring, np_.sqrt(kinetic / m) + v, lib.nn.relu(kinetic - spring)

    def found(x):
        out = with_units(energy)(
            Quantity(2.0, kg=1), Quantity(3.0, m=1, s=-1), Quantity(4.0, kg=1, s=-2), Quantity(x, m=1)
        )
        return out

    x = np_.array([1.0, 2.0])
    total, speed, more = found(x)
    assert total.units == {"kg": 1, "m": 2, "s": -2} == more.units and speed.units == {"m": 1, "s": -1}
    for wrong, text in (
        (lambda a, b: a + b, "add of"),
        (lambda a, b: np_.sin(a), "sin of"),
        (lambda a, b: lib.jit(lambda a: a + 1.0)(a), "add of"),
    ):
        with pytest.raises(TypeError, match=text):
            with_units(wrong)(Quantity(1.0, m=1), Quantity(2.0, s=1))
    slope = lib.grad(lambda x: found(x)[0].value)(x)
    np.testing.assert_allclose(slope, 4 * x)
    mapped = lib.vmap(lambda x: found(x)[0].value)(np_.stack([x, 2 * x]))
    jitted = lib.jit(lambda x: [q.value for q in found(x)])(x)
    return [total.value, speed.value, more.value, slope, mapped, *jitted]


# -- on both ---------------------------------------------------------------------------------------------------------


def both(check, *args):
    jax = pytest.importorskip("jax")
    names = ("jax.extend.core", "jax.interpreters.ad", "jax.interpreters.batching", "jax.interpreters.mlir")
    theirs = [import_module(n) for n in names]
    ours = [our_extend, our_ad, our_batching, our_mlir]
    n = 4 if check is check_harvest else 1
    have, want = check(gradix, *ours[:n], *args), check(jax, *theirs[:n], *args)
    assert len(have) == len(want)
    for a, b in zip(have, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["affine", "nested", "logistic", "tanh", "reciprocal"])
def test_inverses(name):
    both(check_inverse, name)


@pytest.mark.parity
def test_harvests():
    both(check_harvest)


@pytest.mark.parity
def test_units():
    both(check_units)


def test_without_the_reference():
    check_inverse(gradix, our_extend, "nested")
    check_harvest(gradix, our_extend, our_ad, our_batching, our_mlir)
    check_units(gradix, our_extend)
