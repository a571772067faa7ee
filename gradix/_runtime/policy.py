"""Where eager work runs: on the host while it is small, by XLA when it is the better engine."""
from __future__ import annotations

import re
from math import prod

from gradix._base import config
from gradix._core.jaxpr import Jaxpr, jaxprs_in_params

config.define("gradix_eager", "auto", ("auto", "xla", "host"), traced=True)
_options = config.state

# What the options ask of eager work, by trace context: the mode, and whether results are checked for NaN or inf.
_modes: dict[tuple, tuple[str, bool, bool]] = {}


def mode_of(context) -> tuple[str, bool, bool]:
    """(where eager work runs, check for NaN, check for inf) under the current options, whose context this is.

    "auto": NumPy up to a primitive's `host_limit` elements, where it is quicker than XLA's dispatch and needs no
    compilation; the limits were measured (docs/performance.md). "host" and "xla" override.
    """
    if len(_modes) > 256:
        _modes.clear()
    found = _modes[context] = (_options.gradix_eager, _options.jax_debug_nans, _options.jax_debug_infs)
    return found


def modes() -> dict:
    return _modes


_LARGE = 1 << 12        # elements


_REPEATED = 6           # products like an earlier one
_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))


def wants_fusion_emitters(module, jaxpr: Jaxpr) -> bool:
    """Whether a lowered program should go through XLA:CPU's newer code generator.

    It compiles small programs in twice the time, and runs large fusions, scatters and loop bodies up to three times
    faster, but windows (running sums) more than twice slower. Of equal fusions, which repeated layers have, it compiles
    one: the training step of 24 equal layers takes it 0.4 s and the older generator 2.7, of 4 layers 0.28 and 0.54, of 2
    the same. A sine of a large array, four loops of long formulas, takes it 125 ms and the older one 73, and runs as fast.
    """
    if "stablehlo.reduce_window" in module.text:
        return False
    if any(a.size > _LARGE for a in (*module.in_avals, *module.out_avals)):
        return not _is_a_sine(jaxpr)
    return '"stablehlo.while"' not in module.text and _repeated(jaxpr, set()) >= _REPEATED


_FEW = 6                # operations
_PERIODIC = frozenset(("sin", "cos", "tan"))
# Not exp, log, tanh, sqrt or div, which the older emitters compile without vectors or with dearer ones.
_SIMPLE = _PERIODIC | frozenset(("add", "add_any", "sub", "mul", "neg", "abs", "square", "integer_pow", "convert_element_type"))


def _is_a_sine(jaxpr: Jaxpr) -> bool:
    """Whether a program is a periodic function among few elementwise operations."""
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    return len(jaxpr.eqns) <= _FEW and names <= _SIMPLE and not names.isdisjoint(_PERIODIC)


def _repeated(jaxpr: Jaxpr, seen: set) -> int:
    """How many products are like another one: they part the operations around them into fusions, equal ones as well."""
    count = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _PRODUCTS:
            key = eqn.primitive, *[v.aval for v in eqn.invars], repr(eqn.params)
            count += key in seen
            seen.add(key)
        else:
            count += sum([_repeated(inner, seen) for inner in jaxprs_in_params(eqn.params)])
    return count


_SMALL = 1 << 11        # elements


def wants_unrolling(module) -> bool:
    """Whether LLVM should unroll the loops of a lowered program.

    A loop over a small array has a known count, and LLVM writes out every step of it: tanh of 16 x 32 numbers compiles
    in 130 ms and runs in 4.2 us, as a loop in 22 ms and 3.9 us; an MLP's step in 236 and 91 ms, 18.4 us both. Loops of
    the user, over small matrices, run quicker unrolled.
    """
    return '"stablehlo.while"' in module.text or any(a.size > _SMALL for a in (*module.in_avals, *module.out_avals))


_NARROW = 16            # elements
_LONG_FORMULAS = frozenset(("sin", "cos", "pow"))


def wants_narrow_vectors(jaxpr: Jaxpr) -> bool:
    """Whether LLVM should use vectors of four floats: where no array has more than a few, and functions are long formulas.

    It writes the formulas of sine, cosine and power out for vectors, and takes longer over longer ones: 300 sines of 8
    floats compile in 0.30 s so, in 0.55 s with vectors of 8, 30 sines in 37 and 50 ms. They run in 38 and 46 us, 12.5
    both; the results are the same bits. 64 floats would run a fifth slower. Other functions take as long either way.
    """
    found = set()
    return _all_small(jaxpr, found) and not found.isdisjoint(_LONG_FORMULAS)


