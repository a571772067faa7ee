"""Drawn chains of operations on an array whose size values decide, and their NumPy-like meaning on the true elements.

A chain is a list of steps; each is a function of one array with at least one axis, the first of which is the counted one. Applied
to the true elements eagerly, it says what the compiled program must give.

`python -m tests.counted.chains [FIRST [COUNT [SECONDS [COMPILED [WITHIN]]]]]` tries that many chains, on the host or by compiled
programs, alone or within `vmap`, `checkpoint` and loops, and prints those that are wrong or refused, and the totals.
"""

import contextlib
import sys
import time
from typing import NamedTuple

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.counted.on_host import on_host


def _running(x):
    return lax.scan(lambda c, v: (c * 0.5 + v, c + v), jnp.zeros(x.shape[1:]), x)[1]


def _mean_free(x):
    return x - x.sum(0) / (x.shape[0] + 1)


def _sums_of_groups(x):
    groups, which = jnp.unique(x > 0 if x.ndim == 1 else x[:, 0] > 0, return_inverse=True)
    return gradix.ops.segment_sum(x, which, num_segments=groups.shape[0])


@gradix.custom_vjp
def _rule(x):
    return x[1:] * 2 if x.ndim == 1 else jnp.cos(x)


_rule.defvjp(
    lambda x: (_rule(x), x),
    lambda x, ct: (
        jnp.concatenate([jnp.zeros(x.shape[0] - ct.shape[0]), 2 * ct]) if x.ndim == 1 else -jnp.sin(x) * ct,
    ),
)

