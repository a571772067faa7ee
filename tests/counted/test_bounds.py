"""The least and greatest sizes of expressions of a count, against all of its values."""

import random

import pytest

from gradix._core.dimensions.bounds import lower, upper
from gradix._core.dimensions.counts import CountScope, fresh_count
from gradix._core.dimensions.expression import larger, smaller


def _drawn(rng, k, depth: int):
    """An expression of a count, with sums, differences, squares, and the larger and smaller of two."""
    if depth == 0:
        return rng.choice([k, rng.randint(-9, 9)])
    x, y = _drawn(rng, k, depth - 1), _drawn(rng, k, depth - 1)
    made = rng.choice(
        [lambda: x + y, lambda: x - y, lambda: larger(x, y), lambda: smaller(x, y), lambda: rng.randint(-3, 3) * x]
        + [lambda: larger(x * k, y), lambda: x - k * rng.randint(1, 12)]
    )
    return made()


@pytest.mark.parametrize("bound", [0, 1, 2, 7, 40])
def test_bounds_are_exact_where_an_expression_is_made_of_polynomials(bound):
    rng, exact = random.Random(bound), 0
    for _ in range(150):
        k = fresh_count(bound, "here", CountScope())
        d = _drawn(rng, k, 3)
        if type(d) is int:
            continue
        values = [d.evaluate({str(k): n}) for n in range(bound + 1)]
        low, high = lower(d), upper(d)
        assert low <= min(values) and high >= max(values), str(d)
        exact += low == min(values) and high == max(values)
    assert exact > 60


@pytest.mark.parametrize("bound", [6, 100_000])
def test_the_same_size_in_two_forms_is_one_object(bound):
    k = fresh_count(bound, "here", CountScope())
    square = k * k
    rest = square - larger(square, 7)
    assert larger(rest, -7) is rest
    assert larger(square - k, 0) is square - k
    assert larger(3 * square - 12 * k + 12, 0) is 3 * square - 12 * k + 12
    assert larger(square - 5 * k, -7) is square - 5 * k
    assert larger(square - 5 * k, -5) is not square - 5 * k


def _values(counts: list):
    """All values that counts can have together, each of which is bounded by an expression of those before it."""
    found = [{}]
    for dim, bound in counts:
        found = [
            {**v, str(dim): n} for v in found for n in range((bound if type(bound) is int else bound.evaluate(v)) + 1)
        ]
    return found


def _asked(counts: list, rng) -> list:
    d = [dim for dim, _ in counts]
    made = [x * y for x in d for y in d] + [larger(x * y, 7) for x in d for y in d] + d
    made += [b for _, b in counts if type(b) is not int] + [x - y for x in d for y in d if x is not y]
    made += [smaller(x, rng.randint(1, 3)) for x in made[:]]
    return [x for x in made if type(x) is not int]


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_where_counts_bound_counts(seed):
    """A bound may be asked for when all counts are known, those too that are bounded by expressions of it."""
    rng = random.Random(seed)
    scope, counts = CountScope(), []
    k = fresh_count(rng.randint(1, 3), "here", scope)
    counts.append((k, scope.counted[str(k)].bound))
    for i in range(3):
        before = counts[-1][0]
        bound = [
            lambda x: k + 2 - larger((larger(x, 1) - 1) // 2, x - 1) if x is k else x + 1,
            lambda x: smaller(x * x, 7),
            lambda x: larger(x, 2) - 1,
            lambda x: 2 * x + 1,
        ][i if seed == 0 and i < 2 else rng.randrange(4)](before)
        counts.append((fresh_count(bound, "here", scope), bound))
    values = _values(counts)
    asked = _asked(counts, rng)
    rng.shuffle(asked)
    for x in asked:
        found = [x.evaluate(v) for v in values]
        assert lower(x) <= min(found) and max(found) <= upper(x), str(x)
