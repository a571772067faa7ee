"""All groups of parity cases: `GROUPS` maps a name to the generator of its cases."""

import functools

from tests.parity.case import unique
from tests.parity.cases import (
    autodiff,
    binary,
    control,
    corners,
    creation,
    decompositions,
    distributions,
    drawn,
    generators,
    grids,
    images,
    indexing,
    inspect,
    lax_ops,
    lax_strict,
    libraries,
    linalg,
    manipulation,
    prng,
    promises,
    reductions,
    small_libraries,
    sorting,
    special,
    staged,
    structured,
    updates,
    unary,
    vmapping,
    wide,
)
from tests.parity.outcome import observe

FAMILIES = {**libraries.FAMILIES, **small_libraries.FAMILIES, **promises.FAMILIES}
# Families of thousands of calls, of which one chunk in six is quick to run.
MANY = {
    "at_modes",
    "bounds",
    "callbacks",
    "copies",
    "dense",
    "draws",
    "layers",
    "mapped",
    "optimizers",
    "places",
    "refs",
    "rotations",
    "rules",
    "segments",
    "signal",
    "solvers",
    "sparse",
    "strict",
    "taylor",
    "transforms",
}
GROUPS = {
    "unary": unary.cases,
    "distributions": distributions.cases,
    "special": special.cases,
    "binary": binary.cases,
    "reductions": reductions.cases,
    "creation": creation.cases,
    "manipulation": manipulation.cases,
    "indexing": indexing.cases,
    "updates": updates.cases,
    "linalg": linalg.cases,
    "decompositions": decompositions.cases,
    "images": images.cases,
    "sorting": sorting.cases,
    "lax_ops": lax_ops.cases,
    "lax_strict": lax_strict.cases,
    "control": control.cases,
    "autodiff": autodiff.cases,
    "vmapping": vmapping.cases,
    "grids": grids.cases,
    "staged": staged.cases,
    "random": prng.cases,
    "generators": generators.cases,
    "inspect": inspect.cases,
    "corners": corners.cases,
    "structured": structured.cases,
    "wide": wide.cases,
    "drawn": drawn.cases,
    **{name: FAMILIES[name] for name in sorted(MANY)},
}
WIDE = {"wide"}  # run with 64-bit types enabled
CHUNK = 50


@functools.cache
def group_cases(group):
    """The cases of a group, as a list with unique ids."""
    return unique(GROUPS[group]())


def chunks():
    """Every (group, number) of a chunk of cases."""
    return [(group, i) for group in GROUPS for i in range(-(-len(group_cases(group)) // CHUNK))]


def chunk_cases(group, number):
    return group_cases(group)[number * CHUNK : (number + 1) * CHUNK]


def run_case(group, case, ns):
    """The outcome of a case on an implementation, with the group's configuration."""
    if group not in WIDE:
        return observe(case.run, ns)

    def run(ns):
        with ns.jax.enable_x64(True):
            return case.run(ns)

    return observe(run, ns)
