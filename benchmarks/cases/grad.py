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


def torch_small_grad(x):
    """PyTorch's gradient of sum(sin(v) * v)."""
    a, torch = x.array(8).requires_grad_(), x.api
    return lambda: torch.autograd.grad(torch.sum(torch.sin(a) * a), a)


@case("grad of a small function, not compiled", "grad", 0.08, torch=torch_small_grad)
def small_grad(x):
    np, a = x.np, x.array(8)
    slope = x.api.grad(lambda v: np.sum(np.sin(v) * v))
    return lambda: slope(a)


def torch_mlp_grad(x):
    """PyTorch's gradient of the perceptron's loss."""
    params, inputs, wanted = mlp_params(x), x.array(32, 8), x.array(32, 4)
    leaves, loss, torch = [p.requires_grad_() for pair in params for p in pair], mlp_loss(x), x.api
    return lambda: torch.autograd.grad(loss(params, inputs, wanted), leaves)


@case("grad of a 3-layer MLP, not compiled", "grad", 0.1, torch=torch_mlp_grad)
def mlp_grad(x):
    params, inputs, wanted = mlp_params(x), x.array(32, 8), x.array(32, 4)
    slope = x.api.grad(mlp_loss(x))
    return lambda: slope(params, inputs, wanted)


def torch_vmap(x):
    """PyTorch's map of the same function."""
    a, torch = x.array(16, 8), x.api
    mapped = torch.func.vmap(lambda v: torch.sin(v) * 2.0 + v)
    return lambda: mapped(a)


@case("vmap, not compiled", "grad", 0.1, torch=torch_vmap)
def vmap(x):
    np, a = x.np, x.array(16, 8)
    mapped = x.api.vmap(lambda v: np.sin(v) * 2.0 + v)
    return lambda: mapped(a)
