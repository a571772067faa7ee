"""Tracing functions, and lowering their programs to text; every call traces a new function object."""

from benchmarks.case import case
from benchmarks.cases.grad import mlp_loss, mlp_params


def chain(x, operations=900):
    """A new function of `operations` elementwise operations."""
    sin = x.np.sin

    def run(v):
        for _ in range(operations // 3):
            v = sin(v) * 2.0 + v
        return v

    return run


def scalar_chain(x, operations=900):
    """Like `chain`, summed to a scalar."""
    run = chain(x, operations - 1)
    return lambda v: run(v).sum()


@case("trace 900 operations", "trace", 0.15)
def plain(x):
    a = x.array(8)
    return lambda: x.api.make_jaxpr(chain(x))(a)


@case("trace their grad", "trace", 0.12)
def grad(x):
    a = x.array(8)
    return lambda: x.api.make_jaxpr(x.api.grad(scalar_chain(x)))(a)


@case("trace their vmap", "trace", 0.12)
def vmap(x):
    a = x.array(3, 8)
    return lambda: x.api.make_jaxpr(x.api.vmap(chain(x)))(a)


@case("trace a hessian of 300 operations", "trace", 0.12)
def hessian(x):
    a = x.array(8)
    return lambda: x.api.make_jaxpr(x.api.hessian(scalar_chain(x, 300)))(a)


@case("trace an MLP's vmap(grad)", "trace", 0.15)
def mlp(x):
    params, inputs, wanted = mlp_params(x), x.array(32, 8), x.array(32, 4)

    def run():
        example_grads = x.api.vmap(x.api.grad(mlp_loss(x)), in_axes=(None, 0, 0))
        return x.api.make_jaxpr(example_grads)(params, inputs, wanted)

    return run


def traced_chain(x):
    """A function that prepares a traced program that is not lowered yet."""
    a = x.array(8)
    return lambda: x.api.jit(chain(x)).trace(a)


@case("lower 900 operations", "trace", 0.4, fresh=traced_chain)
def lower(x):
    return lambda traced: (traced.lower(), None)[1]


@case("lower 900 operations to text", "trace", 0.4, fresh=traced_chain)
def lower_to_text(x):
    return lambda traced: (traced.lower().as_text(), None)[1]
