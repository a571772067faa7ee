"""Compiled programs whose arithmetic takes the time; each call waits for its result."""

import numpy

from benchmarks.case import case, uniform
from benchmarks.cases.grad import mlp_loss, mlp_params

LIMIT = 1.05
MILLION = 1_000_000


def compiled(x, function, *args):
    """A call of the compiled function that returns when the result is there."""
    f, block = x.api.jit(function), x.block
    return lambda: block(f(*args))


def eager_matmul(n):
    """NumPy's and PyTorch's product of two n by n matrices."""

    def make(x):
        a, b = x.array(n, n), x.array(n, n, seed=1)
        return lambda: a @ b

    return make


@case("matmul 256", "kernels", LIMIT, numpy=eager_matmul(256), torch=eager_matmul(256))
def matmul_256(x):
    return compiled(x, x.np.matmul, x.array(256, 256), x.array(256, 256, seed=1))


@case("matmul 1024", "kernels", LIMIT, numpy=eager_matmul(1024), torch=eager_matmul(1024))
def matmul_1024(x):
    return compiled(x, x.np.matmul, x.array(1024, 1024), x.array(1024, 1024, seed=1))


def torch_softmax(x):
    """PyTorch's softmax of rows."""
    a = x.array(1000, 1000)
    return lambda: x.api.softmax(a, -1)


@case("softmax 1000x1000", "kernels", LIMIT, torch=torch_softmax)
def softmax(x):
    return compiled(x, lambda a: x.nn.softmax(a, axis=-1), x.array(1000, 1000))


def torch_layer_norm(x):
    """PyTorch's own layer norm."""
    a, scale, shift = x.array(1000, 1000), x.array(1000), x.array(1000, seed=1)
    return lambda: x.nn.layer_norm(a, (1000,), scale, shift)


@case("layer norm 1000x1000", "kernels", LIMIT, torch=torch_layer_norm)
def layer_norm(x):
    def norm(a, scale, shift):
        mean = a.mean(axis=-1, keepdims=True)
        variance = ((a - mean) ** 2).mean(axis=-1, keepdims=True)
        return (a - mean) * x.lax.rsqrt(variance + 1e-5) * scale + shift

    return compiled(x, norm, x.array(1000, 1000), x.array(1000), x.array(1000, seed=1))


def torch_conv(x):
    """PyTorch's convolution in the layout that is its default, channels before places."""
    images, kernel = x.array(8, 16, 32, 32), x.array(32, 16, 3, 3)
    return lambda: x.nn.conv2d(images, kernel, padding=1)


@case("conv 8x32x32x16, 3x3 to 32", "kernels", LIMIT, torch=torch_conv)
def conv(x):
    def run(images, kernel):
        layout = ("NHWC", "HWIO", "NHWC")
        return x.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout)

    return compiled(x, run, x.array(8, 32, 32, 16), x.array(3, 3, 16, 32))


def torch_attention(x):
    """PyTorch's fused attention."""
    q, k, v = (x.array(4, 8, 128, 32, seed=i) for i in range(3))
    return lambda: x.nn.scaled_dot_product_attention(q, k, v)


def attended(x):
    """Values averaged by softmax of products."""

    def run(q, k, v):
        weights = x.nn.softmax(x.np.einsum("bhqd,bhkd->bhqk", q, k) / 32**0.5, axis=-1)
        return x.np.einsum("bhqk,bhkd->bhqd", weights, v)

    return run


@case("attention 4x8x128x32", "kernels", LIMIT, torch=torch_attention)
def attention(x):
    return compiled(x, attended(x), *(x.array(4, 8, 128, 32, seed=i) for i in range(3)))


def torch_attention_gradients(x):
    """PyTorch's gradients through its fused attention."""
    inputs = [x.array(4, 8, 128, 32, seed=i).requires_grad_() for i in range(3)]
    return lambda: x.api.autograd.grad((x.nn.scaled_dot_product_attention(*inputs) ** 2).sum(), inputs)


@case("gradients of attention", "kernels", LIMIT, torch=torch_attention_gradients)
def attention_gradients(x):
    run = attended(x)
    slopes = x.api.grad(lambda q, k, v: (run(q, k, v) ** 2).sum(), (0, 1, 2))
    return compiled(x, slopes, *(x.array(4, 8, 128, 32, seed=i) for i in range(3)))


def numpy_pad(x):
    """NumPy's pad."""
    a = x.array(1000, 1000)
    return lambda: x.np.pad(a, 2, mode="edge")


def torch_pad(x):
    """PyTorch's padding of an image by its edge."""
    a = x.array(1, 1, 1000, 1000)
    return lambda: x.nn.pad(a, (2, 2, 2, 2), mode="replicate")


@case("pad with edge 1000x1000", "kernels", LIMIT, numpy=numpy_pad, torch=torch_pad)
def pad_edge(x):
    return compiled(x, lambda a: x.np.pad(a, 2, mode="edge"), x.array(1000, 1000))


