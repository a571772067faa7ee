"""Programs that were reported to be slower than with JAX, although no table showed it, each in its own processes.

`python -m benchmarks --group reported --rounds 9` is how they were measured: fresh processes by turns.
"""

from benchmarks.case import case


def reported(title, limit=1.03):
    def register(program):
        def make(x):
            function, args = program(x)
            compiled = x.api.jit(function)
            return lambda: compiled(*args)

        case(title, "reported", limit, alone=True)(make)
        return program

    return register


@reported("per-example gradients of a small network")
def per_example(x):
    sizes = (16, 32, 32, 1)
    weights = [(x.array(n, m, seed=n) - 1.0, x.array(m, seed=m) - 1.0) for n, m in zip(sizes, sizes[1:])]

    def loss(weights, row, wanted):
        for w, b in weights[:-1]:
            row = x.np.tanh(row @ w + b)
        w, b = weights[-1]
        return ((row @ w + b - wanted) ** 2).sum()

    each = x.api.vmap(x.api.grad(loss), in_axes=(None, 0, 0))
    return each, (weights, x.array(128, 16), x.array(128, 1))


@reported("a stack of 200 products of 64x64")
def products(x):
    return x.np.matmul, (x.array(200, 64, 64), x.array(200, 64, 64, seed=1))


@reported("n-body force, 256 bodies")
def bodies(x):
    def force(places, masses):
        apart = places[None] - places[:, None]
        near = (apart**2).sum(-1) + 1e-3
        return (apart * (masses[None, :] * near**-1.5)[..., None]).sum(1)

    return force, (x.array(256, 3), x.array(256))


@reported("fft of 2^18 values")
def transform(x):
    return (lambda v: x.np.fft.fft(v)), (x.array(1 << 18) + 0j * x.array(1 << 18),)


@reported("gradient of a small convolution")
def convolution(x):
    def loss(kernel, images):
        out = x.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (x.np.maximum(out, 0) ** 2).mean()

    return x.api.grad(loss, argnums=(0, 1)), (x.array(3, 3, 8, 16), x.array(8, 28, 28, 8))
