"""Time programs with each rewrite and choice of the CPU's table on and off, to find those that no longer pay.

    python -m benchmarks --rewrites [--only sorts] [--markdown]

A program that takes the rewrite is compiled with it and without it, and the two run in turns. The table holds the
ratios of the times on to off, of a call and of the compilation; below 1, the rewrite pays. No ratio is an error: the
exit status is always 0.
"""

import gc
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import TABLE
from gradix._platforms.records import CORRECTNESS
from gradix._runtime.machine import cores
from gradix.experimental.sparse import BCOO

Program = tuple[Callable, tuple]
_PAYS = 0.97


def floats(*shape: int, dtype: str = "float32"):
    return (np.random.default_rng(0).random(shape) + 0.5).astype(dtype)


def whole(*shape: int, dtype: str = "int32", high: int = 100):
    return np.random.default_rng(0).integers(0, high, shape).astype(dtype)


def conv(x, w, **params) -> Program:
    params = {"window_strides": (1,) * (len(x) - 2), "padding": "SAME", **params}
    return lambda a, b: lax.conv_general_dilated(a, b, **params), (floats(*x), floats(*w))


def kernel_gradient(x, w, **params) -> Program:
    f, (a, b) = conv(x, w, **params)
    return gradix.grad(lambda b, a: (f(a, b) ** 2).sum()), (b, a)


def spd(count: int, n: int):
    a = floats(count, n, n)
    return a @ a.transpose(0, 2, 1) + n * np.eye(n, dtype="float32")


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def smooth_hinge(x):
    return gradix.value_and_grad(lambda x: jnp.maximum(x - 1.0, 0.0).sum())(x)


def small_loop(x):
    return lax.scan(lambda c, x: (jnp.tanh(c * 0.9 + x), c), jnp.zeros(64), x)