def elementwise(x):
    """exp(sin(x)*2 + x), not compiled."""
    np = x.np
    return lambda a: np.exp(np.sin(a) * 2 + a)


def eager_exp_sin(x):
    """NumPy's and PyTorch's exp(sin(x)*2 + x) of a million numbers."""
    f, a = elementwise(x), x.array(MILLION)
    return lambda: f(a)


@case("exp(sin(x)*2 + x), 1M", "kernels", LIMIT, numpy=eager_exp_sin, torch=eager_exp_sin)
def exp_sin(x):
    return compiled(x, elementwise(x), x.array(MILLION))


def eager_sum(x):
    """NumPy's and PyTorch's sum of a million numbers."""
    return x.array(MILLION).sum


@case("sum, 1M", "kernels", LIMIT, numpy=eager_sum, torch=eager_sum)
def total(x):
    return compiled(x, x.np.sum, x.array(MILLION))


def eager_cumsum(x):
    """NumPy's and PyTorch's running sum of a million numbers."""
    a = x.array(MILLION)
    return lambda: a.cumsum(0)


@case("cumsum, 1M", "kernels", LIMIT, numpy=eager_cumsum, torch=eager_cumsum)
def cumsum(x):
    return compiled(x, x.np.cumsum, x.array(MILLION))


def places(x):
    """A million indices into a million places, in no order."""
    return x.np.asarray(((uniform(MILLION, seed=7) - 0.5) * (MILLION - 1)).astype(numpy.int32))


def numpy_gather(x):
    """NumPy's take by random index."""
    a, i = x.array(MILLION), places(x)
    return lambda: a[i]


def torch_gather(x):
    """PyTorch's selection by random index."""
    a, i = x.array(MILLION), places(x)
    return lambda: a.index_select(0, i)


@case("gather, 1M", "kernels", LIMIT, numpy=numpy_gather, torch=torch_gather)
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


def torch_scatter_add(x):
    """PyTorch's add at random index, out of place."""
    a, i, values = x.array(MILLION), places(x), x.array(MILLION, seed=1)
    return lambda: a.index_add(0, i, values)


@case("scatter-add, 1M", "kernels", LIMIT, numpy=numpy_scatter_add, torch=torch_scatter_add)
def scatter_add(x):
    return compiled(x, lambda a, i, v: a.at[i].add(v), x.array(MILLION), places(x), x.array(MILLION, seed=1))


def numpy_normal(x):
    """NumPy's own generator."""
    rng = x.np.random.default_rng(0)
    return lambda: rng.standard_normal(MILLION, x.np.float32)


def torch_normal(x):
    """PyTorch's own generator."""
    return lambda: x.api.randn(MILLION)


@case("normal deviates, 1M", "kernels", LIMIT, numpy=numpy_normal, torch=torch_normal)
def normal(x):
    return compiled(x, lambda key: x.random.normal(key, (MILLION,)), x.random.key(0))


@case("normal deviates, 100 000x3", "kernels", LIMIT, torch=lambda x: lambda: x.api.randn(100_000, 3))
def normal_rows(x):
    return compiled(x, lambda key: x.random.normal(key, (100_000, 3)), x.random.key(0))


SIZES = (64, 256, 256, 10)


def torch_mlp_step(x):
    """PyTorch's gradient of the same loss, and new parameters."""
    params, inputs, wanted = mlp_params(x, SIZES), x.array(128, 64), x.array(128, 10)
    leaves, loss, torch = [p.requires_grad_() for pair in params for p in pair], mlp_loss(x), x.api

    def step():
        slope = torch.autograd.grad(loss(params, inputs, wanted), leaves)
        with torch.no_grad():
            return [p - 0.01 * g for p, g in zip(leaves, slope)]

    return step


@case("MLP training step", "kernels", LIMIT, torch=torch_mlp_step)
def mlp_step(x):
    loss = mlp_loss(x)

    def step(params, inputs, wanted):
        slope = x.api.grad(loss)(params, inputs, wanted)
        return x.api.tree.map(lambda p, g: p - 0.01 * g, params, slope)

    return compiled(x, step, mlp_params(x, SIZES), x.array(128, 64), x.array(128, 10))


def torch_rnn(x):
    """PyTorch's recurrent layer with the same weights."""
    layer = x.api.nn.RNN(32, 64, bias=False).requires_grad_(False)
    layer.weight_hh_l0.copy_((x.array(64, 64) / 64).T)
    layer.weight_ih_l0.copy_((x.array(32, 64) / 32).T)
    inputs = x.array(200, 16, 32)
    return lambda: layer(inputs)


@case("RNN scan, 200 steps of 64", "kernels", LIMIT, torch=torch_rnn)
def rnn(x):
    def run(w, u, inputs):
        def step(state, value):
            state = x.np.tanh(state @ w + value @ u)
            return state, state

        return x.lax.scan(step, x.np.zeros((16, 64)), inputs)

    return compiled(x, run, x.array(64, 64) / 64, x.array(32, 64) / 32, x.array(200, 16, 32))
