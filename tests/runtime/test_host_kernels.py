"""NumPy's loops called from compiled programs: what each does, and how calls behave in programs, threads and on disk."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base import config
from gradix._runtime import host_kernels, xla, xla_host_kernels

ROOT = Path(__file__).parents[2]
DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    ml_dtypes.bfloat16,
    "float32",
    "float64",
]
SHAPES = [(1, 2), (1, 3000), (70, 40), (5, 1 << 15)]  # the last is shared among threads
NAMES = "sort sort_numbers order largest at_ranks".split()


def numbers(shape, dtype):
    """With ties; of floats also both zeros, infinities and NaNs of either sign."""
    rng, dtype = np.random.default_rng(shape[1]), np.dtype(dtype)
    if dtype.kind in "biu":
        few = (
            rng.integers(0, 2, shape)
            if dtype.kind == "b"
            else rng.integers(0, 100, shape) - (50 if dtype.kind == "i" else 0)
        )
        return few.astype(dtype)
    few = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2.5, -2.5])
    return np.where(rng.random(shape) < 0.5, rng.choice(few, shape), rng.standard_normal(shape)).astype(dtype)


def bits(x):
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def places(x):
    """In the order of the numbers, equal ones in the order they came; NaNs are equal and the largest."""
    wide = x.astype("float64") if x.dtype.kind in "fV" else x
    return np.argsort(wide, -1, kind="stable")


def in_total_order(x):
    if x.dtype.kind in "biu":
        return x
    signed = x.view(f"i{x.dtype.itemsize}").astype("int64")
    return np.where(signed < 0, -1 - (signed & ((1 << (8 * x.dtype.itemsize - 1)) - 1)), signed)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [1, 3000, 1 << 15])
def test_rows_that_end_in_nans(n, dtype):
    """What past its size a row is filled with stays where it is, with its bits, and what is before is sorted."""
    x = numbers((5, n), dtype)
    x[0, n // 2 :] = np.nan
    x[1, n // 3 :] = np.where(np.arange(n - n // 3) % 3, -np.nan, np.nan)
    x[2] = np.nan
    x[3, -1:] = -np.nan
    x[4, -1:] = 1
    for rows in (x, *x[:, None]):
        out = np.empty_like(rows)
        host_kernels.sort(rows, out)
        np.testing.assert_array_equal(bits(out), bits(np.take_along_axis(rows, places(rows), -1)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorted_rows_and_their_places(shape, dtype):
    x = numbers(shape, dtype)
    out, order = np.empty_like(x), np.empty(shape, "int32")
    host_kernels.sort(x, out)
    host_kernels.order(x, order)
    np.testing.assert_array_equal(order, places(x))
    np.testing.assert_array_equal(bits(out), np.take_along_axis(bits(x), places(x), 1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_of_rows(shape, dtype):
    x = numbers(shape, dtype)
    for k in {1, shape[1] // 3 + 1, shape[1]}:
        values, found = np.empty((shape[0], k), x.dtype), np.empty((shape[0], k), "int32")
        host_kernels.largest(x, values, found)
        key = in_total_order(x)
        np.testing.assert_array_equal(found, np.argsort(~key, -1, kind="stable")[:, :k])
        np.testing.assert_array_equal(bits(values), np.take_along_axis(bits(x), found, -1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_the_few_largest_of_long_rows(dtype, k):
    """Some rows with numbers that comparisons leave out or find equal, one with nothing else; one whose largest stand together."""
    rng, dtype = np.random.default_rng(k), np.dtype(dtype)
    x = numbers((9, 1003), dtype)
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)
    x[:6] = (
        np.linspace(float(info.min) / 4, float(info.max) / 4, 6018)
        .astype(dtype)[rng.permutation(6018)]
        .reshape(6, 1003)
    )
    x[1] = np.sort(x[1])
    if dtype.kind not in "iu":
        place = np.arange(1003)
        x[2, place % (1003 // 7) < 3] = -np.nan  # every element of some of 7 parts
        x[3, place % (1003 // 4) < 31] = -np.nan
        bits(x)[2:4, ::300] = (bits(np.array([np.inf, -np.inf], dtype)) | 1).repeat(2)  # signalling
        x[4, ::50], x[4, 1::2] = info.smallest_subnormal, -0.0
        x[4, x[4] > info.tiny] = 0
        x[5] = -np.nan
    wanted = np.argsort(~in_total_order(x), -1, kind="stable")
    values, found = np.empty((9, k), x.dtype), np.empty((9, k), "int32")
    host_kernels.largest(x, values, found)
    np.testing.assert_array_equal(found, wanted[:, :k])
    host_kernels.largest(x[2:3], values[:1], found[:1])
    np.testing.assert_array_equal(found[:1], wanted[2:3, :k])


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_stands_at_ranks(shape, dtype, same):
    x = numbers(shape, dtype)
    rng = np.random.default_rng(1)
    ranks = rng.integers(0, shape[1], (1 if same else shape[0], 7)).astype("int32")
    ranks[0, :4] = shape[1] - 1, 0, 1, 1
    ranks = np.broadcast_to(ranks, (shape[0], 7)).copy()
    found = np.empty((shape[0], 7), x.dtype)
    host_kernels.at_ranks(x, ranks, found)
    wanted = np.take_along_axis(np.take_along_axis(x, places(x), 1), ranks, 1)
    np.testing.assert_array_equal(found.astype("float64"), wanted.astype("float64"))


@pytest.mark.parametrize("shape", [(1, 700), (40, 100), (3, 5000)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_numbers_stand_among_zeros_in_the_order_they_came(shape, dtype):
    rng, tiny = np.random.default_rng(2), np.finfo(dtype).tiny
    few = np.array([tiny, -tiny, 2 * tiny, -2 * tiny, tiny / 2, -tiny / 4, 0.0, -0.0], dtype)
    x = np.where(rng.random(shape) < 0.1, rng.choice(few, shape), rng.standard_normal(shape)).astype(dtype)
    wanted = np.take_along_axis(bits(x), places(np.where(abs(x) < tiny, 0, x)), 1)
    out = np.empty_like(x)
    host_kernels.sort(x, out)
    np.testing.assert_array_equal(bits(out), wanted)
    if dtype == "float32":  # in a program the processor takes them for zeros too
        np.testing.assert_array_equal(bits(np.asarray(gradix.jit(lambda a: jnp.sort(a, axis=1))(x))), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32", "float64"])
def test_a_long_row_is_shared_among_threads(dtype, monkeypatch):
    monkeypatch.setattr(host_kernels, "cores", lambda: 5)
    x = numbers((1, 350_001), dtype)
    out, order = np.empty_like(x), np.empty(x.shape, "int32")
    host_kernels.sort(x, out)
    host_kernels.order(x, order)
    np.testing.assert_array_equal(order, places(x))
    np.testing.assert_array_equal(bits(out), np.take_along_axis(bits(x), places(x), 1))


def test_a_failure_in_a_thread_comes_out_when_all_are_done():
    done = []

    def work(i):
        if i == 1:
            raise MemoryError("no room")
        done.append(i)

    with pytest.raises(MemoryError, match="no room"):
        host_kernels._share(work, [(i,) for i in range(4)])
    assert sorted(done) == [0, 2, 3]


def test_work_is_done_without_threads_where_none_can_start(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(host_kernels, "_pool", refuse)
    x = numbers((6, 40_000), "float32")
    out = np.empty_like(x)
    host_kernels.sort(x, out)
    np.testing.assert_array_equal(out, np.sort(x, -1))


def test_places_by_several_keys():
    a, b = numbers((3, 500), "int8") // 20, numbers((3, 500), "float64")
    z = np.empty((3, 500), "complex64")
    z.real, z.imag = numbers((3, 500), "float32"), numbers((3, 500), "float16")
    found = np.empty((3, 500), "int32")
    host_kernels.order(a, b, found)
    np.testing.assert_array_equal(found, np.lexsort((b, a), axis=1))
    host_kernels.order(z, found)
    np.testing.assert_array_equal(found, np.lexsort((z.imag, z.real), axis=1))


def test_operands_are_only_read():
    for dtype in DTYPES:
        x = numbers((4, 300), dtype)
        before = bits(x).copy()
        host_kernels.sort(x, np.empty_like(x))
        host_kernels.order(x, np.empty(x.shape, "int32"))
        host_kernels.largest(x, np.empty((4, 9), dtype), np.empty((4, 9), "int32"))
        host_kernels.at_ranks(x, np.full((4, 2), 7, "int32"), np.empty((4, 2), x.dtype))
        np.testing.assert_array_equal(bits(x), before)


# -- in programs ----------------------------------------------------------------------------------------------------


def text(fn, *args):
    return gradix.jit(fn).lower(*args).as_text()


@pytest.mark.x32
@pytest.mark.rewritten
def test_programs_call_numpy_only_where_it_pays_and_may():
    x = jnp.zeros(5000)
    assert "@gradix_host_sort(" in text(jnp.sort, x) and "@gradix_host_sort_numbers(" in text(jnp.argsort, x)
    assert "gradix_host_order" in text(lambda a: jnp.lexsort((a, a)), x)
    assert "gradix_host_at_ranks" in text(jnp.median, x) and "gradix_host_largest" in text(
        lambda a: lax.top_k(a, 4000), x
    )
    assert "gradix_host" not in text(jnp.sort, jnp.zeros(100))
    assert "gradix_host" not in text(lambda a: jnp.sort(a, 0), jnp.zeros((1, 5000)))
    with config.Setting("gradix_host_kernels", "")(False):
        assert "gradix_host" not in text(jnp.sort, x) + text(jnp.median, x) + text(lambda a: lax.top_k(a, 4000), x)


def test_the_option_makes_programs_of_its_own():
    x = np.random.default_rng(0).standard_normal(3000).astype("float32")
    f = gradix.jit(lambda a: jnp.argsort(a))
    with config.Setting("gradix_host_kernels", "")(False):
        without = np.asarray(f(x))
    np.testing.assert_array_equal(f(x), without)
    assert f._cache_size() == 2


def test_calls_inside_loops_branches_maps_and_derivatives():
    x = np.random.default_rng(0).standard_normal((6, 900)).astype("float32")
    found = gradix.jit(lambda a: lax.scan(lambda c, row: (c + 1, jnp.sort(row * c)), 1.0, a))(x)[1]
    np.testing.assert_array_equal(found, np.sort(x * np.arange(1, 7, dtype="float32")[:, None], 1))
    found = gradix.jit(
        lambda a: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sort(c[1])[::-1]), (0, a))
    )(x[0])[1]
    np.testing.assert_array_equal(found, np.sort(x[0])[::-1])
    found = gradix.jit(lambda p, a: lax.cond(p, jnp.sort, lambda v: v, a))(True, x[0])
    np.testing.assert_array_equal(found, np.sort(x[0]))
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(jnp.sort))(x), np.sort(x, 1))
    weight = np.arange(900, dtype="float32")
    gradient = gradix.jit(gradix.grad(lambda a: (jnp.sort(a) * weight).sum()))(x[0])
    np.testing.assert_array_equal(gradient, weight[np.argsort(np.argsort(x[0]))])


def test_results_are_ready_and_may_be_read_and_given_up_at_once():
    x = np.random.default_rng(0).standard_normal(300_000).astype("float32")
    wanted = np.sort(x)
    f = gradix.jit(lambda a: jnp.sort(a + 0), donate_argnums=0)
    for _ in range(5):
        out = f(jnp.asarray(x))
        assert out.is_ready()
        np.testing.assert_array_equal(memoryview(np.asarray(out)), wanted)
        out.delete()


def test_programs_without_results_of_the_call_do_not_wait_for_it():
    assert gradix.jit(lambda a: (jnp.sort(a), 3)[1])(jnp.zeros(5000)) == 3


def test_callbacks_and_calls_of_numpy_share_a_program():
    x = np.random.default_rng(0).standard_normal(4000).astype("float32")

    def f(a):
        twice = gradix.pure_callback(lambda v: 2 * v, gradix.ShapeDtypeStruct(a.shape, a.dtype), jnp.sort(a))
        return jnp.sort(-twice)

    np.testing.assert_array_equal(gradix.jit(f)(x), np.sort(-2 * x))


def test_many_threads_call_at_once():
    x = np.random.default_rng(0).standard_normal((8, 40, 2000)).astype("float32")
    f = gradix.jit(lambda a: jnp.sort(a, axis=-1))

    def work(i):
        return all(np.array_equal(f(x[i]), np.sort(x[i], -1)) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.x32
@pytest.mark.rewritten
def test_what_goes_wrong_is_told():
    def fail(x, out):
        raise MemoryError("no room for 12 numbers")

    xla_host_kernels.register_host_kernel("failing", fail)
    lowered = gradix.jit(jnp.sort).lower(jnp.zeros(5000))
    aval = lowered.in_avals[0][0]
    program = xla.compile(lowered.as_text().replace("gradix_host_sort", "gradix_host_failing"), [aval], [aval])
    with pytest.raises(xla.RuntimeFailure, match="MemoryError: no room for 12 numbers"):
        program.run([xla.put(np.zeros(5000, "float32"), aval)])


def test_functions_are_registered_once_for_good():
    """As by a program that imports Gradix anew."""
    xla_host_kernels.ensure_host_kernels.cache_clear()
    x = np.arange(700.0, dtype="float32")[::-1]
    np.testing.assert_array_equal(gradix.jit(lambda a: jnp.sort(a) + 1)(x), x[::-1] + 1)


def test_programs_with_calls_are_kept_on_disk(tmp_path):
    code = (
        "import numpy as np, gradix, gradix.numpy as jnp\n"
        "with gradix.debug.explain(show=False) as seen:\n"
        "    x = np.arange(5000, dtype='float32')[::-1]\n"
        "    assert np.array_equal(gradix.jit(lambda a: jnp.sort(a))(x), x[::-1])\n"
        "print(sorted({e.kind for e in seen.events} & {'compile', 'load'}))"
    )
    kinds = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=ROOT,
            check=True,
            env={**os.environ, "GRADIX_CACHE": str(tmp_path)},
        ).stdout.strip()
        for _ in range(2)
    ]
    assert kinds == ["['compile']", "['load']"]


WRONG = {
    "sort": [
        (("f4", (3, 4)), ("f4", (3, 5))),
        (("f4", (3, 4)), ("f8", (3, 4))),
        (("f4", (4,)), ("f4", (4,))),
        (("f4", (1, 4)), ("f4", (3, 4))),
        (("f4", (3, 4)),),
        (("f4", (0, 4)), ("f4", (0, 4))),
        (("f4", (2, 3, 4)), ("f4", (2, 3, 4))),
    ],
    "order": [
        (("f4", (3, 4)), ("i8", (3, 4))),
        (("f4", (3, 4)), ("i4", (3, 3))),
        (("i4", (3, 4)),),
        (("f4", (4,)), ("i4", (4,))),
    ],
    "largest": [
        (("f4", (3, 4)), ("f4", (3, 5)), ("i4", (3, 5))),
        (("f4", (3, 4)), ("f4", (3, 2)), ("i4", (3, 3))),
        (("f4", (3, 4)), ("i4", (3, 2)), ("i4", (3, 2))),
        (("f4", (3, 4)), ("f4", (2, 2)), ("i4", (2, 2))),
        (("f4", (3, 4)),),
    ],
    "at_ranks": [
        (("f4", (3, 4)), ("i4", (3, 2)), ("f4", (3, 3))),
        (("f4", (3, 4)), ("f4", (3, 2)), ("f4", (3, 2))),
        (("f4", (3, 4)), ("i4", (2, 2)), ("f4", (2, 2))),
    ],
    "correlate": [
        (("f4", (3, 9)), ("f4", (1, 4)), ("f4", (3, 5))),
        (("f4", (3, 9)), ("f4", (2, 4)), ("f4", (3, 6))),
        (("f4", (3, 9)), ("f8", (1, 4)), ("f4", (3, 6))),
        (("f4", (3, 3)), ("f4", (1, 4)), ("f4", (3, 1))),
    ],
}
WRONG["sort_numbers"] = WRONG["sort"]


@pytest.mark.parametrize("name", WRONG)
def test_other_shapes_and_dtypes_than_ours_are_refused(name):
    """As a program could pass that someone else wrote: results would stay as the memory was before."""
    for case in WRONG[name]:
        arrays = [np.ones(shape, dtype) for dtype, shape in case]
        with pytest.raises((ValueError, TypeError), match="Programs should not call it|argument"):
            host_kernels.KERNELS[name](*arrays)


def test_numbers_are_sorted_wherever_the_result_is():
    x = np.array([[3.0, 1, 2]])
    out = np.zeros_like(x)
    host_kernels.KERNELS["sort_numbers"](x, out)
    assert out.tolist() == [[1, 2, 3]]