def layers(x, *weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def sparse_product(values, places, x):
    return BCOO((values, places), shape=(2000, 2000)) @ x


def chain(x, length: int = 30):
    for _ in range(length):
        x = jnp.sin(x) * 1.1
    return x


_LAYERS = (layers, (floats(8, 32), *[floats(32, 32) for _ in range(24)]))


def augmented(images):
    """Pictures, flipped at random, brightened by a random number and blurred."""

    def one(key, x):
        flip, bright = gradix.random.split(key)
        x = jnp.where(gradix.random.bernoulli(flip), x[:, ::-1], x) + gradix.random.uniform(bright)
        rows = x[2:] + x[1:-1] + x[:-2]
        return rows[:, 2:] + rows[:, 1:-1] + rows[:, :-2]

    return gradix.vmap(one)(gradix.random.split(gradix.random.key(0), len(images)), images)


PROGRAMS: dict[str, Program] = {
    "products_by_wider_dtypes": (jnp.matmul, (whole(256, 256, dtype="int8"), whole(256, 256, dtype="int8"))),
    "small_products_as_sums": (jnp.matmul, (floats(10_000, 3, 3), floats(10_000, 3, 3))),
    "complex_products_by_parts": (
        jnp.matmul,
        (floats(600, 600).astype("complex64"), floats(600, 600).astype("complex64")),
    ),
    "products_over_one_axis": (
        lambda x, y: jnp.einsum("bkij,blij->bkl", x, y),
        (floats(4, 128, 4, 128), floats(4, 64, 4, 128)),
    ),
    "stacks_without_transposes": (
        lambda x, y: jnp.einsum("bkm,bkn->bmn", x, y),
        (floats(4, 512, 512), floats(4, 512, 64)),
    ),
    "products_without_transposes": (lambda x, y: x.T @ y, (floats(512, 512), floats(512, 512))),
    "convolutions_by_wider_dtypes": (
        lambda a, b: lax.conv(a, b, (1, 1), "SAME", preferred_element_type=jnp.int32),
        (whole(4, 2, 64, 64, dtype="int8"), whole(3, 2, 3, 3, dtype="int8")),
    ),
    "convolutions_as_products": conv((16, 64, 32, 32), (64, 64, 1, 1)),
    "short_convolutions_as_sums": conv((16, 2, 5000), (3, 2, 3)),
    "correlations_by_numpy": (jnp.convolve, (floats(20_000), floats(500))),
    "convolutions_to_few_features": conv((8, 16, 64, 64), (2, 16, 3, 3)),
    "featurewise_convolutions": conv((8, 32, 32, 32), (32, 1, 3, 3), feature_group_count=32),
    "featurewise_kernel_gradients": kernel_gradient((8, 32, 16, 16), (32, 1, 3, 3), feature_group_count=32),
    "thin_convolutions_to_more_features": conv((16, 6, 64, 64), (16, 6, 5, 5)),
    "convolutions_group_by_group": kernel_gradient((8, 8, 32, 32), (16, 4, 3, 3), feature_group_count=2),
    "sums_by_blocks": (lambda x: x.sum(), (whole(1 << 20),)),
    "column_sums": (lambda x: x.sum(0), (floats(100, 5000),)),
    "log1p_in_sums": (lambda x: jnp.log1p(x).sum(), (floats(1 << 18),)),
    "formulas_before_extrema": (lambda x: lax.erfc(x).max(), (floats(1 << 18),)),
    "extrema_that_hide_nan": (softmax, (floats(512, 1024),)),
    "extrema_by_blocks": (lambda x: x.max(), (whole(1 << 20),)),
    "bounds_in_sums": (smooth_hinge, (floats(1 << 18),)),
    "positions_by_rows": (lambda x: x.argmax(), (whole(1 << 20, dtype="int8"),)),
    "products_by_blocks": (lambda x: x.prod(), (whole(1 << 20),)),
    "truths_by_blocks": (lambda x: x.all(), (np.ones(1 << 20, bool),)),
    "running_reductions_by_loops": (jnp.cumsum, (floats(1 << 16),)),
    "recurrences_by_loops": (gradix.grad(lambda x: jnp.cumprod(x).sum()), (floats(4096),)),
    "small_windows_by_slices": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
        (floats(32, 64, 64),),
    ),
    "winners_of_small_windows": (
        gradix.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID").sum()),
        (floats(32, 64, 64),),
    ),
    "sorts_by_numpy": (jnp.sort, (floats(100_000),)),
    "top_k_by_numpy": (lambda x: lax.top_k(x, 100), (floats(1 << 20),)),
    "ranks_by_numpy": (jnp.median, (floats(100_001),)),
    "places_by_writing": (lambda x: jnp.nonzero(x > 0.0, size=1 << 19)[0], (floats(1 << 20),)),
    "counts_by_elements": (lambda x: jnp.bincount(x, length=100), (whole(1 << 18),)),
    "lu_of_stacks": (lambda x: lax.linalg.lu(x), (floats(2048, 4, 4),)),
    "cholesky_of_stacks": (jnp.linalg.cholesky, (spd(2048, 4),)),
    "triangular_solves_of_stacks": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        (spd(2048, 4), floats(2048, 4, 2)),
    ),
    "sparse_products_by_rows": (sparse_product, (floats(40_000), whole(40_000, 2, high=2000), floats(2000, 128))),
    "sampled_products_by_blocks": (
        gradix.grad(lambda values, places, x: jnp.sum(sparse_product(values, places, x) ** 2)),
        (floats(40_000), whole(40_000, 2, high=2000), floats(2000, 256)),
    ),
    "few_draws_apart": (augmented, (floats(8, 64, 64),)),
    "bits_in_one_row": (lambda x: gradix.random.normal(gradix.random.key(0), (100_000, 3)) + x, (floats(3),)),
    "sines_by_vectors": (jnp.sin, (floats(1 << 16),)),
    "functions_by_vectors": (jnp.arctan, (floats(1 << 16),)),
    "halves_in_single": (jnp.exp, (floats(1 << 16, dtype="float16"),)),
    "remainders_by_vectors": (jnp.remainder, (floats(1 << 16), floats(1 << 16))),
    "powers_as_products": (lambda x: x**3.0, (floats(1 << 16),)),
    "powers_by_vectors": (jnp.power, (floats(1 << 16), floats(1 << 16))),
    "small_loops": (small_loop, (floats(2000, 64),)),
    "older_generator": (chain, (floats(64),)),
    "no_unrolling": (gradix.grad(lambda w, x: layers(x, w, w).sum()), (floats(32, 32), floats(8, 32))),
    "narrow_vectors": (lambda x: chain(x, 300), (floats(8),)),
    "small_products_in_loops": (
        lambda a, x: lax.fori_loop(0, 2000, lambda i, x: jnp.tanh(a @ x), x),
        (floats(8, 8), floats(8, 8)),
    ),
    "divided_convolutions": conv((16, 32, 64, 64), (32, 32, 3, 3)),
}


