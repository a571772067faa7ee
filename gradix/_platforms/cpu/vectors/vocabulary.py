"""The operations of formulas on float vectors: bits, signs, powers of two, exact sums.

XLA:CPU turns a chain of such operations into one loop of vectors. Rules that keep the formulas
quick and right:

- They use one width. A loop with a 64-bit value has half the lanes, so formulas of float32 use only
  float32 and int32.
- A quotient or a square root has only one user, as XLA would compute it, and all before it, again
  for each further one.
- XLA simplifies (x + c) - c to x for a constant c, so low parts must be differences of values that
  are not constant.
- XLA contracts x·y + z to one rounding where the processor can. Formulas may gain by this, but must
  not need it.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.formulas import LoweredValue, Program

_F64 = np.dtype("float64")


class Vectors(Program):
    """The vocabulary of formulas of float32 or float64 vectors.

    - `fraction`: the bits of the fraction, 23 or 52; `word` the integer of the same width, of
      `width` bits.
    - `one`: the bits of 1, `sign_bit` the number that has the sign bit alone.
    - `rough`: whether the result is rounded to a half precision, so that the last bits do not
      matter.
    """

    def __init__(self, em, dtype, rough: bool = False):
        super().__init__(em)
        self.dtype, self.rough = dtype, rough
        self.fraction, self.word = (52, np.dtype("int64")) if dtype == _F64 else (23, np.dtype("int32"))
        self.width = 8 * self.word.itemsize
        self.one = int(np.ones((), dtype).view(self.word))
        self.sign_bit = int(np.iinfo(self.word).min)
        # A whole number added to it appears in its last bits.
        self.shifter = 1.5 * 2.0**self.fraction

    def number(self, value: float, like: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.constant(value, like.value.aval))

    def convert(self, x: LoweredValue, dtype) -> LoweredValue:
        return LoweredValue(self.em, self.em.convert(x.value, dtype))

    def bits(self, x: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.bitcast(x.value, make_aval(x.value.aval.shape, self.word)))

    def floats(self, i: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.bitcast(i.value, make_aval(i.value.aval.shape, self.dtype)))

    def round(self, x: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.op("round_nearest_even", x.value.aval, x.value))

    def floor(self, x: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.op("floor", x.value.aval, x.value))

    def polynomial(self, coefficients, x: LoweredValue, paired: bool | None = None) -> LoweredValue:
        """c₀ + c₁x + c₂x² + …, by Horner's rule.

        A table of coefficients has them by the bits of the fraction. With `paired` the sum is
        c₀ + x·((c₁ + c₂x) + x²·((c₃ + c₄x) + …)), which has half as many dependent steps. This is
        the default for float64; for float32 it pays only beside other long chains.
        """
        found = coefficients[self.fraction] if isinstance(coefficients, dict) else coefficients
        if len(found) < 6 or not (self.fraction == 52 if paired is None else paired):
            return self._horner(found, x)
        first, *found = found
        pairs = [found[i + 1] * x + found[i] if i + 1 < len(found) else found[i] for i in range(0, len(found), 2)]
        return self._horner(pairs, x * x) * x + first

    @staticmethod
    def _horner(coefficients, x: LoweredValue) -> LoweredValue:
        *rest, last, total = coefficients
        total = x * total + last
        for c in reversed(rest):
            total = total * x + c
        return total

    def once(self, x: LoweredValue) -> LoweredValue:
        """`x` itself, through a split of its bits that LLVM removes, so that `x` has only one user.

        XLA computes an operand that it counts as costly, such as e^x, in a separate loop if it has
        several users.
        """
        word = self.bits(x)
        return self.floats((word & self.sign_bit) | (word & ~self.sign_bit))

    # -- signs and limits --------------------------------------------------------------------------

    def sign(self, x: LoweredValue) -> LoweredValue:
        """The sign bit of `x`, as a word."""
        return self.bits(x) & self.sign_bit

    def signed(self, x: LoweredValue, sign: LoweredValue) -> LoweredValue:
        """`x`, negated where the word `sign` has the sign bit."""
        return self.floats(self.bits(x) ^ sign)

    def at_most(self, x: LoweredValue, limit: float) -> LoweredValue:
        """min(x, limit), NaN where `x` is."""
        return self.where(x > limit, limit, x)

    def at_least(self, x: LoweredValue, limit: float) -> LoweredValue:
        """max(x, limit), NaN where `x` is."""
        return self.where(x < limit, limit, x)

    def odd(self, x: LoweredValue, y: LoweredValue, size: LoweredValue) -> LoweredValue:
        """`y`, but `x` where it is so small that x + x³ = x, such as denormals and signed zeros."""
        return self.where(size < 2.0 ** -(self.fraction // 2 + 2), x, y)

    # -- powers of two -----------------------------------------------------------------------------

    def nearest(self, x: LoweredValue) -> tuple[LoweredValue, LoweredValue]:
        """The nearest whole number, and for those below 2²¹ a word that ends with its bits."""
        k = self.round(x)
        return k, self.bits(k + self.shifter)

    def power_of_two(self, k: LoweredValue) -> LoweredValue:
        """2ᵏ of a word that ends with the bits of k, in the range of normal numbers."""
        return self.floats((k << self.fraction) + self.one)

    def times_power(self, x: LoweredValue, k: LoweredValue) -> LoweredValue:
        """x·2ᵏ, where both are in the range of normal numbers."""
        return self.floats(self.bits(x) + (k << self.fraction))

    def parted(self, x: LoweredValue) -> tuple[LoweredValue, LoweredValue, LoweredValue]:
        """e, 2ᵉ as bits to add to an exponent, and m of x = m·2ᵉ, √½ ≤ m < √2, of a positive normal number."""
        bits = self.bits(x)
        least = int(np.sqrt(0.5).astype(self.dtype).view(self.word))
        above = self.shift_right((bits - least) + self.one, self.fraction)  # e and the bias
        power = (above << self.fraction) - self.one
        bias = self.one >> self.fraction
        if self.fraction == 23:
            e = self.convert(above - bias, self.dtype)
        else:  # processors before AVX-512 do not vectorize conversions of int64
            e = self.floats(above + int(np.float64(self.shifter).view(np.int64))) - (self.shifter + bias)
        return e, power, self.floats(bits - power)

    def shift_right(self, x: LoweredValue, places: int) -> LoweredValue:
        """Shift right a word that is not negative, as AVX2 has no arithmetic shift of int64."""
        count = self.em.constant(places, x.value.aval)
        return LoweredValue(self.em, self.em.op("shift_right_logical", x.value.aval, x.value, count))

    # -- sums and products -------------------------------------------------------------------------

    def sum(self, x: LoweredValue, y: LoweredValue) -> tuple[LoweredValue, LoweredValue]:
        """x + y as two numbers (Knuth, TAOCP 2, 4.2.2)."""
        total = x + y
        part = total - x
        return total, (x - (total - part)) + (y - part)

    def high(self, x: LoweredValue) -> LoweredValue:
        """The upper half of the digits of `x`: products of two such numbers are exact."""
        return self.floats(self.bits(x) & -(1 << (self.fraction + 2) // 2))
