"""What XLA:CPU is asked for besides its defaults, by what a program holds."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._platforms.records import Choice

_F32 = np.dtype("float32")
_ROUNDED_WRONGLY = frozenset(
    np.dtype(t)
    for t in (
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float4_e2m1fn,
    )
)
_LARGE = 1 << 12  # elements of an argument or result
_LARGE_INSIDE = 1 << 16  # elements of an array between them
_REPEATED = 6  # operations that are not fused, or results, like an earlier one
_FEW = 6  # operations
_LONG = 1 << 11  # operations
_EVALUATED = 1 << 7  # places at which a fused loop evaluates one value


def compiles_repeats_once(facts, cores: int) -> bool:
    """Whether a program should go through XLA:CPU's newer code generator.

    It compiles small programs in twice the time, and runs large fusions, scatters and loop bodies
    up to three times faster, but windows (running sums) more than twice slower. Of equal fusions it
    compiles one: products and reductions part repeated layers into such, and an optimizer makes the
    same of each parameter.
    """
    if _is_beyond_the_older_generator(facts):
        return True
    if "reduce_window" in facts.structured:
        return False
    largest = facts.largest_argument
    if largest is None or largest > _LARGE or (facts.largest or 0) > _LARGE_INSIDE:
        return not _is_a_sine(facts)
    return not facts.has_loop and max(facts.repeated, facts.alike) >= _REPEATED


def _is_beyond_the_older_generator(facts) -> bool:
    """Whether a program is long, its values are needed at many places, or some are of floats that it rounds wrongly.

    The older generator descends through a fusion by recursion, and overflows the stack in one of a
    few thousand operations. It writes the code of a value once for each place, and so never ends
    where their number doubles with each step. It rounds small negative numbers to a negative zero,
    which is NaN where there is none, and rounds to floats of four bits twice.
    """
    return (
        facts.equations > _LONG
        or facts.evaluations > _EVALUATED
        or not facts.dtypes.isdisjoint(_ROUNDED_WRONGLY)
    )


def quick_options(facts) -> dict:
    """Without LLVM's optimizations, a program takes a quarter of the time to compile, and up to three times to run."""
    options: dict = {"xla_backend_optimization_level": 0}
    return (
        options
        if _is_beyond_the_older_generator(facts)
        else {**options, "xla_cpu_use_fusion_emitters": False}
    )


_FACTORED = 1 << 18  # elements of a matrix


def factors_on_one_thread(facts) -> bool:
    """Whether LAPACK should use one thread: for all matrices that are not large, two lose more than they gain."""
    return facts.factored is not None and 0 < facts.factored <= _FACTORED


def _is_a_sine(facts) -> bool:
    """Whether a program is a periodic function and few operations, which the newer generator compiles more slowly."""
    kinds = {p.formula for p in facts.primitives}
    return facts.equations <= _FEW and "periodic" in kinds and kinds <= {"periodic", "simple"}


_SMALL = 1 << 11  # elements


def has_only_short_loops(facts, cores: int) -> bool:
    """Whether LLVM should leave the loops of a program as they are.

    A loop over a small array has a known count, and LLVM writes out every step of it. Loops of the
    user, over small matrices, run quicker unrolled.
    """
    return (
        not facts.has_loop
        and facts.largest_argument is not None
        and facts.largest_argument <= _SMALL
    )


_NARROW = 16  # elements


def has_long_formulas_of_few(facts, cores: int) -> bool:
    """Whether LLVM should use vectors of four floats: where arrays have but a few, and functions are long formulas.

    It writes the formulas of sine, cosine and power out for vectors, and takes longer over longer
    ones.
    """
    if not any(p.formula in ("periodic", "long") for p in facts.primitives):
        return False
    return facts.largest is not None and facts.largest <= _NARROW


_SHORT = 16  # elements of a row times a column
_SMALL_DOT = 1 << 14  # multiplications of a product


def has_loops_of_small_products(facts, cores: int) -> bool:
    """Whether float32 products are to be kept out of XLA:CPU's library: loops have some, and all are small.

    XLA makes one native function of a loop that touches few bytes, but not around calls of its
    library. Outside of loops nothing is gained.
    """
    found = [p for p in facts.products if p.dtype == _F32 and p.operation == "dot_general"]
    return any(p.is_in_loop for p in found) and all(
        p.terms <= _SHORT and p.multiplications <= _SMALL_DOT for p in found
    )


_DEEP = 16  # input features of a convolution that both libraries are quick at
# output features; with fewer a convolution goes to the library that divides it anyway
_BROAD = 17
_WORK = 1 << 22  # multiplications of one that is worth dividing
# What the library that divides loses on a multiplication of others, to what it gains on one of
# these
_SHALLOW = 24


def has_convolutions_to_divide(facts, cores: int) -> bool:
    """Whether float32 convolutions are to go to the library of XLA:CPU that divides each among cores.

    XLA prefers a library that keeps most convolutions on one core. The library that divides them
    takes more processor time where there are few input features (docs/kernels.md), and one choice
    holds for the whole program. Convolutions of one space axis, or with dilated inputs, are divided
    in any case.
    """
    gain = loss = 0
    for c in facts.convolutions if cores > 1 else ():
        if not _is_chosen_for(c):
            continue
        if c.inputs >= _DEEP and c.multiplications >= _WORK:
            gain += c.multiplications
        else:
            loss += c.multiplications
    return gain > _SHALLOW * loss


def _is_chosen_for(c) -> bool:
    """Whether the choice is about a convolution."""
    if c.dtype != _F32 or c.lhs_dilation != (1, 1) or c.batch_groups != 1:
        return False
    places, positions = [a * b for a, b in (c.kernel, c.result)]
    return (
        (c.outputs >= _BROAD or c.inputs < _DEEP and c.inputs % 8 != 0)
        and places <= positions
        and (c.inputs > 1 or c.feature_groups == 1)
    )


_NOTES = "docs/design/running.md"

CHOICES = (
    Choice(
        "small_loops",
        ("small_loops", True),
        lambda facts, cores: True,
        f"{_NOTES}#loops-of-small-operations",
    ),
    Choice(
        "older_generator",
        ("fusion_emitters", False),
        lambda facts, cores: not compiles_repeats_once(facts, cores),
        f"{_NOTES}#repeated-layers",
    ),
    Choice("no_unrolling", ("unroll", False), has_only_short_loops, f"{_NOTES}#compile-options"),
    Choice(
        "narrow_vectors",
        ("narrow", True),
        has_long_formulas_of_few,
        f"{_NOTES}#sines-of-few-numbers",
    ),
    Choice(
        "small_products_in_loops",
        ("small_dots", True),
        has_loops_of_small_products,
        f"{_NOTES}#loops-of-small-operations",
    ),
    Choice(
        "divided_convolutions",
        ("spread_convolutions", True),
        has_convolutions_to_divide,
        "docs/kernels.md#how",
    ),
)
