"""Values above arrays in transformations: what goes in, out and through, and the derivatives that libraries' rules say."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradix
import gradix.numpy
from gradix.experimental import hijax as ours


def library(lib, hj):
    """Two types and their operations, as a library of `gradix` or of the reference has them."""
    jnp, typeof = lib.numpy, lib.typeof

    @dataclass(frozen=True)
    class Pair:
        a: Any
        b: Any

    @dataclass(frozen=True)
    class PairType(hj.HiType):
        a: Any
        b: Any

        def lo_ty(self):
            return [self.a, self.b]

        def lower_val(self, p):
            return [p.a, p.b]

        def raise_val(self, a, b):
            return Pair(a, b)

        def to_tangent_aval(self):
            return PairType(self.a.to_tangent_aval(), self.b.to_tangent_aval())

        def vspace_zero(self):
            return Pair(jnp.zeros(self.a.shape, self.a.dtype), jnp.zeros(self.b.shape, self.b.dtype))

        def vspace_add(self, x, y):
            return added(x, y)

        def str_short(self, **_):
            return "Pair"

        __repr__ = str_short
        total = hj.aval_property(lambda p: first(p) + second(p))
        plus = hj.aval_method(lambda p, x: first(p) + x)

    class Make(hj.VJPHiPrimitive):
        def __init__(self, a, b):
            self.in_avals, self.out_aval, self.params = (a, b), PairType(a, b), {}
            super().__init__()

        def expand(self, a, b):
            return Pair(a, b)

        def vjp_fwd(self, nzs_in, a, b):
            return make(a, b), None

        def vjp_bwd_retval(self, _, ct):
            return first(ct), second(ct)

    class Part(hj.VJPHiPrimitive):
        def __init__(self, p, which):
            self.in_avals, self.out_aval, self.params = (p,), (p.a, p.b)[which], {"which": which}
            super().__init__()

        def expand(self, p):
            return (p.a, p.b)[self.which]

        def vjp_fwd(self, nzs_in, p):
            return self(p), None

        def vjp_bwd_retval(self, _, ct):
            other = (self.in_avals[0].a, self.in_avals[0].b)[1 - self.which]
            zero = jnp.zeros(other.shape, other.dtype)
            return (make(ct, zero) if self.which == 0 else make(zero, ct),)

    class Add(hj.VJPHiPrimitive):
        def __init__(self, p):
            self.in_avals, self.out_aval, self.params = (p, p), p, {}
            super().__init__()

        def expand(self, p, q):
            return Pair(p.a + q.a, p.b + q.b)

    @dataclass(frozen=True)
    class Small:
        v: Any
        s: Any

    @dataclass(frozen=True)
    class SmallType(hj.HiType):
        """Numbers of 8 bits, whose derivatives are floats: the rounding counts as the identity."""

        shape: tuple

        def lo_ty(self):
            return [hj.ShapedArray(self.shape, np.dtype("int8")), hj.ShapedArray((), np.dtype("float32"))]

        def lower_val(self, q):
            return [q.v, q.s]

        def raise_val(self, v, s):
            return Small(v, s)

        def to_tangent_aval(self):
            return hj.ShapedArray(self.shape, np.dtype("float32"))

        def str_short(self, **_):
            return "Small"

        __repr__ = str_short

    class Round(hj.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), SmallType(x.shape), {}
            super().__init__()

        def expand(self, x):
            s = jnp.max(jnp.abs(x)) / 127
            return Small(jnp.round(x / s).astype("int8"), s)

        def vjp_fwd(self, nzs_in, x):
            return self(x), None

        def vjp_bwd_retval(self, _, ct):
            return (ct,)

    class Restore(hj.VJPHiPrimitive):
        def __init__(self, q):
            self.in_avals, self.params = (q,), {}
            self.out_aval = hj.ShapedArray(q.shape, np.dtype("float32"))
            super().__init__()

        def expand(self, q):
            return q.v.astype("float32") * q.s

        def vjp_fwd(self, nzs_in, q):
            return self(q), None

        def vjp_bwd_retval(self, _, ct):
            return (ct,)

    class Cube(hj.VJPHiPrimitive):
        """Its derivatives are told to be others, which shows which rule is used."""

        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()

        def expand(self, x):
            return x**3

        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval(self, x, ct):
            return (10 * ct * x**2,)

        def jvp(self, primals, tangents):
            return self(*primals), 7 * tangents[0] * primals[0] ** 2

        def batch(self, axis_data, args, dims):
            return cube(*args), dims[0]

    hj.register_hitype(Pair, lambda p: PairType(typeof(p.a), typeof(p.b)))
    hj.register_hitype(Small, lambda q: SmallType(q.v.shape))

    def make(a, b):
        return Make(typeof(a), typeof(b))(a, b)

    def first(p):
        return Part(typeof(p), 0)(p)

    def second(p):
        return Part(typeof(p), 1)(p)

    def added(p, q):
        return Add(typeof(p))(p, q)

    def small(x):
        return Round(typeof(x))(x)

    def restored(q):
        return Restore(typeof(q))(q)

    def cube(x):
        return Cube(typeof(x))(x)

    return locals()


def programs(lib, hj) -> dict:
    """What each program gives, as a function without arguments."""
    names = library(lib, hj)
    Pair, make, first, second, added = (names[n] for n in ("Pair", "make", "first", "second", "added"))
    small, restored, cube = (names[n] for n in ("small", "restored", "cube"))
    jnp, lax, grad, jit, vmap = lib.numpy, lib.lax, lib.grad, lib.jit, lib.vmap
    x = jnp.array([1.0, 2.0, 3.0], "float32")

    def product(x):
        p = make(x, x * 2)
        return (first(p) * second(p)).sum()

    def through(x):
        return (restored(small(x)) * x).sum()

    def parts(p):
        return type(p).__name__, p.a, p.b

    def swapped(x):
        return lax.cond(x.sum() > 0, lambda p: make(second(p), first(p)), lambda p: p, make(x, 2 * x))

    return {
        "eager": lambda: first(make(x, x * 2)),
        "type": lambda: str(lib.typeof(make(x, x))),
        "jit": lambda: jit(lambda x: first(make(x, x * 2)) + second(make(x, x)))(x),
        "in": lambda: jit(lambda p: first(p) * 2)(Pair(x, x)),
        "in again": lambda: [jit(first)(Pair(x * i, x)) for i in (1, 2)],
        "out": lambda: parts(jit(lambda x: make(x, x * 3))(x)),
        "in a tree": lambda: jit(lambda d: {"r": first(d["p"]) + d["x"]})({"p": Pair(x, x), "x": x})["r"],
        "property": lambda: jit(lambda p: p.total)(Pair(x, 2 * x)),
        "method": lambda: jit(lambda p: p.plus(5))(Pair(x, 2 * x)),
        "grad": lambda: grad(product)(x),
        "jit of grad": lambda: jit(grad(product))(x),
        "grad of jit": lambda: grad(jit(product))(x),
        "two uses": lambda: grad(lambda x: (lambda p: (first(p) * second(p) * first(p)).sum())(make(x, x)))(x),
        "with respect to one": lambda: parts(grad(lambda p: (first(p) * second(p)).sum())(Pair(x, 2 * x))),
        "jit with respect to one": lambda: parts(jit(grad(lambda p: (first(p) * second(p)).sum()))(Pair(x, 2 * x))),
        "rounded": lambda: grad(through)(x),
        "jit of grad, rounded": lambda: jit(grad(through))(x),
        "grad of jit, rounded": lambda: grad(jit(through))(x),
        "with respect to rounded": lambda: grad(lambda q: (restored(q) ** 2).sum())(small(x)),
        "rounded in": lambda: jit(restored)(small(x)),
        "scan": lambda: first(
            lax.scan(lambda p, _: (make(first(p) + 1, second(p)), None), make(x, x), None, length=3)[0]
        ),
        "while": lambda: first(
            lax.while_loop(lambda p: first(p).sum() < 20, lambda p: make(first(p) * 2, second(p)), make(x, x))
        ),
        "cond": lambda: first(swapped(x)),
        "own rules": lambda: [
            f(2.0) for f in (cube, jit(cube), grad(cube), jit(grad(cube)), grad(jit(cube)), grad(grad(cube)))
        ],
        "own forward rule": lambda: lib.jvp(cube, (2.0,), (1.0,)),
        "own vmap rule": lambda: [vmap(cube)(x), vmap(grad(cube))(x), grad(lambda x: vmap(cube)(x).sum())(x)],
        "no rule": lambda: grad(lambda x: first(added(make(x, x), make(x, x))).sum())(x),
    }


def outcome(run):
    try:
        return gradix.tree.map(lambda v: np.asarray(v) if not isinstance(v, str) else v, run())
    except NotImplementedError:
        return "NotImplementedError"


@pytest.fixture(scope="module")
def reference():
    jax = pytest.importorskip("jax")
    from jax.experimental import hijax as theirs

    if not hasattr(theirs, "VJPHiPrimitive"):
        pytest.skip("JAX 0.12 has other classes for types above arrays")
    return programs(jax, theirs)


HERE = programs(gradix, ours)


@pytest.mark.parity
@pytest.mark.parametrize("name", HERE)
def test_as_the_reference(name, reference):
    have, want = outcome(HERE[name]), outcome(reference[name])
    assert gradix.tree.structure(have) == gradix.tree.structure(want)
    for a, b in zip(gradix.tree.leaves(have), gradix.tree.leaves(want)):
        if isinstance(a, str):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_the_reference_cannot():
    names = library(gradix, ours)
    make, first, second, small, restored = (names[n] for n in ("make", "first", "second", "small", "restored"))
    x = gradix.numpy.array([1.0, 2.0, 3.0])

    def doubled(x):
        return first(
            gradix.lax.scan(lambda p, _: (make(first(p) * 2, second(p)), None), make(x, x), None, length=3)[0]
        ).sum()

    np.testing.assert_array_equal(gradix.grad(doubled)(x), [8, 8, 8])

    def chosen(x):
        return first(
            gradix.lax.cond(x.sum() > 0, lambda p: make(second(p), first(p)), lambda p: p, make(x, 2 * x))
        ).sum()

    np.testing.assert_array_equal(gradix.grad(chosen)(x), [2, 2, 2])

    def through(x):
        return (restored(small(x)) * x).sum()

    np.testing.assert_allclose(gradix.grad(gradix.checkpoint(through))(x), gradix.grad(through)(x))
    np.testing.assert_allclose(gradix.vmap(gradix.grad(through))(x[None]), gradix.grad(through)(x)[None])
    Pair = names["Pair"]

    def made_of_traced(x):
        return (first(Pair(x, x)) * second(Pair(x, 2 * x))).sum()

    for f in (gradix.grad(made_of_traced), gradix.grad(gradix.jit(made_of_traced))):
        np.testing.assert_array_equal(f(x), 4 * x)
    value, pull = gradix.vjp(lambda q: restored(q) * 2, small(x))
    np.testing.assert_array_equal(pull(x)[0], 2 * x)


def test_errors():
    names = library(gradix, ours)
    make, first = names["make"], names["first"]
    x = gradix.numpy.ones(3)
    with pytest.raises(TypeError, match="jvp must have the same tree structure"):
        gradix.jvp(first, (make(x, x),), ((x, x),))
    with pytest.raises(NotImplementedError, match="linearize does not differentiate with respect to values above"):
        gradix.linearize(first, make(x, x))
    with pytest.raises(NotImplementedError, match="jacrev does not differentiate"):
        gradix.jacrev(first)(make(x, x))
    with pytest.raises(AttributeError, match="no attribute 'a'.*aval_property"):
        gradix.jit(lambda p: p.a)(make(x, x))
    with pytest.raises(AttributeError, match="Empty should set `in_avals`"):
        type("Empty", (ours.VJPHiPrimitive,), {})()


def test_primitives_of_the_older_kind():
    """`HiPrimitive`s are evaluated by `impl`, traced by `to_lojax`, differentiated by `jvp`."""
    names = library(gradix, ours)
    Pair, PairType = names["Pair"], names["PairType"]
    jnp = gradix.numpy

    class Pack(ours.HiPrimitive):
        def impl(self, a, b):
            return Pair(a, b)

        to_lojax = impl

        def abstract_eval(self, a, b):
            return PairType(a, b), set()

        def jvp(self, primals, tangents):
            return pack.bind(*primals), pack.bind(*tangents)

    class Unpack(ours.HiPrimitive):
        multiple_results = True

        def impl(self, p):
            return [p.a, p.b]

        to_lojax = impl

        def jvp(self, primals, tangents):
            return unpack.bind(*primals), unpack.bind(*tangents)

    pack, unpack = Pack("pack"), Unpack("unpack")

    def f(x):
        a, b = unpack.bind(pack.bind(x, jnp.sin(x)))
        return (a * b).sum()

    x = jnp.arange(3.0)
    want = np.sin(x) + x * np.cos(x)
    assert type(pack.bind(x, x)) is Pair
    for g in (gradix.grad(f), gradix.jit(gradix.grad(f)), gradix.grad(gradix.jit(f))):
        np.testing.assert_allclose(g(x), want, rtol=1e-6)
