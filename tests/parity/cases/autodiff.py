"""Derivatives of the zoo in every form, their arguments, and their errors."""

import functools

import numpy as np

from tests.parity.case import Case
from tests.parity.cases.zoo import NO_FORWARD, ROUGH, ZOO, M, T, V, W, scalar

FORMS = {
    "grad": lambda ns, f: ns.jax.grad(scalar(ns, f))(V),
    "value_and_grad": lambda ns, f: ns.jax.value_and_grad(scalar(ns, f))(V),
    "jvp": lambda ns, f: ns.jax.jvp(f, (V,), (T,)),
    "vjp": lambda ns, f: _pull(ns, f),
    "jacfwd": lambda ns, f: ns.jax.jacfwd(f)(V),
    "jacrev": lambda ns, f: ns.jax.jacrev(f)(V),
    "hessian": lambda ns, f: ns.jax.hessian(scalar(ns, f))(V),
    "linearize": lambda ns, f: _linearized(ns, f),
    "grad of grad": lambda ns, f: ns.jax.grad(lambda x: ns.jax.grad(scalar(ns, f))(x).sum())(V),
}
FORWARD = {"jvp", "jacfwd", "hessian", "linearize"}


def _pull(ns, f):
    y, pull = ns.jax.vjp(f, ns.jnp.asarray(V))
    return y, pull(ns.jnp.ones_like(y))


def _linearized(ns, f):
    y, push = ns.jax.linearize(f, ns.jnp.asarray(V))
    return y, push(ns.jnp.asarray(T)), push(2 * ns.jnp.asarray(T))


def cases():
    for name, f in ZOO.items():
        for form, transform in FORMS.items():
            if not (name in NO_FORWARD and form in FORWARD - {"linearize"}):
                yield Case(
                    f"{form} {name}",
                    lambda ns, f=f, t=transform: t(ns, functools.partial(f, ns)),
                    ROUGH.get(name, 3e-4),
                )
    for group in (ARGUMENTS, CUSTOM, ERRORS):
        for name, run in group.items():
            yield Case(name, run, 3e-4, may_work=name == "custom_vjp jvp")


def f2(x, y):
    return (x * y).sum() + (y**2).sum()


def tree(p, x):
    return ((x @ p["w"] + p["b"]) ** 2).sum()


