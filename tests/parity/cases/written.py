"""Cases written as expressions, in templates filled with all combinations of their parts.

An expression sees the namespace's modules, `S(dtype, shape, seed, low, high)` for sampled arrays, `T` for a number that
depends on every element of a tree, `UNDER(context, call)` and
`OPTION(name, value, call)`.
"""

import itertools

import numpy as np

from tests.parity.case import Case, sample
from tests.parity.cases.drawn import weighted

MODULES = ("jax jnp lax random nn tree_util image special stats signal slinalg ndimage interpolate integrate cluster rotation "
           "optimize fft iterative sparse jet optimizers stax ode ops test_util").split()  # fmt: skip


def filled(template, **parts):
    """The template with each combination of the parts in the place of their names in angle brackets."""
    for values in itertools.product(*parts.values()):
        source = template
        for name, value in [*zip(parts, values)] * 2:  # parts may hold places of others
            source = source.replace(f"<{name}>", str(value))
        yield source


def cases_of(sources, rtol=None, **options):
    for source in sources:
        code = compile(source, "<case>", "eval")
        yield Case(source, lambda ns, code=code: evaluate(ns, code), rtol, **options)


def families(groups):
    """A decorator that makes the expressions a function gives a group of cases, named after it.

    `without` tells for parts of expressions why the cases that have them are left out.
    """

    def family(rtol=None, without=()):
        def named(sources):
            groups[sources.__name__] = lambda: cases_of(
                (s for s in sources() if not any(part in s for part in without)), rtol, may_work=True
            )
            return sources

        return named

    return family


def evaluate(ns, code):
    names = {"np": np, "T": lambda y: weighted(ns, y), "S": lambda *spec: ns.jnp.asarray(sample(*spec))}
    names["UNDER"] = under
    names["OPTION"] = lambda *args: with_option(ns.jax.config, *args)
    found = {name for part in (code, *_inner(code)) for name in part.co_names}
    names |= {name: getattr(ns, name) for name in found if name in MODULES}
    return eval(code, names)


def under(context, call):
    with context:
        return call()


def with_option(config, name, value, call):
    before = getattr(config, name)
    config.update(name, value)
    try:
        return call()
    finally:
        config.update(name, before)


def _inner(code):
    """The code of the functions written inside of an expression."""
    for part in code.co_consts:
        if hasattr(part, "co_names"):
            yield part
            yield from _inner(part)
