"""What it costs to trace programs with symbolic sizes, beside the same programs with numbers for sizes.

"New" compares a trace in a scope made for it, where nothing is known of its dimensions, with a trace of a new size.
"Again" compares traces with dimensions, or a size, that were met before. Times are processor time, by turns; the
value is the 20th percentile of the turns.

python -m benchmarks.symbolic_tracing
python -m benchmarks.symbolic_tracing --only attention --turns 200
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable

import gradix
import gradix.numpy as jnp
from gradix import export, lax, nn

SIZE = 24
_new_sizes = itertools.count(1002, 2)  # even, as slices and reshapes below need them


def spec(*shape):
    return gradix.ShapeDtypeStruct(shape, "float32")


def mlp_step(layers, x, y):
    def loss(layers):
        h = x
        for w, b in layers[:-1]:
            h = nn.relu(h @ w + b)
        w, b = layers[-1]
        return ((h @ w + b - y) ** 2).mean()

    return gradix.tree.map(lambda p, g: p - 0.1 * g, layers, gradix.grad(loss)(layers))


def attention(q, k, v):
    length, width = q.shape
    q, k, v = (t.reshape(length, 4, width // 4).transpose(1, 0, 2) for t in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / (width // 4) ** 0.5
    i = jnp.arange(length)
    scores = jnp.where(i[:, None] >= i[None], scores, -1e9)
    return (nn.softmax(scores, -1) @ v).transpose(1, 0, 2).reshape(length, width)


def convolutions(x, w):
    h = nn.relu(lax.conv(x, w, (1, 1), "SAME"))
    return nn.relu(lax.conv(h, w, (1, 1), "SAME")).mean((2, 3))


def pad_and_join(x):
    return jnp.concatenate([jnp.pad(x, ((1, 1), (0, 0))), x[::2], x.reshape(-1, 2)[:3].repeat(4, 1)])


def normalized(x):
    return nn.gelu((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5))


def programs() -> dict[str, tuple[Callable, Callable]]:
    """For each name a program, and its arguments for a size."""
    attention_grad = gradix.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2))
    hessians = gradix.vmap(gradix.hessian(lambda r: (jnp.sin(r) ** 2).prod()))
    layers = [(spec(32, 32), spec(32)) for _ in range(4)]

    def rows(n):
        return [spec(n, 8)]

    return {
        "a step of a network": (mlp_step, lambda n: [layers, spec(n, 32), spec(n, 32)]),
        "attention": (attention, lambda n: [spec(n, 64)] * 3),
        "gradient of attention": (attention_grad, lambda n: [spec(n, 64)] * 3),
        "scan": (lambda x: lax.scan(lambda c, r: (jnp.tanh(c * 0.5 + r), c), x[0], x), rows),
        "convolutions": (convolutions, lambda n: [spec(n, 8, 32, 32), spec(8, 8, 3, 3)]),
        "sorting": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.median(x, 0)), rows),
        "einsum": (
            lambda x, y: jnp.einsum("bi,ij,bj->b", x, y, x) + jnp.einsum("bi,bj->ij", x, x).sum(),
            lambda n: [spec(n, 8), spec(8, 8)],
        ),
        "cholesky": (lambda x: jnp.linalg.cholesky(x.T @ x + jnp.eye(8)), rows),
        "gradient of solve": (gradix.grad(lambda x: jnp.linalg.solve(x.T @ x + jnp.eye(8), x.T).sum()), rows),
        "pad, slice, reshape, join": (pad_and_join, rows),
        "normalization": (normalized, rows),
        "hessians of rows": (hessians, lambda n: [spec(n, 5)]),
    }


def dimension():
    """A dimension in a new scope."""
    return export.symbolic_shape("n")[0]


def seconds(f: Callable, args) -> float:
    """Seconds of processor time for one trace of a function not traced before."""

    def fresh(*xs):
        return f(*xs)

    start = time.process_time()
    gradix.jit(fresh).trace(*args)
    return time.process_time() - start


def costs(f: Callable, arguments: Callable, turns: int) -> tuple[float, float, float]:
    """Seconds of a trace with numbers, and the ratios of traces with symbolic sizes to it: new ones, and again."""
    known = dimension()
    sizes = [lambda: SIZE, lambda: known, lambda: next(_new_sizes), dimension]
    for size in sizes * 3:
        seconds(f, arguments(size()))
    taken = [[seconds(f, arguments(size())) for size in sizes] for _ in range(turns)]
    plain, again, new_plain, new = (sorted(column)[turns // 5] for column in zip(*taken))
    return plain, new / new_plain, again / plain


def main() -> int:
    """Print a table for the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.symbolic_tracing")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--only", default="", help="programs with this in their names")
    options = parser.parse_args()
    print("| program | plain, ms | symbolic / plain, new | again |\n|---|---:|---:|---:|")
    for name, (f, arguments) in programs().items():
        if options.only in name:
            plain, new, again = costs(f, arguments, options.turns)
            print(f"| {name} | {plain * 1e3:.2f} | {new:.2f} | {again:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