P = {"w": W, "b": np.array([0.1, 0.2, 0.3], np.float32)}
ARGUMENTS = {
    "argnums 0": lambda ns: ns.jax.grad(f2)(V, T),
    "argnums 1": lambda ns: ns.jax.grad(f2, 1)(V, T),
    "argnums -1": lambda ns: ns.jax.grad(f2, -1)(V, T),
    "argnums (0, 1)": lambda ns: ns.jax.grad(f2, (0, 1))(V, T),
    "argnums (1, 0)": lambda ns: ns.jax.grad(f2, (1, 0))(V, T),
    "argnums (1,)": lambda ns: ns.jax.grad(f2, (1,))(V, T),
    "tree": lambda ns: ns.jax.grad(tree)(P, M),
    "tree both": lambda ns: ns.jax.value_and_grad(tree, (0, 1))(P, M),
    "tree jacrev": lambda ns: ns.jax.jacrev(lambda p: {"y": M @ p["w"] + p["b"]})(P),
    "tree jacfwd": lambda ns: ns.jax.jacfwd(lambda p: {"y": p["b"] ** 2})(P),
    "tree hessian": lambda ns: ns.jax.hessian(lambda p: tree(p, M))({"w": W[:, :1], "b": np.ones(1, np.float32)}),
    "aux": lambda ns: ns.jax.grad(lambda x: (x.sum(), {"aux": x * 2}), has_aux=True)(V),
    "value aux": lambda ns: ns.jax.value_and_grad(lambda x: (x.sum(), (x.max(), "text")), has_aux=True)(V),
    "jvp aux": lambda ns: ns.jax.jvp(lambda x: (x * 2, x.sum()), (V,), (T,), has_aux=True),
    "vjp aux": lambda ns: _vjp_aux(ns),
    "jacrev aux": lambda ns: ns.jax.jacrev(lambda x: (x * x, x.sum()), has_aux=True)(V),
    "jacfwd aux": lambda ns: ns.jax.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(V),
    "python float": lambda ns: ns.jax.grad(lambda x: x**3)(2.0),
    "python float third": lambda ns: ns.jax.grad(ns.jax.grad(ns.jax.grad(lambda x: x**4)))(2.0),
    "numpy float": lambda ns: ns.jax.grad(lambda x: x**3)(np.float32(2)),
    "float16": lambda ns: ns.jax.grad(lambda x: (x**2).sum())(V.astype("float16")),
    "weak stays weak": lambda ns: ns.jax.grad(lambda x: ns.jnp.sin(x) * 2)(1.0),
    "keywords": lambda ns: ns.jax.grad(lambda x, *, scale: (x * scale).sum())(V, scale=3.0),
    "unused": lambda ns: ns.jax.grad(lambda x, y: y.sum(), 0)(V, T),
    "none in tree": lambda ns: ns.jax.grad(lambda p: p[0].sum())((V, None)),
    "allow_int": lambda ns: str(ns.jax.grad(lambda x: (x * 2.0).sum(), allow_int=True)(np.arange(3)).dtype),
    "holomorphic": lambda ns: ns.jax.grad(lambda z: z**2, holomorphic=True)(1 + 2j),
    "complex in": lambda ns: ns.jax.grad(lambda z: ns.jnp.abs(z) ** 2)(1 + 2j),
    "complex real part": lambda ns: ns.jax.grad(lambda z: ns.jnp.real(z * z))(1 + 2j),
    "jacfwd holomorphic": lambda ns: ns.jax.jacfwd(ns.jnp.sin, holomorphic=True)(ns.jnp.array([1 + 2j, 0.5j])),
    "linear_transpose": lambda ns: ns.jax.linear_transpose(lambda x: x @ W, V)(np.ones(3, np.float32)),
    "linear_transpose two": lambda ns: ns.jax.linear_transpose(lambda x, y: 2 * x - y, V, T)(V),
    "vjp of two": lambda ns: ns.jax.vjp(f2, V, T)[1](1.0),
    "vjp of tree": lambda ns: ns.jax.vjp(tree, P, M)[1](2.0),
    "jvp of tree": lambda ns: ns.jax.jvp(tree, (P, M), (P, M)),
    "jvp of float": lambda ns: ns.jax.jvp(lambda x: x * x, (3.0,), (1.0,)),
    "hessian argnums": lambda ns: ns.jax.hessian(f2, argnums=(0, 1))(V[:2], T[:2]),
    "jacrev argnums": lambda ns: ns.jax.jacrev(lambda x, y: x * y, argnums=1)(V, T),
    "dtype mixed": lambda ns: ns.jax.grad(lambda x: (x * ns.jnp.arange(4)).sum())(V),
    "fwd vmapped": lambda ns: ns.jax.vmap(lambda t: ns.jax.jvp(ns.jnp.sin, (V,), (t,))[1])(np.eye(4, dtype=np.float32)),
    "abs at 0": lambda ns: ns.jax.grad(ns.jnp.abs)(0.0),
    "max tie": lambda ns: ns.jax.grad(lambda x: x.max())(np.ones(3, np.float32)),
    "maximum tie": lambda ns: ns.jax.grad(ns.jnp.maximum, (0, 1))(1.0, 1.0),
    "sqrt at 0": lambda ns: ns.jax.grad(ns.jnp.sqrt)(0.0),
    "where nan": lambda ns: ns.jax.grad(lambda x: ns.jnp.where(x > 0, ns.jnp.log(x), 0.0))(0.0),
    "pow at 0": lambda ns: [ns.jax.grad(lambda x, p=p: x**p)(0.0) for p in (0, 1, 2, 0.5, 3.0)],
    "power both at 0": lambda ns: ns.jax.grad(ns.jnp.power, (0, 1))(0.0, 2.0),
    "norm at 0": lambda ns: ns.jax.grad(ns.jnp.linalg.norm)(np.zeros(3, np.float32)),
    "relu at 0": lambda ns: ns.jax.grad(ns.nn.relu)(0.0),
    "clip ends": lambda ns: [ns.jax.grad(lambda x: ns.jnp.clip(x, 0.0, 1.0))(v) for v in (-1.0, 0.0, 0.5, 1.0, 2.0)],
    "prod zeros": lambda ns: ns.jax.grad(lambda x: x.prod())(np.array([0.0, 2.0, 3.0], np.float32)),
    "floor": lambda ns: ns.jax.grad(lambda x: ns.jnp.floor(x) + ns.jnp.sign(x) + ns.jnp.round(x))(1.5),
    "remainder": lambda ns: ns.jax.grad(lambda x: x % 2.0 + ns.jnp.fmod(x, 0.7))(1.5),
    "sinc at 0": lambda ns: ns.jax.grad(ns.jnp.sinc)(0.0),
    "logsumexp -inf": lambda ns: ns.jax.grad(ns.nn.logsumexp)(np.array([-np.inf, 0.0], np.float32)),
}


