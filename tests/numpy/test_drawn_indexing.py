"""Random index expressions of every kind NumPy allows, read and updated, eager and compiled, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import gradix
import gradix.numpy as jnp

QUICK, SLOW = 100, 1000
UPDATES = {"set": None, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@st.composite
def cases(draw):
    """A shape, an index that NumPy accepts for it, and whether the index arrays become arguments of the program."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 3, 2, 0]), min_size=1, max_size=4)))
    lengths = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), ()]))
    used = draw(st.integers(0, len(shape)))
    before = draw(st.integers(0, used))
    out, place = [], 0
    while place < used:
        if place == before and not any(part is Ellipsis for part in out) and draw(st.booleans()):
            out.append(Ellipsis)
            place = len(shape) - (used - place)  # the rest index the last axes
            used = len(shape)
            continue
        part, lengths, axes = draw(parts(shape[place:used], lengths))
        out += part
        place += axes
    return shape, tuple(out) if len(out) != 1 or draw(st.booleans()) else out[0], draw(st.booleans())


@st.composite
def parts(draw, sizes, lengths):
    """Some index for the first of these axes: what to write, the shape index arrays broadcast to, how many axes it takes."""
    n = sizes[0]
    kinds = ["slice", "slice", "new", "flag", "mask"] + (["int", "array", "array", "list"] if n else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "int":
        i = draw(st.integers(-n, n - 1))
        return [draw(st.sampled_from([i, np.int32(i), np.asarray(i)]))], lengths, 1
    if kind == "slice":
        ends = st.none() | st.integers(-n - 2, n + 2)
        return [slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))], lengths, 1
    if kind in ("array", "list"):
        own = tuple([k if draw(st.integers(0, 4)) else 1 for k in lengths])
        flat = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(own)), max_size=int(np.prod(own))))
        array = np.array(flat, draw(st.sampled_from([np.int32, np.int64, np.int8]))).reshape(own)
        return [array.tolist() if kind == "list" and own else array], lengths, 1
    if kind == "mask" and len(lengths) <= 1:
        axes = draw(st.integers(1, min(2, len(sizes))))
        size = int(np.prod(sizes[:axes]))
        mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(sizes[:axes])
        count = int(mask.sum())
        if lengths in ((), (1,), (count,)) or count == 1:
            return [mask], (count,) if count != 1 or not lengths else lengths, axes
    if kind == "flag":
        return [draw(st.sampled_from([True, np.True_, np.asarray(True)]))], lengths, 0
    return [None], lengths, 0


def accepted(h, index) -> bool:
    """Whether NumPy takes the index: of arrays of several lengths it need not."""
    try:
        h[index]
    except IndexError:
        return False
    return not isinstance(index, list)


def with_arrays(index, put):
    """The index with `put` of its integer arrays."""
    if isinstance(index, tuple):
        return tuple([with_arrays(part, put) for part in index])
    return put(index) if isinstance(index, np.ndarray) and index.dtype != bool else index


def programs(index):
    """One function of the array, the values and the index arrays: what is read, then every update, at an index."""

    def program(x, values, arrays):
        rest = iter(arrays)
        at = x.at[with_arrays(index, lambda _: next(rest))]
        rest = iter(arrays)
        read = x[with_arrays(index, lambda _: next(rest))]
        return [read, *[getattr(at, name)(values) for name in UPDATES], at.apply(jnp.negative)]

    return program


def expected(h, index, values):
    """The same by NumPy."""
    out = [h[index]]
    for ufunc in UPDATES.values():
        want = h.copy()
        if ufunc is None:
            want[index] = values
        else:
            ufunc.at(want, index, values)
        out.append(want)
    want = h.copy()
    np.negative.at(want, index)
    return [*out, want]


def check(case):
    shape, index, as_arguments = case
    h = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape) - 3
    if not accepted(h, index):
        return False
    count = np.zeros(shape, int)
    np.add.at(count, index, 1)
    repeated = count.max(initial=0) > 1  # then which of several values stays is not said
    values = np.int32(7) if repeated else (np.arange(h[index].size, dtype=np.int32).reshape(h[index].shape) * 2) % 11
    want, arrays = expected(h, index, values), []
    with_arrays(index, lambda a: arrays.append(jnp.asarray(a)))
    program = programs(index)
    runs = [program(jnp.asarray(h), jnp.asarray(values), arrays)]
    if as_arguments:
        runs.append(gradix.jit(program)(h, values, arrays))
    else:
        runs.append(gradix.jit(lambda x, v: program(x, v, arrays))(h, values))
    for got in runs:
        for name, g, w in zip(("read", *UPDATES, "apply"), got, want, strict=True):
            assert g.shape == w.shape and g.dtype == np.int32, (name, shape, index)
            np.testing.assert_array_equal(np.asarray(g), w, err_msg=f"{name} of {shape} at {index}")
    return True


unhurried = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=QUICK, suppress_health_check=unhurried)
@given(cases())
def test_drawn_indices(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=SLOW, suppress_health_check=unhurried)
@given(cases())
def test_many_drawn_indices(case):
    check(case)


