"""Loops and branches under every transformation, against the same programs with Python's own loops."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, tree_util
from tests.same import assert_same

from .programs import PROGRAMS, f32, python_namespace

PLAIN = python_namespace(lax, tree_util.tree_map, tree_util.tree_leaves)
NAMES = {p.__name__: p for p in PROGRAMS}


def bound(program, namespace):
    return functools.partial(program, namespace)


def real(args):
    return tuple(i for i, x in enumerate(args) if getattr(x, "dtype", None) == f32)


def total(f):
    """The sum of squares of the results that have derivatives."""

    def scalar(*args):
        outs = map(jnp.asarray, tree_util.tree_leaves(f(*args)))
        parts = [lax.reduce_sum(lax.mul(o, o), tuple(range(o.ndim))) for o in outs if o.dtype == f32]
        return functools.reduce(lax.add, parts)

    return scalar


def of_reals(f, args):
    """`f` as a function of its differentiable arguments."""
    places = real(args)

    def g(*reals):
        given = dict(zip(places, reals))
        return f(*[given.get(i, a) for i, a in enumerate(args)])

    return g, tuple(args[i] for i in places)


def value(f, args):
    return f(*args)


def jit(f, args):
    return gradix.jit(f)(*args)


def jvp(f, args):
    g, xs = of_reals(f, args)
    return gradix.jvp(g, xs, tuple(x + f32(0.3) for x in xs))


def jvp_of_first(f, args):
    first = real(args)[0]
    return gradix.jvp(lambda x: f(*args[:first], x, *args[first + 1 :]), (args[first],), (f32(1) + args[first],))


def grad(f, args):
    return gradix.grad(total(f), real(args))(*args)


def grad_of_first(f, args):
    return gradix.grad(total(f), real(args)[:1])(*args)


def jit_grad(f, args):
    return gradix.jit(gradix.grad(total(f), real(args)))(*args)


def grad_jit(f, args):
    return gradix.grad(gradix.jit(total(f)), real(args))(*args)


def grad_grad(f, args):
    return gradix.grad(total(gradix.grad(total(f), real(args))), real(args))(*args)


def jvp_grad(f, args):
    g, xs = of_reals(gradix.grad(total(f), real(args)), args)
    return gradix.jvp(g, xs, xs)


def grad_jvp(f, args):
    def tangents(*args):
        g, xs = of_reals(f, args)
        return gradix.jvp(g, xs, xs)[1]

    return gradix.grad(total(tangents), real(args))(*args)


def linearize(f, args):
    g, xs = of_reals(f, args)
    out, linear = gradix.linearize(g, *xs)
    return out, linear(*xs)


FORWARD = [jit, jvp, jvp_of_first, linearize]
REVERSE = [grad, grad_of_first, jit_grad, grad_jit, grad_grad, jvp_grad, grad_jvp]
UNCOMPILED = {jit: value, jit_grad: grad, grad_jit: grad}


@pytest.mark.parametrize("transform", [value, *FORWARD, *REVERSE], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_as_python_loops(name, transform):
    program = NAMES[name]
    want = UNCOMPILED.get(transform, transform)(bound(program, PLAIN), PROGRAMS[program])
    assert_same(transform(bound(program, lax), PROGRAMS[program]), want)


def examples(args):
    """Three examples of each argument, that take different branches and numbers of turns."""

    def three(x):
        x = np.asarray(x)
        return np.stack([x, ~x, x]) if x.dtype == bool else np.stack([x, x * f32(0.5), x + f32(0.25)])

    return [three(x) for x in args]


def every(args):
    return (0,) * len(args)


def first(args):
    return (0, *[None] * (len(args) - 1))


def last(args):
    return (*[None] * (len(args) - 1), 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transform", [value, jvp, grad], ids=lambda t: t.__name__)
@pytest.mark.parametrize("which", [every, first, last], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_vmap_as_examples_one_by_one(name, which, transform):
    program = NAMES[name]
    args, axes = PROGRAMS[program], which(PROGRAMS[program])
    rows = [s if a == 0 else x for x, s, a in zip(args, examples(args), axes)]

    def under(namespace):
        return lambda *xs: transform(bound(program, namespace), xs)

    one_by_one = [under(PLAIN)(*[r[i] if a == 0 else r for r, a in zip(rows, axes)]) for i in range(3)]
    want = tree_util.tree_map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *one_by_one)
    assert_same(gradix.vmap(under(lax), axes)(*rows), want, rtol=2e-4)
    assert_same(gradix.jit(gradix.vmap(under(lax), axes))(*rows), want, rtol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_of_vmap_and_grad_of_vmap(name):
    program = NAMES[name]
    args = PROGRAMS[program]
    f = bound(program, lax)
    rows, again = examples(args), examples(examples(args))
    want = [gradix.vmap(f)(*[r[i] for r in again]) for i in range(3)]
    assert_same(
        gradix.vmap(gradix.vmap(f))(*again),
        tree_util.tree_map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *want),
        rtol=2e-4,
    )
    one_by_one = [grad(f, [r[i] for r in rows]) for i in range(3)]
    assert_same(
        grad(gradix.vmap(f), rows),
        tree_util.tree_map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *one_by_one),
        rtol=2e-4,
    )


@pytest.mark.parametrize(
    "use",
    (
        lambda push: push(1.0),
        lambda push: gradix.jit(push)(1.0),
        lambda push: gradix.vmap(push)(jnp.ones(3)),
        lambda push: gradix.jvp(push, (1.0,), (1.0,)),
    ),
    ids=("eager", "jit", "vmap", "jvp"),
)
def test_a_linearized_custom_vjp_says_that_only_its_transpose_is_known(use):
    f = gradix.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda res, ct: (res * ct,))
    with pytest.raises(TypeError, match="custom_vjp function: of 'sin' only the transpose is known"):
        use(gradix.linearize(f, 1.0)[1])
