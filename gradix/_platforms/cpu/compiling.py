"""The compile options of XLA:CPU, chosen by the facts of a program."""

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
_LARGE_INSIDE = 1 << 16  # elements of an intermediate array
_LARGE_REPEATED = 1 << 12  # elements of an array that is computed in a program with loops
_REPEATED = 6  # operations that are not fused, or results, like an earlier one
_FEW = 6  # operations
_LONG = 1 << 11  # operations
_EVALUATED = 1 << 7  # places at which a fused loop evaluates one value


def compiles_repeats_once(facts, cores: int) -> bool:
    """Whether a program should go through XLA:CPU's newer code generator.

    It compiles small programs more slowly. It runs large fusions, scatters and loop bodies faster,
    but windows (running sums) slower. It compiles equal fusions once, which pays for repeated
    layers and for optimizers, whose updates are the same for each parameter.
    """
    if _is_beyond_the_older_generator(facts):
        return True
    if "reduce_window" in facts.structured:
        return False
    largest = facts.largest_argument
    if (
        largest is None
        or largest > _LARGE
        or (facts.largest or 0) > _LARGE_INSIDE
        or (facts.has_loop and (facts.largest_fused or 0) >= _LARGE_REPEATED)
    ):
        return not _is_a_sine(facts)
    return not facts.has_loop and max(facts.repeated, facts.alike) >= _REPEATED


def _is_beyond_the_older_generator(facts) -> bool:
    """Whether the older code generator would fail on a program, or round its results wrongly.

    It descends into a fusion by recursion, and overflows the stack in a very long one. It repeats
    the code of a value for each place that reads it, and so never ends where their number doubles
    with each step. It rounds small negative numbers to a negative zero, which is NaN in formats
    without one, and rounds twice to floats of four bits.
    """
    return facts.equations > _LONG or facts.evaluations > _EVALUATED or not facts.dtypes.isdisjoint(_ROUNDED_WRONGLY)


def quick_options(facts) -> dict:
    """Options for quick compilation: without LLVM's optimizations, programs run more slowly."""
    return {"quick": True, "fusion_emitters": _is_beyond_the_older_generator(facts)}


_FACTORED = 1 << 18  # elements of a matrix


def factors_on_one_thread(facts) -> bool:
    """Whether LAPACK should use one thread, as more threads pay only for large matrices."""
    return facts.factored is not None and 0 < facts.factored <= _FACTORED


_WORK_OF_LONG = 1 << 18  # elements computed
_PRODUCTS_OF_LONG = 1 << 22  # multiplications
_CALLS_OF_LONG = 1 << 14  # elements of a sort or a factorization


def may_take_long(facts) -> bool:
    """Whether a program may run for a millisecond: it loops, or is large.

    Programs that turn out to be quick are called as such from then on, so this may say yes too
    often. The programs to which it says no are never asked again.
    """
    largest = facts.largest
    if facts.has_loop or largest is None or facts.factored is None:
        return True
    return (
        largest * facts.equations > _WORK_OF_LONG
        or sum([p.multiplications * n for p, n in facts.products.items()]) > _PRODUCTS_OF_LONG
        or (bool(facts.custom_calls) and largest > _CALLS_OF_LONG)
        or facts.factored > _CALLS_OF_LONG
    )


def _is_a_sine(facts) -> bool:
    """Whether a program is a sine and few operations, which the newer generator compiles slowly."""
    kinds = facts.formulas
    return facts.equations <= _FEW and "periodic" in kinds and kinds <= {"periodic", "simple"}


_SMALL = 1 << 11  # elements


def has_only_short_loops(facts, cores: int) -> bool:
    """Whether LLVM should leave the loops of a program as they are.

    LLVM unrolls a loop over a small array completely, which takes long to compile. Programs with
    loops of the user, such as over small matrices, run quicker unrolled.
    """
    return not facts.has_loop and facts.largest_argument is not None and facts.largest_argument <= _SMALL


_NARROW = 16  # elements


def has_long_formulas_of_few(facts, cores: int) -> bool:
    """Whether LLVM should use vectors of four floats, for long formulas on arrays of few elements.

    It expands the formulas of sine, cosine and power for vectors, and compiles longer vectors more
    slowly.
    """
    if facts.formulas.isdisjoint(("periodic", "long")):
        return False
    return facts.largest is not None and facts.largest <= _NARROW


_SHORT = 16  # elements of a row times a column
_SMALL_DOT = 1 << 14  # multiplications of a product


def has_loops_of_small_products(facts, cores: int) -> bool:
    """Whether to compile float32 products without XLA:CPU's library: all are small, some in loops.

    XLA makes one native function of a loop that touches few bytes, unless the loop calls its
    library. Outside of loops nothing is gained.
    """
    found = [p for p in facts.products if p.dtype == _F32 and p.operation == "dot_general"]
    return any(p.is_in_loop for p in found) and all(
        p.terms <= _SHORT and p.multiplications <= _SMALL_DOT for p in found
    )


_DEEP = 16  # with so many input features both libraries are quick
# With fewer output features a convolution goes to the library that divides it in any case.
_BROAD = 17
_WORK = 1 << 22  # a convolution of so many multiplications is worth dividing
# The loss of the dividing library on a multiplication with few input features, as a multiple of its
# gain on one with many.
_SHALLOW = 24


def has_convolutions_to_divide(facts, cores: int) -> bool:
    """Whether float32 convolutions go to the library of XLA:CPU that divides each among cores.

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
    """Whether the choice between the libraries concerns this convolution."""
    if c.dtype != _F32 or c.lhs_dilation != (1, 1) or c.batch_groups != 1:
        return False
    places, positions = [a * b for a, b in (c.kernel, c.result)]
    return (
        (c.outputs >= _BROAD or c.inputs < _DEEP and c.inputs % 8 != 0)
        and places <= positions
        and (c.inputs > 1 or c.feature_groups == 1)
    )


CHOICES = (
    Choice("small_loops", ("small_loops", True), lambda facts, cores: True),
    Choice("older_generator", ("fusion_emitters", False), lambda facts, cores: not compiles_repeats_once(facts, cores)),
    Choice("no_unrolling", ("unroll", False), has_only_short_loops),
    Choice("narrow_vectors", ("narrow", True), has_long_formulas_of_few),
    Choice("small_products_in_loops", ("small_dots", True), has_loops_of_small_products),
    Choice("divided_convolutions", ("spread_convolutions", True), has_convolutions_to_divide),
)