STEPS = {
    "sin": jnp.sin,
    "square": lambda x: x * x / 4,
    "relu": lambda x: jnp.maximum(x, 0.1),
    "negative mask": lambda x: x[x < 0.4] if x.ndim == 1 else x[x[:, 0] < 0.4],
    "positive mask": lambda x: x[x > -0.7] if x.ndim == 1 else x[x[:, 1] > -0.7],
    "reversed": lambda x: x[::-1],
    "without the first": lambda x: x[1:],
    "without the last two": lambda x: x[:-2],
    "at most three": lambda x: x[:3],
    "every second": lambda x: x[::2],
    "every second from the end": lambda x: x[::-2],
    "every third of a part": lambda x: x[1:-1:3],
    "some from the end": lambda x: x[-2::-1],
    "padded by its sum": lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1), constant_values=x.sum() / 9),
    "apart": lambda x: lax.pad(x, np.float32(0.5), [(1, -1, 2), *[(0, 0, 0)] * (x.ndim - 1)]),
    "sorted": lambda x: jnp.sort(x, 0),
    "order": lambda x: x[jnp.argsort(x if x.ndim == 1 else x[:, 0], stable=True)],
    "sums": lambda x: jnp.cumsum(x, 0) / 3,
    "sums from the end": lambda x: lax.cumsum(x, 0, reverse=True) / 3,
    "differences": lambda x: jnp.diff(x, axis=0),
    "joined": lambda x: jnp.concatenate([x, 2 * x]),
    "joined with a constant": lambda x: jnp.concatenate([jnp.ones((2, *x.shape[1:])) / 3, x]),
    "padded": lambda x: jnp.pad(x, [(1, 2)] + [(0, 0)] * (x.ndim - 1), constant_values=0.3),
    "rolled": lambda x: jnp.roll(x, 2, 0),
    "centred": _mean_free,
    "normed": lambda x: x / (1 + (x * x).sum(0)),
    "softmax": lambda x: gradix.nn.softmax(x, 0),
    "outer": lambda x: (x[:, None] * x[None, :]).sum(1) / 4 if x.ndim == 1 else x,
    "two columns": lambda x: jnp.stack([x, 1 - x], 1) if x.ndim == 1 else x,
    "one column": lambda x: x if x.ndim == 1 else x.sum(1),
    "flat": lambda x: x.ravel(),
    "product": lambda x: x if x.ndim == 1 else (x @ jnp.array([[1.0, 0.5], [-0.5, 0.25]])),
    "gram": lambda x: x if x.ndim == 1 else (x @ x.T) @ x / 5,
    "scan": _running,
    "map": lambda x: lax.map(lambda v: jnp.cos(v), x),
    "vmap": lambda x: gradix.vmap(lambda v: jnp.tanh(v))(x),
    "set": lambda x: x.at[: x.shape[0] // 2].set(0.25),
    "added": lambda x: x.at[jnp.arange(x.shape[0])].add(0.5),
    "checkpoint": gradix.checkpoint(lambda x: jnp.exp(-x * x)),
    "jit": gradix.jit(lambda x: jnp.sin(x) + 0.1),
    "branch": lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x) / 2,
    "clipped": lambda x: jnp.clip(x, -0.8, 0.9),
    "where": lambda x: jnp.where(x > 0, x, x * x),
    "repeated": lambda x: jnp.repeat(x, 2, 0),
    "segments": lambda x: gradix.ops.segment_sum(x, jnp.arange(x.shape[0]) % 3, num_segments=3) / 2,
    "split": lambda x: jnp.array_split(x, 2)[1],
    "the first": lambda x: jnp.concatenate([x, jnp.ones((1, *x.shape[1:]))])[0] * x,
    "deleted": lambda x: jnp.delete(x, x > 0.8, axis=0) if x.ndim == 1 else x,
    "tiled": lambda x: jnp.tile(x, (2, *[1] * (x.ndim - 1))) / 2,
    "trimmed": lambda x: jnp.trim_zeros(jnp.where(x > 0.3, x, 0)) if x.ndim == 1 else x,
    # both parts together have no pairs of equal elements, which rounding would tell apart
    "transform": lambda x: (lambda y: y.real + y.imag / 2)(jnp.fft.fft(x, axis=0)) / (1 + x.shape[0]),
    "orthogonal": lambda x: x if x.ndim == 1 else jnp.linalg.qr(x + 2 * jnp.eye(x.shape[0], x.shape[1]))[1] / 2,
    "one of two": lambda x: (
        x if x.ndim > 1 else lax.cond(x.sum() > 0.1, lambda x: x[x > 0.1], lambda x: x[x > 0.1] * 2, x)
    ),
    "distinct": lambda x: jnp.unique(x) if x.ndim == 1 else x,
    "products from the end": lambda x: lax.cumprod(1 + x / 9, 0, reverse=True),
    "largest so far": lambda x: lax.cummax(x, 0),
    "size": lambda x: x * (1 / (1.0 + jnp.asarray(x.shape[0]))),
    "sums of groups": _sums_of_groups,
    "steps": lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c + i / 3), x),
    "loop": lambda x: lax.while_loop(lambda c: (c * c).sum() > 1, lambda c: c / 2, lax.stop_gradient(x)) + x,
    "rule": _rule,
    "places": lambda x: x[jnp.nonzero(x > 0.2)[0]] if x.ndim == 1 else x,
    "kept in place": lambda x: x.at[x > 0.5].multiply(0.5) if x.ndim == 1 else x,
    "largest first": lambda x: jnp.where(jnp.arange(x.shape[0]) == jnp.argmax(x), 1.0, x) if x.ndim == 1 else x,
    "pairs": lambda x: jnp.tril(x[:, None] - x[None, :]).sum(1) / 4 if x.ndim == 1 else x,
    "rows of pairs": lambda x: jnp.sin(x[:, None] + x[None, :]).reshape(-1)[:7] if x.ndim == 1 else x,
    "attention": lambda x: gradix.nn.softmax(x @ x.T, 1) @ x if x.ndim == 2 else x,
    "solved": lambda x: x if x.ndim > 1 else jnp.linalg.solve(jnp.outer(x, x) + 3 * jnp.eye(x.shape[0]), x),
    "inserted": lambda x: jnp.insert(x, 0, 0.6, axis=0),
    "blocks": lambda x: jnp.convolve(x, jnp.array([0.5, 0.25, -0.25]), "same") if x.ndim == 1 else x,
    "ends": lambda x: jnp.concatenate([x[-2:], x[:1]]),
    "stacked": lambda x: jnp.stack([x, jnp.cos(x)]).sum(0) / 2,
    "of the larger": lambda x: jnp.maximum(x, x[::-1]),
    "variance": lambda x: x * (1 + jnp.sum((x - x.sum(0) / (1 + x.shape[0])) ** 2, 0)) / 3,
    "products": lambda x: jnp.cumprod(1 + x / 9, 0),
    "middle": lambda x: lax.dynamic_slice_in_dim(jnp.pad(x, [(2, 2)] + [(0, 0)] * (x.ndim - 1)), 1, 4),
    "mapped rows": lambda x: gradix.vmap(lambda v: jnp.sort(v).cumsum())(x) if x.ndim == 2 else x,
}
ENDS = {
    "sum": lambda x: jnp.sin(x).sum(),
    "mean square": lambda x: (x * x).sum() / (1 + x.size),
    "maximum": lambda x: jnp.max(x, initial=-2.0),
    "minimum": lambda x: jnp.min(x, initial=2.0),
    "norm": lambda x: jnp.sqrt(1 + (x * x).sum()),
    "logsumexp": lambda x: jnp.log(1 + jnp.exp(x).sum()),
    "product": lambda x: jnp.prod(1 + x / 8),
}


class Chain(NamedTuple):
    """A chain, and what it is applied to: a vector, and the masks that decide how much of it."""

    steps: list[str]
    end: str
    x: np.ndarray
    masks: list[np.ndarray]

    def function(self):
        def f(x):
            for s in self.steps:
                x = STEPS[s](x)
            return ENDS[self.end](x)

        return f


def drawn(seed: int) -> Chain:
    """The chain of this number."""
    rng = np.random.default_rng(seed)
    steps = [list(STEPS)[i] for i in rng.integers(len(STEPS), size=rng.integers(1, 6))]
    end = list(ENDS)[rng.integers(len(ENDS))]
    n = int(rng.integers(1, 9))
    x = np.round(rng.uniform(-1.2, 1.2, n), 2).astype(np.float32)
    one = np.arange(n) == rng.integers(n)
    return Chain(steps, end, x, [np.zeros(n, bool), np.ones(n, bool), rng.random(n) < 0.6, one, ~one])


