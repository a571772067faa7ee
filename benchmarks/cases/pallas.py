"""Kernels in Pallas, each beside the plain function of the same name; JAX interprets them on a CPU."""

import importlib

from benchmarks.case import case


def kernels_of(x):
    """The module of kernels of a library."""
    return importlib.import_module(f"{x.api.__name__}.experimental.pallas")


def axpy_of(x, n, b):
    pl = kernels_of(x)

    def kernel(x, y, o):
        o[...] = x[...] + 2 * y[...]

    block = pl.BlockSpec((b,), lambda i: (i,))
    shape = x.api.ShapeDtypeStruct((n,), "float32")
    return pl.pallas_call(kernel, shape, grid=(n // b,), in_specs=[block] * 2, out_specs=block, interpret=True)


def softmax_of(x, n, m, b):
    pl, np = kernels_of(x), x.np

    def kernel(x, o):
        e = np.exp(x[...] - x[...].max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)

    block = pl.BlockSpec((b, m), lambda i: (i, 0))
    shape = x.api.ShapeDtypeStruct((n, m), "float32")
    return pl.pallas_call(kernel, shape, grid=(n // b,), in_specs=[block], out_specs=block, interpret=True)


def product_of(x, n, b):
    pl, np = kernels_of(x), x.np

    def kernel(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = np.zeros(o.shape)

        o[...] += x[...] @ y[...]

    specs = [pl.BlockSpec((b, b), lambda i, j, k: (i, k)), pl.BlockSpec((b, b), lambda i, j, k: (k, j))]
    out = pl.BlockSpec((b, b), lambda i, j, k: (i, j))
    shape, grid = x.api.ShapeDtypeStruct((n, n), "float32"), (n // b,) * 3
    return pl.pallas_call(kernel, shape, grid=grid, in_specs=specs, out_specs=out, interpret=True)


def attention_of(x, heads, n, d, b):
    """Attention over blocks of keys, whose sums are carried."""
    pl, np, lax = kernels_of(x), x.np, x.lax

    def kernel(q, k, v, o):
        queries = q[...] * d**-0.5

        def turn(j, carry):
            acc, top, total = carry
            s = queries @ k[pl.ds(j * b, b), :].T
            new = np.maximum(top, s.max(-1))
            p, scale = np.exp(s - new[:, None]), np.exp(top - new)
            acc = acc * scale[:, None] + p @ v[pl.ds(j * b, b), :]
            return acc, new, total * scale + p.sum(-1)

        first = np.zeros((b, d)), np.full(b, -np.inf), np.zeros(b)
        acc, _, total = lax.fori_loop(0, n // b, turn, first)
        o[...] = acc / total[:, None]

    rows = pl.BlockSpec((None, b, d), lambda h, i: (h, i, 0))
    whole = pl.BlockSpec((None, n, d), lambda h, i: (h, 0, 0))
    shape = x.api.ShapeDtypeStruct((heads, n, d), "float32")
    return pl.pallas_call(
        kernel, shape, grid=(heads, n // b), in_specs=[rows, whole, whole], out_specs=rows, interpret=True
    )


def plain_attention(x, d):
    """Attention that holds all scores."""

    def attention(q, k, v):
        scores = x.np.einsum("hqd,hkd->hqk", q, k) * d**-0.5
        return x.np.einsum("hqk,hkd->hqd", x.nn.softmax(scores), v)

    return attention


def timed(x, function, *args):
    """Calls of a compiled function."""
    compiled = x.api.jit(function)
    return lambda: x.block(compiled(*args))


def squares(x, function):
    """The gradient of the sum of squares of a function of attention's arguments."""
    return x.api.grad(lambda *args: (function(*args) ** 2).sum(), (0, 1, 2))


@case("kernel: axpy of 65536, blocks of 1024", "pallas", limit=0.2)
def axpy(x):
    return timed(x, axpy_of(x, 65536, 1024), x.array(65536), x.array(65536, seed=1))


@case("plain: axpy of 65536", "pallas", limit=1.1)
def axpy_plain(x):
    return timed(x, lambda a, b: a + 2 * b, x.array(65536), x.array(65536, seed=1))


@case("kernel: softmax of 512 x 512, 8 rows a block", "pallas", limit=0.2)
def softmax(x):
    return timed(x, softmax_of(x, 512, 512, 8), x.array(512, 512))


@case("plain: softmax of 512 x 512", "pallas", limit=1.1)
def softmax_plain(x):
    return timed(x, x.nn.softmax, x.array(512, 512))


@case("kernel: product of 512, blocks of 128", "pallas", limit=0.3)
def product(x):
    return timed(x, product_of(x, 512, 128), x.array(512, 512), x.array(512, 512, seed=1))


@case("plain: product of 512", "pallas", limit=1.1)
def product_plain(x):
    return timed(x, lambda a, b: a @ b, x.array(512, 512), x.array(512, 512, seed=1))


@case("kernel: attention, 4 heads of 512, blocks of 128", "pallas", limit=0.9)
def attention(x):
    args = [x.array(4, 512, 64, seed=i) for i in range(3)]
    return timed(x, attention_of(x, 4, 512, 64, 128), *args)


@case("plain: attention, 4 heads of 512", "pallas", limit=1.1)
def attention_plain(x):
    args = [x.array(4, 512, 64, seed=i) for i in range(3)]
    return timed(x, plain_attention(x, 64), *args)


@case("gradient of plain attention, 4 heads of 512", "pallas", limit=1.1)
def attention_gradient_plain(x):
    args = [x.array(4, 512, 64, seed=i) for i in range(3)]
    return timed(x, squares(x, plain_attention(x, 64)), *args)


@case("gradient of attention, a kernel here and plain in JAX", "pallas", limit=1.0)
def attention_gradient(x):
    args = [x.array(4, 512, 64, seed=i) for i in range(3)]
    is_ours = x.api.__name__ == "gradix"  # JAX has no derivative of kernels
    function = attention_of(x, 4, 512, 64, 128) if is_ours else plain_attention(x, 64)
    return timed(x, squares(x, function), *args)
