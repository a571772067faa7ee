"""Derivatives of typical programs: the time of tracing them, and of running the compiled program."""

from benchmarks.case import case
from benchmarks.cases.grad import mlp_loss, mlp_params
from benchmarks.cases.kernels import compiled

STEPS = 200


def rnn(x):
    """Forward and backward through a recurrent network of 200 steps."""
    np, lax = x.np, x.lax

    def loss(weights, inputs):
        def step(state, value):
            state = np.tanh(state @ weights[0] + value @ weights[1])
            return state, (state**2).mean()

        return lax.scan(step, np.zeros((16, 64)), inputs)[1].mean()

    return x.api.value_and_grad(loss), [(x.array(64, 64) / 64, x.array(32, 64) / 32), x.array(STEPS, 16, 32)]


def deep_mlp(x):
    """Forward and backward through 24 layers."""
    sizes = (64,) * 24 + (10,)
    return x.api.value_and_grad(mlp_loss(x)), [mlp_params(x, sizes), x.array(128, 64), x.array(128, 10)]


def mlp_hessian(x):
    """All second derivatives of a small perceptron."""
    return x.api.hessian(mlp_loss(x)), [mlp_params(x, (4, 8, 8, 2)), x.array(16, 4), x.array(16, 2)]


def third_derivative(x):
    """The third derivative of a scalar function, at 1000 points."""
    np, grad = x.np, x.api.grad
    return x.api.vmap(grad(grad(grad(lambda t: np.sin(t) * np.exp(-t * t) / (1 + t))))), [x.array(1000)]


def per_example(x):
    """A gradient for each of 128 examples."""
    slopes = x.api.vmap(x.api.grad(mlp_loss(x)), in_axes=(None, 0, 0))
    return slopes, [mlp_params(x, (64, 128, 128, 10)), x.array(128, 64), x.array(128, 10)]


def square_map(x):
    """A function from 500 numbers to 500."""
    np, w = x.np, x.array(500, 500) / 500
    return lambda v: np.tanh(w @ np.sin(v)) * v


def jacrev(x):
    """A Jacobian of 500x500, row by row."""
    return x.api.jacrev(square_map(x)), [x.array(500)]


def jacfwd(x):
    """A Jacobian of 500x500, column by column."""
    return x.api.jacfwd(square_map(x)), [x.array(500)]


def loop_gradient(x):
    """The gradient of a loop whose length is not known: `while_loop` on Gradix, `scan` of that length elsewhere."""
    np, lax = x.np, x.lax
    w = x.array(32, 32) / 32

    def step(v):
        return v + 0.01 * np.tanh(w @ v)

    def by_while(v):
        return lax.while_loop(lambda c: c[0] < STEPS, lambda c: (c[0] + 1, step(c[1])), (0, v))[1].sum()

    def by_scan(v):
        return lax.scan(lambda v, _: (step(v), None), v, None, length=STEPS)[0].sum()

    return x.api.grad(by_while if x.name == "gradix" else by_scan), [x.array(32)]


PROGRAMS = {
    "an RNN scan, forward and backward": rnn,
    "a deep MLP, forward and backward": deep_mlp,
    "a hessian of an MLP": mlp_hessian,
    "a 3rd derivative": third_derivative,
    "per-example gradients": per_example,
    "jacrev 500x500": jacrev,
    "jacfwd 500x500": jacfwd,
}


def register(name, program):
    """Two cases for one program: tracing it, and running it compiled."""

    @case(f"trace {name}", "derivatives", 0.15)
    def traced(x):
        function, arguments = program(x)
        # A new function object each time, so that nothing is found in a cache.
        return lambda: (x.api.make_jaxpr(lambda *a: function(*a))(*arguments), None)[1]

    @case(f"run {name}", "derivatives", 1.05)
    def run(x):
        function, arguments = program(x)
        return compiled(x, function, *arguments)


for _name, _program in PROGRAMS.items():
    register(_name, _program)


@case("run a while_loop's gradient (JAX: a scan's)", "derivatives", 6.0)
def run_loop(x):
    function, arguments = loop_gradient(x)
    return compiled(x, function, *arguments)