class Variant:
    """A program compiled under a selection of rewrites."""

    def __init__(self, program: Program, selection: str):
        f, args = program
        gradix.config.update("gradix_rewrites", selection)
        self.args = [jnp.asarray(a) for a in args]
        lowered = gradix.jit(lambda *args: f(*args)).lower(*self.args)
        self.facts = lowered._module.facts
        began = time.perf_counter()
        self.run = lowered.compile()
        self.compilation = time.perf_counter() - began
        gradix.config.update("gradix_rewrites", "all")

    def seconds(self, number: int) -> float:
        began = time.perf_counter()
        for _ in range(number):
            result = self.run(*self.args)
        gradix.block_until_ready(result)
        return (time.perf_counter() - began) / number


def measure(name: str, rounds: int = 9, budget: float = 0.4) -> tuple[float, float, bool]:
    """The ratios on to off of a call and of the compilation, and whether the program takes the rewrite at all."""
    program = PROGRAMS[name]
    compilations: list[list[float]] = [[], []]
    for turn in range(4):
        selections = ["all", f"all,-{name}"]
        made = {text: Variant(program, text) for text in (selections if turn % 2 else reversed(selections))}
        pair = [made[text] for text in selections]
        for kind, variant in zip(compilations, pair):
            kind.append(variant.compilation)
    number = max(1, int(budget / rounds / max(pair[0].seconds(1), pair[1].seconds(1), 1e-7) / 2))
    ratios = []
    gc.disable()
    for _ in range(rounds):
        ratios.append(pair[0].seconds(number) / pair[1].seconds(number))
    gc.enable()
    return (median(ratios), min(compilations[0]) / min(compilations[1]), is_taken(name, pair[0].facts))


def is_taken(name: str, facts) -> bool:
    choice = next((c for c in TABLE.choices if c.name == name), None)
    return choice.applies(facts, cores()) if choice is not None else name in facts.rewrites


def names(only: str = "") -> list[str]:
    """The rewrites and choices for speed, in the table's order."""
    return [r.name for r in (*TABLE.rewrites, *TABLE.choices) if r.kind != CORRECTNESS and only in r.name]


def main(only: str = "", markdown: bool = False) -> None:
    """Print the table, and the rewrites that no longer pay."""
    gradix.config.update("gradix_cache", "off")
    lost, idle = [], []
    if markdown:
        print("| rewrite | call, on to off | compilation, on to off |\n|---|--:|--:|")
    else:
        print(f"{'rewrite':36s}{'call':>8s}{'compile':>9s}   (times on, to times off)")
    for name in names(only):
        call, compilation, taken = measure(name)
        note = "" if taken else "   not taken by its program"
        row = (
            f"| [`{name}`](#{name}) | {call:.2f} | {compilation:.2f} |"
            if markdown
            else f"{name:36s}{call:8.2f}{compilation:9.2f}{note}"
        )
        print(row, flush=True)
        if not taken:
            idle.append(name)
        elif min(call, compilation) > _PAYS:
            lost.append(name)
    for title, found in (("Not taken", idle), ("Without a reason on this machine and jaxlib", lost)):
        if found:
            print(f"\n{title}: {', '.join(found)}")


if __name__ == "__main__":
    main()
