"""The operations of native kernels: loops over single elements that XLA:CPU compiles as a function.

A kernel is passed to `em.kernel`. XLA updates an array of a loop in place only if nothing reads its
old state after the update; otherwise it copies the whole array at every step. So a kernel reads
what it has just written, or reads one array and writes another. It never reads an array, writes to
it, and then uses the value read for another write.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval

INT = np.dtype("int32")
SCALAR = make_aval((), INT)
# XLA inlines a function with this attribute only after it has fused operations.
OWN_CALL = 'mhlo.frontend_attributes = {inlineable = "false"}'


def apart(em, name: str, out, write, *values):
    """Write `write(*values)`, of type `out`, so that XLA fuses it with nothing before or after."""
    symbol = em.define(name, [v.aval for v in values], lambda *values: [write(*values)])
    return em.call(symbol, [out], *values, attrs=OWN_CALL)[0]


class Loops:
    """Scalar arithmetic, single elements and counted loops on an emitter."""

    __slots__ = ("em",)

    def __init__(self, em):
        self.em = em

    def number(self, value, dtype=INT):
        return self.em.constant(value, make_aval((), dtype))

    def do(self, name: str, x, y):
        """A StableHLO operation of two values of one type.

        A Python number takes the type of the other.
        """
        y = self.number(y, x.aval.dtype) if isinstance(y, int) else y
        return self.em.op(name, x.aval, x, y)

    def get(self, x, i):
        """`x[i]` of a vector."""
        return self.em.reshape(self.block(x, (1,), i), ())

    def at(self, x, k: int):
        """`x[k]` of a vector, for a `k` known while the program is written."""
        one = make_aval((1,), x.aval.dtype)
        return self.em.reshape(
            self.em.op(
                "slice",
                one,
                x,
                attrs=(
                    f"start_indices = array<i64: {k}>, limit_indices = array<i64: {k + 1}>, strides = array<i64: 1>"
                ),
            ),
            (),
        )

    def put(self, x, i, value):
        """A vector with `x[i] = value`."""
        return self.put_block(x, self.em.reshape(value, (1,)), i)

    def block(self, x, shape, *starts):
        return self.em.op(
            "dynamic_slice",
            make_aval(shape, x.aval.dtype),
            x,
            *starts,
            attrs=f"slice_sizes = array<i64: {', '.join(map(str, shape))}>",
        )

    def put_block(self, x, value, *starts):
        return self.em.op("dynamic_update_slice", x.aval, x, value, *starts)

    def zeros(self, shape, dtype=INT):
        return self.em.constant(0, make_aval(shape, dtype))

    def count(self, stop, carry, body, start=0) -> list:
        """Loop `carry = body(i, *carry)` for i from `start` to `stop - 1`, which may be values."""
        if start == 0 and stop == 1:
            return body(self.number(0), *carry)
        start, limit = (self.number(i) if isinstance(i, int) else i for i in (start, stop))
        one = self.number(1)

        def step(i, *values):
            return [self.em.op("add", SCALAR, i, one), *body(i, *values)]

        return self.em.while_loop([start, *carry], lambda i, *_: [self.em.compare(i, limit, "LT")], step)[1:]