def _all_small(jaxpr: Jaxpr, found: set) -> bool:
    """Whether no array of the program is large; the names of its primitives are added to `found`."""
    if not all(_is_small(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)):
        return False
    for eqn in jaxpr.eqns:
        found.add(eqn.primitive.name)
        if not (all(_is_small(v.aval) for v in eqn.outvars) and all(_all_small(j, found) for j in jaxprs_in_params(eqn.params))):
            return False
    return True


def _is_small(aval) -> bool:
    size = getattr(aval, "size", 0)
    return type(size) is int and size <= _NARROW


_SHORT = 16             # elements of a row times a column
_SMALL_DOT = 1 << 14    # multiplications of a product
_LOOPS = frozenset(("scan", "while"))


def keeps_dots_small(jaxpr: Jaxpr) -> bool:
    """Whether float32 products are to be kept out of XLA:CPU's library: loops have some, and all are small.

    XLA runs a loop of small operations 10 to 60 times faster as one native function than operation by operation. It
    makes one of each loop that touches few bytes, but not around calls of its library: 300 products of 8 by 8 take 150
    us with it and 40 without, of 16 by 16 435 and 140; of 32 by 32 570 and 660, and larger ones are far quicker in it.
    Outside of loops nothing is gained.
    """
    found = list(_products(jaxpr, False))
    return any(inside for _, inside in found) and all(small for small, _ in found)


def _products(jaxpr: Jaxpr, inside: bool):
    """Of each float32 product, whether it is small, and whether it is in a loop."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            if str(eqn.outvars[0].aval.dtype) == "float32":
                (contracted, _), _ = eqn.params["dimension_numbers"]
                shape = eqn.invars[0].aval.shape
                row = [shape[i] for i in contracted]
                sizes = [*eqn.outvars[0].aval.shape, *row]
                yield all(type(n) is int for n in sizes) and prod(row) <= _SHORT and prod(sizes) <= _SMALL_DOT, inside
        else:
            for inner in jaxprs_in_params(eqn.params):
                yield from _products(inner, inside or eqn.primitive.name in _LOOPS)


_DEEP = 16              # input features of a convolution that both libraries are quick at
_BROAD = 17             # output features, with fewer of which a convolution goes to the library that divides it anyway
_WORK = 1 << 22         # multiplications of one that is worth dividing
_SHALLOW = 24           # what the library that divides loses on a multiplication of others, to what it gains on one of these


def wants_spread_convolutions(module) -> bool:
    """Whether the float32 convolutions of a lowered program are to go to the library of XLA:CPU that divides each among cores.

    Of its two libraries the one that XLA prefers keeps most convolutions on one core. The other one takes as much
    processor time in all, so that two cores halve what 8x28x28x64 to 64 takes, but with few input features two to four times
    as much, so that few of those may be there. The choice is the program's; convolutions of one space axis, or with dilated
    inputs, go to the second anyway, and many of few features are no longer convolutions once lowered (_ops/conv).
    """
    gain = loss = 0
    for deep, work in _convolutions(module.text):
        if deep and work >= _WORK:
            gain += work
        else:
            loss += work
    return gain > _SHALLOW * loss


_CONVOLUTION = re.compile(
    r'"stablehlo\.convolution"\(.*?lhs_dilation = array<i64: 1, 1>.*?#stablehlo\.conv<.*?x\[(.*?)\]->\[(.*?)\]>, '
    r"feature_group_count = (\d+) : i64, batch_group_count = 1 : i64.*?, tensor<([\dx]+)xf32>\) -> tensor<([\dx]+)xf32>")


def _convolutions(text: str):
    """Of each convolution that the choice is about, whether it has many input features, and its multiplications."""
    for of_kernel, of_out, groups, kernel, out in _CONVOLUTION.findall(text):
        sizes = dict(zip(of_kernel.split(", "), map(int, kernel.split("x"))))
        result = dict(zip(of_out.split(", "), map(int, out.split("x"))))
        places, positions, inputs = sizes["0"] * sizes["1"], result["0"] * result["1"], sizes["i"]
        chosen = sizes["o"] >= _BROAD or inputs < _DEEP and inputs % 8 != 0
        if chosen and places <= positions and (inputs > 1 or groups == "1"):
            yield inputs >= _DEEP, prod(result.values()) * inputs * places