def _vjp_aux(ns):
    y, pull, aux = ns.jax.vjp(lambda x: (x * 2, x.sum()), V, has_aux=True)
    return y, aux, pull(V)


def _with_jvp(ns, rule, **kwargs):
    f = ns.jax.custom_jvp(lambda x, y: x * y, **kwargs)
    f.defjvp(rule)
    return f


def _with_vjp(ns, fwd, bwd, **kwargs):
    f = ns.jax.custom_vjp(lambda x, y: x * y, **kwargs)
    f.defvjp(fwd, bwd)
    return f


def _clip_gradient(ns):
    return _with_vjp(ns, lambda x, y: (x * y, None), lambda res, ct: (ns.jnp.clip(ct, -0.1, 0.1), None))


def _jvps(ns):
    f = ns.jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, ans, x, y: t * 10, lambda t, ans, x, y: t * ans)
    return f


CUSTOM = {
    "custom_jvp grad": lambda ns: ns.jax.grad(_with_jvp(ns, lambda p, t: (p[0] * p[1], 5 * t[0] + t[1])), (0, 1))(
        2.0, 3.0
    ),
    "custom_jvp vmap": lambda ns: ns.jax.vmap(
        ns.jax.grad(_with_jvp(ns, lambda p, t: (p[0] * p[1], 5 * t[0] * p[1] + t[1])))
    )(V, T),
    "custom_jvp jit": lambda ns: ns.jax.jit(ns.jax.grad(_with_jvp(ns, lambda p, t: (p[0] * p[1], 5 * t[0] + t[1]))))(
        2.0, 3.0
    ),
    "custom_jvp nondiff": lambda ns: ns.jax.grad(
        _with_jvp(ns, lambda y, p, t: (p[0] * y, 7 * t[0]), nondiff_argnums=(1,))
    )(2.0, 3.0),
    "custom_jvp second": lambda ns: ns.jax.grad(
        ns.jax.grad(_with_jvp(ns, lambda p, t: (p[0] * p[1], p[0] ** 3 * t[0] + t[1])))
    )(2.0, 3.0),
    "custom_jvps": lambda ns: ns.jax.grad(_jvps(ns), (0, 1))(2.0, 3.0),
    "custom_vjp grad": lambda ns: ns.jax.grad(_clip_gradient(ns))(2.0, 3.0),
    "custom_vjp None": lambda ns: ns.jax.grad(_clip_gradient(ns), 1)(2.0, 3.0),
    "custom_vjp vmap": lambda ns: ns.jax.vmap(ns.jax.grad(lambda x, y: _clip_gradient(ns)(x, y)))(V, T),
    "custom_vjp jit": lambda ns: ns.jax.jit(ns.jax.grad(_clip_gradient(ns)))(2.0, 3.0),
    "custom_vjp scan": lambda ns: ns.jax.grad(
        lambda a: ns.lax.scan(lambda c, x: (_clip_gradient(ns)(c, x), c), a, V)[0]
    )(1.0),
    "custom_vjp nondiff": lambda ns: ns.jax.grad(
        _with_vjp(ns, lambda x, y: (x * y, x), lambda y, res, ct: (ct * res * y,), nondiff_argnums=(1,))
    )(2.0, 3.0),
    "custom_vjp jvp": lambda ns: ns.jax.jvp(_clip_gradient(ns), (2.0, 3.0), (1.0, 1.0)),
    "custom_vjp no rule": lambda ns: ns.jax.grad(ns.jax.custom_vjp(lambda x: x))(2.0),
    "custom_jvp no rule": lambda ns: ns.jax.grad(ns.jax.custom_jvp(lambda x: x))(2.0),
    "custom_vjp wrong tree": lambda ns: ns.jax.grad(_with_vjp(ns, lambda x, y: (x * y, None), lambda res, ct: ct))(
        2.0, 3.0
    ),
    "custom_vjp wrong count": lambda ns: ns.jax.grad(_with_vjp(ns, lambda x, y: (x * y, None), lambda res, ct: (ct,)))(
        2.0, 3.0
    ),
    "custom_vjp wrong shape": lambda ns: ns.jax.grad(
        _with_vjp(ns, lambda x, y: (x * y, None), lambda res, ct: (V, ct))
    )(2.0, 3.0),
    "custom_vjp fwd not a pair": lambda ns: ns.jax.grad(_with_vjp(ns, lambda x, y: x * y, lambda res, ct: (ct, ct)))(
        2.0, 3.0
    ),
    "custom_jvp wrong tangent": lambda ns: ns.jax.grad(_with_jvp(ns, lambda p, t: (p[0], V)))(2.0, 3.0),
    "custom_jvp not a pair": lambda ns: ns.jax.grad(_with_jvp(ns, lambda p, t: p[0]))(2.0, 3.0),
}
ERRORS = {
    "grad of vector": lambda ns: ns.jax.grad(lambda x: x * 2)(V),
    "grad of tuple": lambda ns: ns.jax.grad(lambda x: (x.sum(), x.sum()))(V),
    "grad of int": lambda ns: ns.jax.grad(lambda x: x * 2.0)(3),
    "grad of bool": lambda ns: ns.jax.grad(lambda x: x * 2.0)(True),
    "grad int out": lambda ns: ns.jax.grad(lambda x: x.astype(int).sum())(V),
    "grad complex out": lambda ns: ns.jax.grad(lambda x: x * 1j)(1.0),
    "grad complex in complex out": lambda ns: ns.jax.grad(lambda z: z * z)(1j),
    "grad of string": lambda ns: ns.jax.grad(lambda x: x)("a"),
    "grad of none": lambda ns: ns.jax.grad(lambda x: None)(1.0),
    "grad returns string": lambda ns: ns.jax.grad(lambda x: "a")(1.0),
    "grad argnums range": lambda ns: ns.jax.grad(f2, 5)(V, T),
    "grad argnums type": lambda ns: ns.jax.grad(f2, "x")(V, T),
    "grad argnums float": lambda ns: ns.jax.grad(f2, 1.0)(V, T),
    "grad no argument": lambda ns: ns.jax.grad(lambda: 1.0)(),
    "grad not callable": lambda ns: ns.jax.grad(3),
    "grad aux missing": lambda ns: ns.jax.grad(lambda x: x.sum(), has_aux=True)(V),
    "holomorphic real": lambda ns: ns.jax.grad(lambda x: x, holomorphic=True)(1.0),
    "jvp shapes": lambda ns: ns.jax.jvp(ns.jnp.sin, (V,), (T[:2],)),
    "jvp dtypes": lambda ns: ns.jax.jvp(ns.jnp.sin, (V,), (np.ones(4, np.int32),)),
    "jvp counts": lambda ns: ns.jax.jvp(f2, (V, T), (V,)),
    "jvp not tuples": lambda ns: ns.jax.jvp(ns.jnp.sin, V, T),
    "jvp int": lambda ns: ns.jax.jvp(ns.jnp.sin, (3,), (1,)),
    "jvp trees": lambda ns: ns.jax.jvp(lambda p: p["a"], ({"a": V},), ({"b": V},)),
    "vjp cotangent shape": lambda ns: ns.jax.vjp(ns.jnp.sin, V)[1](T[:2]),
    "vjp cotangent dtype": lambda ns: ns.jax.vjp(ns.jnp.sin, V)[1](np.ones(4, np.int32)),
    "vjp cotangent tree": lambda ns: ns.jax.vjp(ns.jnp.sin, V)[1]((V, V)),
    "linearize shape": lambda ns: ns.jax.linearize(ns.jnp.sin, V)[1](T[:2]),
    "linear_transpose of sin": lambda ns: ns.jax.linear_transpose(ns.jnp.sin, V)(V),
    "linear_transpose shape": lambda ns: ns.jax.linear_transpose(lambda x: x * 2, V)(V[:2]),
    "jacfwd of int": lambda ns: ns.jax.jacfwd(lambda x: x * 2.0)(3),
    "jacrev int out": lambda ns: ns.jax.jacrev(lambda x: x.astype(int))(V),
    "hessian of int": lambda ns: ns.jax.hessian(lambda x: x * 2.0)(3),
}
