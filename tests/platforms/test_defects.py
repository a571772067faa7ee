"""What XLA:CPU computes wrongly, one test for each rewrite of kind `correctness`: each shows the defect without the rewrite.

A test of these that fails tells that this jaxlib has mended the defect: the rewrite can then go once no older one is supported.
"""

import contextlib
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import TABLE
from gradix._platforms.records import CORRECTNESS

NAN, INF = np.nan, np.inf


@contextlib.contextmanager
def selection(text: str):
    before = gradix.config.gradix_rewrites
    gradix.config.update("gradix_rewrites", text)
    try:
        yield
    finally:
        gradix.config.update("gradix_rewrites", before)


def compiled(f, *args, rewrites: str):
    with selection(rewrites):
        return np.asarray(gradix.jit(lambda *args: f(*args))(*args))


def ramp(size: int, at: int):
    x = np.arange(size, dtype=np.float32)
    x[at] = NAN
    return x


def branches():
    numbers = [
        complex(*pair)
        for pair in ((2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0), (0.0, 2), (-0.0, 2), (0.0, -2), (-0.0, -2))
    ]
    return np.array(numbers, np.complex64)


def equal(found, wanted) -> bool:
    """Equal numbers, signs of zero included."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    parts = [(found.real, wanted.real), (found.imag, wanted.imag)] if np.iscomplexobj(wanted) else [(found, wanted)]
    return all(
        np.allclose(x, y, rtol=1e-6, atol=0, equal_nan=True) and np.array_equal(np.signbit(x), np.signbit(y))
        for x, y in parts
    )


def replaced(b, write):
    c = b.reshape(6)
    return write(c, c[:3] * 0.5 + b[0, 0])


grid = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
added = np.sin(grid).ravel()
added[:3] = added[:3] * 0.5 + added[0]


def replaced_in_a_sum(x, write):
    """A block of a sum of reshaped arrays: XLA reshapes the sum."""
    e = x.reshape(6) + jnp.sin(x).reshape(6) * 2
    return write(e, 2 * e[:3] + e[2])


sums = grid.ravel() + np.sin(grid).ravel() * 2
sums[2:5] = 2 * sums[:3] + sums[2]


def replaced_turned(x):
    """A row of a transposed array, of what is the first row before."""
    turned = jnp.cos(x).reshape(3, 2).T
    f = turned.reshape(6)
    return lax.dynamic_update_slice(turned.T.reshape(2, 3), (f[:3] * 0.5 + f[1]).reshape(1, 3), (1, 0))


cosines = np.cos(grid)
cosines[1] = cosines.reshape(3, 2).T.ravel()[:3] * 0.5 + cosines.reshape(3, 2).T.ravel()[1]


# Per rewrite: what is computed, of what, and what it is.
DEFECTS = {
    "extrema_keep_nan": [(lambda x: x.max(), ramp(5000, 1), NAN), (lambda x: x.min(), ramp(5000, 4999), NAN)],
    "half_extrema_keep_nan": [
        (lambda x: jnp.abs(x.max()), np.where(np.arange(5000) == 7, -NAN, 1).astype("float16"), NAN),
        (lambda x: jnp.abs(x.min()), np.where(np.arange(5000) == 7, NAN, 1).astype("float16"), NAN),
    ],
    "extrema_in_reductions_keep_nan": [
        (lambda x: lax.reduce(x, np.float32(-INF), lambda a, b: lax.max(a, b) * 1, (0,)), ramp(5000, 7), NAN)
    ],
    "blocks_replaced_apart": [
        (lambda x: replaced(jnp.sin(x), lambda c, new: lax.dynamic_update_slice(c, new, (0,))), grid, added),
        (lambda x: replaced_in_a_sum(x, lambda c, new: lax.dynamic_update_slice(c, new, (2,))), grid, sums),
        (replaced_turned, grid[None], cosines),
    ],
    "scattered_blocks_apart": [
        (lambda x: replaced(jnp.sin(x), lambda c, new: c.at[:3].set(new)), grid, added),
        (lambda x: replaced_in_a_sum(x, lambda c, new: c.at[2:5].set(new)), grid, sums),
    ],
    "signs_on_branch_cuts": [
        (getattr(jnp, name), branches(), getattr(np, name)(branches()))
        for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sqrt")
    ],
    "exponentials_of_nan": [
        (lambda x, f=f: jnp.abs(f(x * NAN)), np.full(8, 0.5, np.float32), np.full(8, NAN))
        for f in (jnp.exp, jnp.sinh, jnp.cosh)
    ],
    "products_with_masks": [
        (lambda x: jnp.abs((x > 5) * x), np.float32([NAN, -INF, 1, 7]), np.float32([NAN, NAN, 0, 7]))
    ],
    "inner_products_with_masks": [
        (lambda x: jnp.dot(x, x > 5), np.float32([NAN, -INF, 1, 7]), np.float32(NAN)),
        (lambda x: jnp.einsum("bi,bi->b", x > 5, x), np.float32([[NAN, 7], [9, 7]]), np.float32([NAN, 16])),
    ],
    "signs_of_float8_nan": [
        (
            lambda b: lax.bitcast_convert_type(-lax.bitcast_convert_type(b, "float8_e5m2"), "uint8"),
            np.uint8([126, 254, 60, 0, 252]),
            np.uint8([254, 126, 188, 128, 124]),
        )
    ],
    "bits_of_narrow_integers": [
        (
            lambda x: lax.population_count(x.astype("int4")).astype("int8"),
            np.int8([-8, -7, 3, 7]),
            np.int8([1, 2, 2, 3]),
        )
    ],
    "cube_roots": [
        (lambda x: jnp.cbrt(x) - np.float32([419, 435, 838]), np.float32([419, 435, 838]) ** 3, np.zeros(3, np.float32))
    ],
}


# Those that the newest jaxlib has mended, and the oldest has not: they are shown on the older ones alone.
MENDED = {"exponentials_of_nan"}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_defect_is_there_and_mended(name):
    for f, x, wanted in DEFECTS[name]:
        assert equal(compiled(f, x, rewrites=f"off,+{name}"), wanted)
    if name in MENDED and all(equal(compiled(f, x, rewrites="off"), wanted) for f, x, wanted in DEFECTS[name]):
        pytest.skip("mended in this jaxlib")
    for f, x, wanted in DEFECTS[name]:
        assert not equal(compiled(f, x, rewrites="off"), wanted), f"jaxlib has mended what {name} is for"


def column_replaced(c, write):
    """The first column, of what was the last one and of itself."""
    return write(c, c[:, :1] * 5 + c[(0,) * c.ndim] + c[:, 2:])


def column_of_itself(c, write):
    return write(c, c[:, :1] * 5 + c[(0,) * c.ndim])


def deep(m):
    return m.reshape(2, 3, 1)


def flat(m):
    return m.reshape(2, 3)


def _columns(x):
    x = x.copy()
    x[:, 0] = x[:, 0] * 5 + x[0, 0] + x[:, 2]
    x[:, 0] = x[:, 0] * 5 + x[0, 0]
    return x


def replaced_twice(write) -> list:
    """Functions that replace an array in one shape and then in another one, in one program and through others inside."""
    first, second = partial(column_replaced, write=write), partial(column_of_itself, write=write)
    jit = gradix.jit
    return [
        lambda x: flat(second(deep(first(x)))),
        lambda x: flat(second(jit(deep)(first(x)))),
        lambda x: flat(jit(second)(deep(jit(first)(x)))),
        lambda x: jit(flat)(jit(lambda m: second(deep(m)))(first(x))),
        lambda x: lax.fori_loop(0, 1, lambda i, c: flat(jit(second)(deep(first(c)))), x),
    ]


@pytest.mark.parametrize(
    "name, write",
    [
        ("blocks_replaced_apart", lambda c, new: lax.dynamic_update_slice(c, new, (0,) * c.ndim)),
        ("scattered_blocks_apart", lambda c, new: c.at[:, :1].set(new)),
    ],
)
def test_blocks_are_replaced_in_several_shapes_and_programs(name, write):
    for f in replaced_twice(write):
        assert equal(compiled(f, grid, rewrites=f"off,+{name}"), _columns(grid))


# Per rewrite: a program that ends the process without it.
CRASHES = {
    "two_bits_as_bytes": "x = jnp.array([1, 0, -2]).astype('int2'); "
    "print(gradix.jit(lambda x: jnp.concatenate([x, x]))(x).astype(int).tolist() == [1, 0, -2] * 2)"
}


@pytest.mark.parametrize("name", CRASHES)
def test_the_process_lives(name):
    def run(rewrites):
        environment = {**os.environ, "GRADIX_REWRITES": rewrites, "GRADIX_CACHE": "off"}
        program = f"import gradix, gradix.numpy as jnp; {CRASHES[name]}"
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    assert run(f"off,+{name}").stdout == "True\n"
    assert run("off").returncode < 0, f"jaxlib has mended what {name} is for"


# Per rewrite: a program that some versions compile for hours without it.
HANGS = {
    "keys_through_memory": "print(gradix.jit(gradix.vmap(lambda k: jnp.exp(random.uniform(random.split(random.fold_in(k, 1))[1]))))"
    "(random.split(random.key(0), 1600)).shape)"
}


def ends(name: str, rewrites: str, seconds: float) -> bool:
    program = f"import gradix, gradix.numpy as jnp; from gradix import random; {HANGS[name]}"
    environment = {**os.environ, "GRADIX_REWRITES": rewrites, "GRADIX_CACHE": "off"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return done.stdout == "(1600,)\n"


@pytest.mark.parametrize("name", HANGS)
def test_compilation_ends(name):
    assert ends(name, f"off,+{name}", 250)


@pytest.mark.slow
@pytest.mark.parametrize("name", HANGS)
def test_compilation_does_not_end_without(name):
    if ends(name, "off", 60):
        pytest.skip("this jaxlib compiles it")


BETWEEN_DEVICES = {
    "collective_extrema_keep_nan",
    "extrema_over_devices",
}  # shown in tests/devices/eight/test_collectives.py


def test_every_rewrite_for_correctness_has_a_defect():
    assert {r.name for r in TABLE.rewrites if r.kind == CORRECTNESS} == set(DEFECTS) | set(CRASHES) | set(
        HANGS
    ) | BETWEEN_DEVICES


# The smallest numbers of each type, halves and thirds of them, and all about them.
SMALL = np.concatenate(
    [
        [0.0, -0.0, 1e-30, -1e-30, INF, -INF, NAN],
        *[sign * 2.0 ** np.arange(-20, 18) * m for sign in (1, -1) for m in (1, 1.5, 1.0001, 0.9999, 1.25)],
    ]
)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "target",
    [
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    ],
)
def test_floats_of_few_bits_are_rounded_as_numpy_does(source, target):
    with np.errstate(all="ignore"):
        x = np.tile(SMALL.astype(source), 3)
        want = x.astype(target).astype("float32")
    f = gradix.jit(lambda x: x.astype(target).astype("float32"))
    for compiled in (f, f.lower(x).compile()):
        found = np.asarray(compiled(x))
        np.testing.assert_array_equal(found, want)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(want[numbers]))
