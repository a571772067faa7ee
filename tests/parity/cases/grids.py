"""Transformations composed: every chain of three over chosen functions of the zoo."""

import functools
import itertools

from tests.parity.case import Case
from tests.parity.cases.zoo import ZOO, M, V, scalar

# Each takes (ns, f) with f from float32[4] to an array, and gives another such function.
STEPS = {
    "jit": lambda ns, f: ns.jax.jit(f),
    "remat": lambda ns, f: ns.jax.checkpoint(f),
    "grad": lambda ns, f: ns.jax.grad(scalar(ns, f)),
    "jvp": lambda ns, f: lambda x: ns.jax.jvp(f, (x,), (ns.jnp.cos(x),))[1],
    "vjp": lambda ns, f: lambda x: ns.jax.vjp(f, x)[1](f(x))[0],
    "rows": lambda ns, f: lambda x: ns.jax.vmap(f)(ns.jnp.stack([x, x * x])).sum(0),
    "linear": lambda ns, f: lambda x: ns.jax.linearize(f, x)[1](x),
    "jacobian": lambda ns, f: lambda x: ns.jax.jacrev(f)(x).sum(-1),
}
FUNCTIONS = (
    "sin cos",
    "quotient",
    "softmax",
    "mlp",
    "scan",
    "gather",
    "custom jvp",
    "broadcast",
    "dynamic update",
    "cumsum",
)
FINISH = {"eager": lambda ns, f: f(ns.jnp.asarray(V)), "vmap": lambda ns, f: ns.jax.vmap(f)(M)}


def cases():
    chains = [chain for chain in itertools.product(STEPS, repeat=3) if chain[0] != chain[1] or chain[1] != chain[2]]
    functions = itertools.cycle(FUNCTIONS)
    for number, chain in enumerate(chains):
        name, way = next(functions), list(FINISH)[number % 3 == 0]
        yield Case(
            f"{way} {' of '.join(chain)} of {name}", functools.partial(_run, chain=chain, name=name, way=way), 2e-3
        )


def _run(ns, chain, name, way):
    f = functools.partial(ZOO[name], ns)
    for step in reversed(chain):
        f = STEPS[step](ns, f)
    return FINISH[way](ns, f)
