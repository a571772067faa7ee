"""How the time of first and later calls grows: with operations, leaves of a tree, layers, and nested functions.

Ratios between the lines of one kind show times that grow faster than the program. Each case has its own processes, and
one first call is timed in each: `python -m benchmarks --group scaling --rounds 1`.
"""

from benchmarks.case import case
from benchmarks.cases.startup import cache, never_called
from benchmarks.cases.trace import chain


def first_call(title, program, limit=1.0):
    """Register the first call of a new function, with empty caches."""

    def make(x):
        cache(x, None)
        return lambda prepared: prepared[0](*prepared[1])

    case(f"first call, {title}", "scaling", limit, fresh=never_called(program), alone=True)(make)


def later_call(title, program, limit=1.0):
    def make(x):
        cache(x, None)
        function, args = program(x)
        compiled = x.api.jit(function)
        return lambda: compiled(*args)

    case(f"later calls, {title}", "scaling", limit, alone=True)(make)


def operations(count):
    return lambda x: (chain(x, count), (x.array(8),))


def leaves(count):
    def program(x):
        tree = {f"w{i}": x.array(3, 4) for i in range(count)}
        return (lambda tree: x.api.tree.map(lambda w: w * 2.0 + 1.0, tree)), (tree,)

    return program


def layers(count, width=256):
    """A training step of residual layers with Adam."""

    def loss(x):
        def run(layers, inputs):
            for first, second in layers:
                inputs = inputs + x.np.tanh(inputs @ first) @ second
            return (inputs**2).mean()

        return run

    def program(x):
        weights = [(x.array(width, width) / width, x.array(width, width) / width) for _ in range(count)]
        zeros = x.api.tree.map(x.np.zeros_like, weights)
        each = x.api.tree.map

        def step(weights, mean, square, inputs):
            slopes = x.api.grad(loss(x))(weights, inputs)
            mean = each(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
            square = each(lambda s, g: 0.999 * s + 0.001 * g * g, square, slopes)
            weights = each(lambda w, m, s: w - 1e-3 * m / (x.np.sqrt(s) + 1e-8), weights, mean, square)
            return weights, mean, square

        return step, (weights, zeros, zeros, x.array(64, width))

    return program


def nested(depth):
    """Jitted functions, each of which calls the next."""

    def program(x):
        function = x.np.sin
        for _ in range(depth):
            function = x.api.jit(lambda v, inner=function: inner(v) * 1.01)
        return function, (x.array(8),)

    return program


for _count in (1_000, 10_000, 50_000):
    first_call(f"{_count:,} operations", operations(_count))
for _count in (100, 1_000, 10_000):
    first_call(f"a dict of {_count:,} arrays", leaves(_count))
    later_call(f"a dict of {_count:,} arrays", leaves(_count))
for _count in (12, 48, 96):
    first_call(f"a step of {_count} layers", layers(_count))
    later_call(f"a step of {_count} layers", layers(_count))
for _count in (50, 100, 200):
    first_call(f"{_count} functions inside of each other", nested(_count))