def _are_close(want, have) -> bool:
    return np.allclose(want, have, rtol=2e-4, atol=2e-5, equal_nan=True)


# what stands where a mask is false: no part of the result may depend on it
PLANTED = np.array([np.nan, np.inf, -np.inf, 3e38, np.nan, 0.0, -7.0, np.inf], np.float32)


def _meant(f, x, m) -> tuple | None:
    """The value of a chain for the true elements, and its gradient; None if it has no value for none."""
    kept = jnp.asarray(x[m])
    try:
        value = np.asarray(f(kept))
    except ValueError as e:
        if "empty" not in str(e):
            raise
        return None
    slope = np.zeros_like(x)
    slope[m] = np.asarray(gradix.grad(f)(kept))
    return value, slope


def _is_meant(f, x, m, is_value: bool, want, have) -> bool:
    if _are_close(want, have):
        return True
    # a compiled program may round otherwise, and so break a tie otherwise
    kept = jnp.asarray(x[m])
    if is_value:
        return _are_close(np.asarray(gradix.jit(f)(kept)), have)
    compiled = np.zeros_like(x)
    compiled[m] = np.asarray(gradix.jit(gradix.grad(f))(kept))
    return _are_close(compiled, have)


def differences(chain: Chain) -> list[str]:
    """What is wrong with a chain: values and gradients in both orders against those of the true elements."""
    f, x = chain.function(), chain.x
    whole = lambda x, m: f(x[m])  # noqa: E731
    tries = {
        "value": gradix.jit(whole),
        "jit of grad": gradix.jit(gradix.grad(whole)),
        "grad of jit": gradix.grad(gradix.jit(whole)),
    }
    found = []
    for m in chain.masks:
        meant = _meant(f, x, m)
        if meant is None:
            continue
        spoiled = np.where(m, x, PLANTED[: x.size])
        for name, g in tries.items():
            want = meant[0] if name == "value" else meant[1]
            have = np.asarray(g(jnp.asarray(spoiled), jnp.asarray(m)))
            if not _is_meant(f, x, m, name == "value", want, have):
                found.append(f"{x[m]} of {m}: {name} is {have}, should be {want}")
    return found


# what a chain is in: functions of it that take a row and a mask for each example
WITHIN = {
    "vmap": lambda whole: gradix.vmap(whole),
    "checkpoint": lambda whole: gradix.vmap(gradix.checkpoint(whole)),
    "scan": lambda whole: lambda xs, ms: lax.scan(lambda c, row: (c + 1, whole(*row)), 0, (xs, ms))[1],
    "map of checkpoint": lambda whole: lambda xs, ms: lax.map(lambda row: gradix.checkpoint(whole)(*row), (xs, ms)),
}


def differences_within(chain: Chain) -> list[str]:
    """What is wrong with a chain in `vmap`, in `checkpoint` and in the bodies of loops."""
    f, x = chain.function(), chain.x
    meant = [(m, *both) for m in chain.masks if (both := _meant(f, x, m)) is not None]
    if not meant:
        return []
    ms = np.stack([m for m, _, _ in meant])
    xs = np.where(ms, x, PLANTED[: x.size])
    found = []
    for name, made in WITHIN.items():
        g = made(lambda x, m: f(x[m]))
        values = np.asarray(gradix.jit(g)(jnp.asarray(xs), jnp.asarray(ms)))
        slopes = np.asarray(
            gradix.jit(gradix.grad(lambda xs, ms, g=g: g(xs, ms).sum()))(jnp.asarray(xs), jnp.asarray(ms))
        )
        for (m, value, slope), has, leans in zip(meant, values, slopes, strict=True):
            if not _is_meant(f, x, m, True, value, has):
                found.append(f"{x[m]} of {m} in {name}: value is {has}, should be {value}")
            if not _is_meant(f, x, m, False, slope, leans):
                found.append(f"{x[m]} of {m} in {name}: gradient is {leans}, should be {slope}")
    return found


def main(first: int = 0, count: int = 10_000, seconds: int = 10**9, compiled: int = 0, within: int = 0) -> None:
    """Try chains, and print what is wrong or refused, and the totals."""
    start, done, wrong, refused = time.monotonic(), 0, 0, 0
    with contextlib.nullcontext() if compiled else on_host():
        for seed in range(first, first + count):
            if time.monotonic() - start > seconds:
                break
            chain = drawn(seed)
            done += 1
            try:
                found = differences_within(chain) if within else differences(chain)
            except Exception as e:  # noqa: BLE001
                refused += 1
                print(f"{seed}: {chain.steps} then {chain.end}: {type(e).__name__}: {str(e)[:300]}", flush=True)
                found = []
            wrong += bool(found)
            for line in found:
                print(f"{seed}: {chain.steps} then {chain.end}: {line}", flush=True)
            if done % 400 == 0:
                gradix.clear_caches()
            if done % 500 == 0:
                print(f"{done} chains, {wrong} wrong, {refused} refused", flush=True)
    print(f"{done} chains, {wrong} wrong, {refused} refused", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
