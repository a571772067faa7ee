"""Compiled programs whose arithmetic takes the time; each call waits for its result."""

from benchmarks.case import case, uniform
from benchmarks.cases.grad import mlp_loss, mlp_params

LIMIT = 1.05
MILLION = 1_000_000


def compiled(x, function, *args):
    """A call of the compiled function that returns when the result is there."""
    f, block = x.api.jit(function), x.block
    return lambda: block(f(*args))


def numpy_matmul(n):
    """NumPy's product of two n by n matrices."""

    def make(x):
        a, b = x.array(n, n), x.array(n, n, seed=1)
        return lambda: a @ b

    return make


@case("matmul 256", "kernels", LIMIT, numpy=numpy_matmul(256))
def matmul_256(x):
    return compiled(x, x.np.matmul, x.array(256, 256), x.array(256, 256, seed=1))


@case("matmul 1024", "kernels", LIMIT, numpy=numpy_matmul(1024))
def matmul_1024(x):
    return compiled(x, x.np.matmul, x.array(1024, 1024), x.array(1024, 1024, seed=1))


@case("softmax 1000x1000", "kernels", LIMIT)
def softmax(x):
    return compiled(x, lambda a: x.nn.softmax(a, axis=-1), x.array(1000, 1000))


@case("layer norm 1000x1000", "kernels", LIMIT)
def layer_norm(x):
    def norm(a, scale, shift):
        mean = a.mean(axis=-1, keepdims=True)
        variance = ((a - mean) ** 2).mean(axis=-1, keepdims=True)
        return (a - mean) * x.lax.rsqrt(variance + 1e-5) * scale + shift

    return compiled(x, norm, x.array(1000, 1000), x.array(1000), x.array(1000, seed=1))


@case("conv 8x32x32x16, 3x3 to 32", "kernels", LIMIT)
def conv(x):
    def run(images, kernel):
        layout = ("NHWC", "HWIO", "NHWC")
        return x.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout)

    return compiled(x, run, x.array(8, 32, 32, 16), x.array(3, 3, 16, 32))


@case("attention 4x8x128x32", "kernels", LIMIT)
def attention(x):
    def run(q, k, v):
        weights = x.nn.softmax(x.np.einsum("bhqd,bhkd->bhqk", q, k) / 32**0.5, axis=-1)
        return x.np.einsum("bhqk,bhkd->bhqd", weights, v)

    return compiled(x, run, *(x.array(4, 8, 128, 32, seed=i) for i in range(3)))


def elementwise(x):
    """exp(sin(x)*2 + x), not compiled."""
    np = x.np
    return lambda a: np.exp(np.sin(a) * 2 + a)


def numpy_exp_sin(x):
    """NumPy's exp(sin(x)*2 + x) of a million numbers."""
    f, a = elementwise(x), x.array(MILLION)
    return lambda: f(a)


@case("exp(sin(x)*2 + x), 1M", "kernels", LIMIT, numpy=numpy_exp_sin)
def exp_sin(x):
    return compiled(x, elementwise(x), x.array(MILLION))


@case("sum, 1M", "kernels", LIMIT, numpy=lambda x: x.array(MILLION).sum)
def total(x):
    return compiled(x, x.np.sum, x.array(MILLION))


@case("cumsum, 1M", "kernels", LIMIT, numpy=lambda x: x.array(MILLION).cumsum)
def cumsum(x):
    return compiled(x, x.np.cumsum, x.array(MILLION))


def places(x):
    """A million indices into a million places, in no order."""
    return x.np.asarray((uniform(MILLION, seed=7) - 0.5) * (MILLION - 1)).astype(x.np.int32)


def numpy_gather(x):
    """NumPy's take by random index."""
    a, i = x.array(MILLION), places(x)
    return lambda: a[i]


@case("gather, 1M", "kernels", LIMIT, numpy=numpy_gather)
def gather(x):
    return compiled(x, lambda a, i: a[i], x.array(MILLION), places(x))


def numpy_scatter_add(x):
    """NumPy's add at random index."""
    a, i, values = x.array(MILLION), places(x), x.array(MILLION, seed=1)

    def run():
        b = a.copy()
        x.np.add.at(b, i, values)
        return b

    return run


@case("scatter-add, 1M", "kernels", LIMIT, numpy=numpy_scatter_add)
def scatter_add(x):
    return compiled(x, lambda a, i, v: a.at[i].add(v), x.array(MILLION), places(x), x.array(MILLION, seed=1))


def numpy_normal(x):
    """NumPy's own generator."""
    rng = x.np.random.default_rng(0)
    return lambda: rng.standard_normal(MILLION, x.np.float32)


@case("normal deviates, 1M", "kernels", LIMIT, numpy=numpy_normal)
def normal(x):
    return compiled(x, lambda key: x.random.normal(key, (MILLION,)), x.random.key(0))


@case("MLP training step", "kernels", LIMIT)
def mlp_step(x):
    sizes = (64, 256, 256, 10)
    loss = mlp_loss(x)

    def step(params, inputs, wanted):
        slope = x.api.grad(loss)(params, inputs, wanted)
        return x.api.tree.map(lambda p, g: p - 0.01 * g, params, slope)

    return compiled(x, step, mlp_params(x, sizes), x.array(128, 64), x.array(128, 10))


@case("RNN scan, 200 steps of 64", "kernels", LIMIT)
def rnn(x):
    def run(w, u, inputs):
        def step(state, value):
            state = x.np.tanh(state @ w + value @ u)
            return state, state

        return x.lax.scan(step, x.np.zeros((16, 64)), inputs)

    return compiled(x, run, x.array(64, 64) / 64, x.array(32, 64) / 32, x.array(200, 16, 32))
