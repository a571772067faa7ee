"""Values above arrays as rows of loops, in refs, and as results that have cotangents; which arguments have derivatives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import hijax


@dataclass
class Duo:
    parts: tuple


@dataclass(frozen=True)
class DuoType(hijax.HiType):
    types: tuple

    def lo_ty(self):
        return list(self.types)

    def lower_val(self, duo):
        return list(duo.parts)

    def raise_val(self, *parts):
        return Duo(parts)

    def to_tangent_aval(self):
        return DuoType(tuple([t.to_tangent_aval() for t in self.types]))

    def leading_axis_spec(self):
        return tuple([t.leading_axis_spec() for t in self.types])

    def dec_rank(self, size, spec):
        return DuoType(tuple([t.dec_rank(size, s) for t, s in zip(self.types, spec)]))

    def inc_rank(self, size, spec):
        return DuoType(tuple([t.inc_rank(size, s) for t, s in zip(self.types, spec)]))


hijax.register_hitype(Duo, lambda duo: DuoType(tuple([gradix.typeof(p).strip_weak_type() for p in duo.parts])))


class Make(hijax.VJPHiPrimitive):
    def __init__(self, *types):
        self.in_avals, self.out_aval, self.params = types, DuoType(types), {}
        super().__init__()

    def expand(self, *parts):
        return Duo(parts)

    def vjp_fwd(self, nzs_in, *parts):
        return self(*parts), None

    def vjp_bwd_retval(self, res, ct):
        return part(ct, 0), part(ct, 1)


class Part(hijax.VJPHiPrimitive):
    def __init__(self, duo, index):
        self.in_avals, self.out_aval, self.params = (duo,), duo.types[index], {"index": index}
        super().__init__()

    def expand(self, duo):
        return duo.parts[self.index]

    def vjp_fwd(self, nzs_in, duo):
        return self(duo), None

    def vjp_bwd_retval(self, res, ct):
        parts = [jnp.zeros(t.shape, t.dtype) for t in self.in_avals[0].types]
        parts[self.index] = ct
        return (make(*parts),)


def make(*parts):
    return Make(*[gradix.typeof(p) for p in parts])(*parts)


class Product(hijax.VJPHiPrimitive):
    """Of the parts of two values, with a rule for forward mode."""

    def __init__(self, one, other):
        self.in_avals, self.out_aval, self.params = (one, other), one, {}
        super().__init__()

    def expand(self, one, other):
        return Duo(tuple([a * b for a, b in zip(one.parts, other.parts)]))

    def jvp(self, primals, tangents):
        (one, other), (t_one, t_other) = primals, tangents
        moved = [product(one, t_other), product(t_one, other)]
        return product(one, other), Sum(*map(gradix.typeof, moved))(*moved)


class Sum(hijax.VJPHiPrimitive):
    def __init__(self, one, other):
        self.in_avals, self.out_aval, self.params = (one, other), one, {}
        super().__init__()

    def expand(self, one, other):
        return Duo(tuple([a + b for a, b in zip(one.parts, other.parts)]))


def product(one, other):
    return Product(gradix.typeof(one), gradix.typeof(other))(one, other)


def part(duo, index):
    return Part(gradix.typeof(duo), index)(duo)


ROWS = np.arange(3, dtype=np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
CALLS = pytest.mark.parametrize("call", [lambda f: f, gradix.jit], ids=["eager", "jit"])


@CALLS
def test_a_loop_steps_over_the_rows(call):
    seen = []

    def step(carry, row):
        seen.append(gradix.typeof(row))
        return carry + part(row, 0), make(part(row, 0) + 1, part(row, 1) * 2)

    total, rows = call(lambda duo: lax.scan(step, jnp.float32(0), duo))(make(*map(jnp.asarray, ROWS)))
    assert seen[0] == DuoType((gradix.typeof(jnp.float32(0)), gradix.typeof(jnp.ones(4))))
    assert gradix.typeof(rows).types[1].shape == (3, 4) and total == 3
    np.testing.assert_array_equal(rows.parts[0], ROWS[0] + 1)
    np.testing.assert_array_equal(rows.parts[1], ROWS[1] * 2)


def test_derivatives_by_rows():
    def total(x, y):
        duo = make(x, y)
        last, ys = lax.scan(lambda c, row: (c * part(row, 0) + part(row, 1).sum(), row), jnp.float32(1), duo)
        return last + (part(ys, 1) ** 2).sum()

    def plain(x, y):
        last, ys = lax.scan(lambda c, row: (c * row[0] + row[1].sum(), row[1]), jnp.float32(1), (x, y))
        return last + (ys**2).sum()

    args = [jnp.asarray(r) for r in ROWS]
    for got, want in zip(gradix.grad(total, (0, 1))(*args), gradix.grad(plain, (0, 1))(*args)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@CALLS
def test_a_value_in_a_ref(call):
    def f(x):
        ref = gradix.new_ref(make(x, 2 * x))
        before = ref[...]
        ref[...] = make(part(before, 1), x * 5)
        old = ref.swap(make(x, x))
        return part(before, 0) + part(old, 0) + part(gradix.freeze(ref), 1)

    np.testing.assert_array_equal(call(f)(jnp.ones(3)), [4, 4, 4])
    np.testing.assert_array_equal(call(gradix.grad(lambda x: f(x).sum()))(jnp.ones(3)), [4, 4, 4])
    empty = call(lambda: gradix.freeze(gradix.empty_ref(DuoType((gradix.typeof(jnp.ones(2)),) * 2))))()
    assert isinstance(empty, Duo)
    np.testing.assert_array_equal(empty.parts[1], [0, 0])


def test_refs_of_values_say_what_they_are_not_for():
    ref = gradix.new_ref(make(jnp.ones(3), jnp.ones(3)))
    with pytest.raises(NotImplementedError, match=r"as a whole, with ref\[...\], got the index 0"):
        ref[0]
    with pytest.raises(TypeError, match="is set to a value of that type"):
        ref[...] = jnp.ones(3)
    given = gradix.jit(lambda r: part(r[...], 0).sum())
    assert given(ref) == 3


@CALLS
def test_the_cotangent_of_a_result_is_a_value(call):
    out, pull = gradix.vjp(call(lambda x, y: make(x * y, x)), jnp.float32(3), jnp.float32(2))
    assert isinstance(out, Duo)
    assert [float(c) for c in pull(Duo((jnp.float32(1), jnp.float32(10))))] == [12, 3]
    with pytest.raises(ValueError, match="unexpected tree structure"):
        pull(jnp.float32(1))


@CALLS
def test_tangents_of_values_are_values(call):
    of = lambda *xs: Duo(tuple([jnp.float32(x) for x in xs]))
    one, other = of(2, 3), of(5, 7)
    out, along = gradix.jvp(call(lambda a, b, c: product(a, b)), (one, other, 1.0), (of(1, 0), of(0, 1), 0.0))
    assert [float(p) for p in out.parts] == [10, 21] and [float(p) for p in along.parts] == [5, 3]
    (out, count), along = gradix.jvp(call(lambda a: (product(a, other), jnp.float32(4))), (one,), (of(1, 1),))
    assert count == 4 and [float(p) for p in along[0].parts] == [5, 7] and along[1] == 0


def test_a_rule_is_told_which_arguments_have_derivatives():
    told: list[Any] = []

    class Times(hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
            super().__init__()

        def expand(self, x, y):
            return x * y

        def vjp_fwd(self, nzs_in, x, y):
            told.append(tuple(nzs_in))
            return self(x, y), (x, y)

        def vjp_bwd_retval(self, res, ct):
            return ct * res[1], ct * res[0]

    times = lambda x, y: Times(gradix.typeof(x))(x, y)
    slopes = [gradix.grad(times, which)(2.0, 3.0) for which in (0, 1, (0, 1))]
    assert told == [(True, False), (False, True), (True, True)]
    assert [float(s) for s in (*slopes[:2], *slopes[2])] == [3, 2, 3, 2]


def test_types_without_rows_say_what_to_write():
    class Bare(hijax.HiType):
        pass

    for name, args in (("leading_axis_spec", ()), ("dec_rank", (2, 0)), ("shard", (None, (), True, None))):
        with pytest.raises(NotImplementedError, match=f"Bare must implement `{name}`"):
            getattr(Bare(), name)(*args)


def test_a_type_that_says_nothing_of_rows_is_stacked_as_its_arrays():
    @dataclass
    class Box:
        held: Any

    class BoxType(hijax.HiType):
        def lo_ty(self):
            return [gradix.typeof(jnp.float32(0))]

        def lower_val(self, box):
            return [box.held]

        def raise_val(self, held):
            return Box(held)

        def to_tangent_aval(self):
            return gradix.typeof(jnp.float32(0))

    hijax.register_hitype(Box, lambda box: BoxType())
    _, boxes = lax.scan(lambda c, x: (c, Box(x * 2)), 0, jnp.arange(3.0))
    np.testing.assert_array_equal(boxes.held, [0, 2, 4])