@settings(max_examples=QUICK // 2, suppress_health_check=unhurried)
@given(cases(), st.randoms(use_true_random=False))
def test_what_is_out_of_bounds(case, random):
    """An index moved out of bounds reads the fill value or the end, and writes nothing or the end."""
    shape, index, _ = case
    index = index if isinstance(index, tuple) else (index,)
    h = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    places = [k for k, i in enumerate(index) if isinstance(i, np.ndarray) and i.ndim and i.dtype != bool and i.size]
    if not places or not accepted(h, index):
        return
    place = places[0]
    axis = axis_of(index, place, len(shape))
    n = shape[axis]
    far = index[place].astype(np.int32)
    far.flat[random.randrange(far.size)] = random.choice([n, n + 5, -n - 1, -n - 7])
    counted = np.where(far < 0, far + n, far)
    end = np.take(h, [0], axis) * 0 - 1  # one more row, which stands for what is outside
    wide = np.concatenate([h, end], axis)
    outer = replaced(index, place, np.where((counted < 0) | (counted >= n), n, counted))
    ends = replaced(index, place, np.clip(counted, 0, n - 1))
    written, clipped = wide.copy(), h.copy()
    np.add.at(written, outer, 1)
    np.add.at(clipped, ends, 1)
    moved, x = replaced(index, place, far), jnp.asarray(h)
    for run in (lambda f: f, gradix.jit):
        got = run(
            lambda x, i: [
                x.at[replaced(moved, place, i)].get(mode="fill", fill_value=-1),
                x.at[replaced(moved, place, i)].get(mode="clip"),
                x.at[replaced(moved, place, i)].add(1),
                x.at[replaced(moved, place, i)].add(1, mode="clip"),
            ]
        )(x, far)
        for g, w in zip(got, (wide[outer], h[ends], np.take(written, range(n), axis), clipped), strict=True):
            np.testing.assert_array_equal(np.asarray(g), w, err_msg=f"{shape} at {moved}")


def replaced(index, place: int, part) -> tuple:
    return (*index[:place], part, *index[place + 1 :])


def axis_of(index, place: int, ndim: int) -> int:
    """The axis of the array that a part of an index is about."""

    def axes(part) -> int:
        if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
            return 0
        return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1

    before = sum(map(axes, index[:place]))
    if not any(part is Ellipsis for part in index[:place]):
        return before
    return ndim - sum(map(axes, index[place:]))


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"indices_are_sorted": True},
        {"unique_indices": True},
        {"mode": "promise_in_bounds"},
        {"indices_are_sorted": True, "unique_indices": True, "mode": "fill", "fill_value": 0},
        {"wrap_negative_indices": False},
        {"out_sharding": None},
    ],
)
def test_promises_change_no_answer(names):
    h, i = np.arange(12.0, dtype=np.float32).reshape(3, 4), np.array([0, 2])
    x = jnp.asarray(h)
    want = h.copy()
    want[i] += 1
    updates = {k: v for k, v in names.items() if k != "fill_value"}
    for run in (lambda f: f, gradix.jit):
        np.testing.assert_array_equal(run(lambda x, i: x.at[i].get(**names))(x, i), h[i])
        np.testing.assert_array_equal(run(lambda x, i: x.at[i].add(1, **updates))(x, i), want)


MASKED_VALUES = [7.0, np.float32(7)]


@pytest.mark.parametrize("name", [*UPDATES, "apply"])
def test_masks_mean_one_thing_traced_or_not_mapped_or_not(name):
    h = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 9
    masks = h % 3 == 0

    def update(x, mask, value):
        return x.at[mask].apply(jnp.negative) if name == "apply" else getattr(x.at[mask], name)(value)

    def want(x, mask):
        out = x.copy()
        if name == "set":
            out[mask] = 7
        elif name == "apply":
            out[mask] = -out[mask]
        else:
            UPDATES[name].at(out, mask, 7)
        return out

    each = np.stack([want(x, m) for x, m in zip(h, masks, strict=True)])
    for value in MASKED_VALUES:
        one = lambda x, m, value=value: update(x, m, value)
        np.testing.assert_array_equal(one(jnp.asarray(h), masks), want(h, masks))
        np.testing.assert_array_equal(gradix.jit(one)(h, masks), want(h, masks))
        np.testing.assert_array_equal(gradix.vmap(one)(h, masks), each)
        np.testing.assert_array_equal(gradix.jit(gradix.vmap(one))(h, masks), each)
        rows = lambda x, m, value=value: update(jnp.asarray(x), m, value)  # a mask of the first axis only
        first = masks[:, 0, 0]
        np.testing.assert_array_equal(gradix.jit(rows)(h, first), want(h, first))
        np.testing.assert_array_equal(
            gradix.vmap(rows, in_axes=(None, 0))(h[0], masks[:, :, 0]),
            np.stack([want(h[0], m) for m in masks[:, :, 0]]),
        )
