"""Transformed functions outside `jit`."""

from benchmarks.case import case


def mlp_params(x, sizes=(8, 16, 16, 4)):
    """A (weight, bias) pair for each of three layers."""
    return [(x.array(m, n, seed=m) / m, x.array(n, seed=n)) for m, n in zip(sizes[:-1], sizes[1:])]


def mlp_loss(x):
    """Squared error of a perceptron with tanh between its layers."""
    np = x.np

    def loss(params, inputs, wanted):
        *hidden, (w, b) = params
        for weight, bias in hidden:
            inputs = np.tanh(inputs @ weight + bias)
        return np.mean((inputs @ w + b - wanted) ** 2)

    return loss


@case("grad of a small function, not compiled", "grad", 0.08)
def small_grad(x):
    np, a = x.np, x.array(8)
    slope = x.api.grad(lambda v: np.sum(np.sin(v) * v))
    return lambda: slope(a)


@case("grad of a 3-layer MLP, not compiled", "grad", 0.1)
def mlp_grad(x):
    params, inputs, wanted = mlp_params(x), x.array(32, 8), x.array(32, 4)
    slope = x.api.grad(mlp_loss(x))
    return lambda: slope(params, inputs, wanted)


@case("vmap, not compiled", "grad", 0.1)
def vmap(x):
    np, a = x.np, x.array(16, 8)
    mapped = x.api.vmap(lambda v: np.sin(v) * 2.0 + v)
    return lambda: mapped(a)
