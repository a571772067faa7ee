"""Loops of small operations, which XLA:CPU runs slowly unless it compiles them into one function, and loops where it must not."""

from benchmarks.case import case, uniform

LIMIT = 0.2
NOT_WORSE = 1.0


def loop(name, limit=LIMIT, grad=False):
    """Register `make(x) -> (function, arguments)` as a case that calls the function under jit, or its gradient."""

    def register(make):
        def prepare(x):
            function, args = make(x)
            if grad:
                scalar = function
                function = x.api.grad(lambda *a: sum(x.np.sum(leaf) for leaf in x.api.tree.leaves(scalar(*a))))
            compiled = x.api.jit(function)
            return lambda: compiled(*args)

        return case(name, "loops", limit)(prepare)

    return register


def _sixty_scalars(x):
    """A recurrence on 60 scalars, each step a chain of elementary functions: an ecological model of one season."""

    def step(state, t):
        new = []
        for i, v in enumerate(state):
            w = state[(i + 7) % 60]
            new.append(0.9 * v + 0.05 * x.np.tanh(w * t) + 0.01 * x.np.exp(-v * v) + 0.002 * i)
        return tuple(new), sum(new)

    def run(start, times):
        return x.lax.scan(step, tuple(start[i] for i in range(60)), times)[1]

    return run, (x.array(60), x.array(614))


loop("scan of 60 scalars")(_sixty_scalars)
loop("gradient of the scan of 60 scalars", grad=True)(_sixty_scalars)


def _kalman(x):
    """A Kalman filter of 4 states and 2 observations over 1000 steps."""
    a = x.np.eye(4) + 0.01 * x.array(4, 4)
    h, q, r = x.array(2, 4, seed=1), 0.01 * x.np.eye(4), 0.1 * x.np.eye(2)

    def inverse(m):
        det = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
        return x.np.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]]) / det

    def step(carry, z):
        mean, cov = carry
        mean, cov = a @ mean, a @ cov @ a.T + q
        gain = cov @ h.T @ inverse(h @ cov @ h.T + r)
        mean = mean + gain @ (z - h @ mean)
        cov = (x.np.eye(4) - gain @ h) @ cov
        return (mean, cov), mean

    return lambda z: x.lax.scan(step, (x.np.zeros(4), x.np.eye(4)), z)[1], (x.array(1000, 2),)


loop("Kalman filter")(_kalman)


def _cart_pole(x):
    """A pole on a cart under a small network, 500 steps; the reward is summed."""

    def step(params, state, _):
        w1, w2 = params
        pos, vel, angle, spin = state
        hidden = x.np.tanh(x.np.stack([pos, vel, angle, spin]) @ w1)
        force = x.np.tanh(hidden @ w2)[0]
        sin, cos = x.np.sin(angle), x.np.cos(angle)
        temp = (force + 0.05 * spin**2 * sin) / 1.1
        torque = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * torque * cos / 1.1
        new = (pos + 0.02 * vel, vel + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * torque)
        return new, x.np.cos(new[2]) - 0.1 * new[0] ** 2

    def run(params):
        start = tuple(x.np.float32(v) for v in (0.0, 0.0, 0.1, 0.0))
        return x.lax.scan(lambda s, t: step(params, s, t), start, None, length=500)[1].sum()

    return run, ((0.1 * x.array(4, 8), 0.1 * x.array(8, 1)),)


loop("cart-pole")(_cart_pole)
loop("gradient of the cart-pole", grad=True)(_cart_pole)


@loop("order book, insert and shift")
def order_book_insert(x):
    def step(book, price):
        place = x.np.sum(book < price)
        shifted = x.np.where(x.np.arange(32) > place, x.np.roll(book, 1), book)
        return shifted.at[place].set(price, mode="drop"), place

    return lambda book, prices: x.lax.scan(step, book, prices), (x.np.sort(x.array(32)), x.array(1000, seed=1))


@loop("order book, row update")
def order_book_rows(x):
    def step(book, event):
        row, size = event
        return book.at[row, 1].add(size), None

    rows = x.np.asarray((uniform(1000) * 60).astype("int32") % 64)
    return lambda b, r, s: x.lax.scan(step, b, (r, s))[0], (x.array(64, 4), rows, x.array(1000))


def _neuron(x):
    """Hodgkin and Huxley's neuron, 1000 Euler steps."""
    exp = x.np.exp

    def step(state, current):
        v, m, h, n = state
        am, bm = 0.1 * (v + 40.0) / (1 - exp(-(v + 40.0) / 10)), 4.0 * exp(-(v + 65.0) / 18)
        ah, bh = 0.07 * exp(-(v + 65.0) / 20), 1.0 / (1 + exp(-(v + 35.0) / 10))
        an, bn = 0.01 * (v + 55.0) / (1 - exp(-(v + 55.0) / 10)), 0.125 * exp(-(v + 65.0) / 80)
        dv = current - 120 * m**3 * h * (v - 50) - 36 * n**4 * (v + 77) - 0.3 * (v + 54.4)
        d = 0.01
        return (
            v + d * dv,
            m + d * (am * (1 - m) - bm * m),
            h + d * (ah * (1 - h) - bh * h),
            n + d * (an * (1 - n) - bn * n),
        ), v

    start = tuple(x.np.float32(v) for v in (-65.0, 0.05, 0.6, 0.32))
    return lambda i: x.lax.scan(step, start, i)[1], (10 * x.array(1000),)


loop("neuron model")(_neuron)
loop("gradient of the neuron model", grad=True)(_neuron)


@loop("mandelbrot", NOT_WORSE)
def mandelbrot(x):
    def run(re, im):
        def step(_, z):
            a, b, n = z
            small = a * a + b * b < 4
            return (x.np.where(small, a * a - b * b + re, a), x.np.where(small, 2 * a * b + im, b), n + small)

        return x.lax.fori_loop(0, 50, step, (re, im, x.np.zeros(1536, "int32")))[2]

    return run, (x.array(1536) * 2 - 2.5, x.array(1536, seed=1) - 1)


@loop("Collatz, vmapped", NOT_WORSE)
def collatz(x):
    def steps(n):
        def body(s):
            return x.np.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1

        return x.lax.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]

    return x.api.vmap(steps), (x.np.arange(1, 200),)


@loop("Lorenz system by Runge-Kutta", NOT_WORSE)
def lorenz(x):
    def slope(s):
        a, b, c = s
        return 10 * (b - a), a * (28 - c) - b, a * b - 8.0 / 3 * c

    def step(s, _):
        def moved(k, d):
            return tuple(v + d * w for v, w in zip(s, k))

        k1 = slope(s)
        k2 = slope(moved(k1, 0.005))
        k3 = slope(moved(k2, 0.005))
        k4 = slope(moved(k3, 0.01))
        s = tuple(v + 0.01 / 6 * (p + 2 * q + 2 * r + t) for v, p, q, r, t in zip(s, k1, k2, k3, k4))
        return s, s[0]

    return lambda s: x.lax.scan(step, tuple(s), None, length=1000)[1], (x.array(3),)


def _recurrent(x):
    """A recurrent network of 16 units over 200 steps."""
    return (
        lambda h, w, u, xs: x.lax.scan(lambda h, v: (x.np.tanh(h @ w + v @ u),) * 2, h, xs)[1],
        (x.array(16), 0.1 * x.array(16, 16), 0.1 * x.array(8, 16), x.array(200, 8)),
    )


loop("recurrent network of 16 units")(_recurrent)
loop("gradient of the recurrent network", grad=True)(_recurrent)


@loop("gated network of 16 units")
def gated(x):
    def step(h, v, w):
        both = x.np.concatenate([h, v])
        z, r = x.nn.sigmoid(both @ w[0]), x.nn.sigmoid(both @ w[1])
        n = x.np.tanh(x.np.concatenate([r * h, v]) @ w[2])
        return (1 - z) * h + z * n

    w = 0.1 * x.array(3, 24, 16)
    return lambda h, xs, w: x.lax.scan(lambda h, v: (step(h, v, w), None), h, xs)[0], (x.array(16), x.array(300, 8), w)


def _garch(x):
    """Minus the log likelihood of a GARCH(1, 1) model over 1000 days."""

    def run(theta, returns):
        def step(var, r):
            var = theta[0] + theta[1] * r * r + theta[2] * var
            return var, 0.5 * (x.np.log(var) + r * r / var)

        return x.lax.scan(step, x.np.float32(1.0), returns)[1].sum()

    return run, (x.np.asarray([0.1, 0.1, 0.8], "float32"), x.array(1000) - 1)


loop("GARCH likelihood", NOT_WORSE)(_garch)
loop("gradient of the GARCH likelihood", NOT_WORSE, grad=True)(_garch)


@loop("edit distance", NOT_WORSE)
def edit_distance(x):
    def row(last, a):
        def cell(left, t):
            up, diagonal, b = t
            best = x.np.minimum(x.np.minimum(left, up) + 1, diagonal + (a != b))
            return best, best

        first = last[0] + 1
        rest = x.lax.scan(cell, first, (last[1:], last[:-1], words[1]))[1]
        return x.np.concatenate([first[None], rest]), None

    words = x.np.asarray((uniform(2, 40) * 8).astype("int32"))
    return lambda w: x.lax.scan(row, x.np.arange(41), w)[0][-1], (words[0],)


@loop("hidden Markov model, forward")
def hidden_markov(x):
    a, b = x.nn.softmax(x.array(5, 5)), x.nn.softmax(x.array(5, 7, seed=1))
    seen = x.np.asarray((uniform(800) * 7).astype("int32") % 7)

    def step(alpha, o):
        alpha = (alpha @ a) * b[:, o]
        total = alpha.sum()
        return alpha / total, x.np.log(total)

    return lambda s: x.lax.scan(step, x.np.full(5, 0.2), s)[1].sum(), (seen,)


@loop("epidemic model", NOT_WORSE)
def epidemic(x):
    def step(s, beta):
        a, b, c = s
        new, gone = beta * a * b * 0.01, 0.05 * b
        return (a - new, b + new - gone, c + gone), b

    return lambda s, b: x.lax.scan(step, tuple(s), b)[1], (x.array(3), x.array(1000))


@loop("tridiagonal solve", NOT_WORSE)
def tridiagonal(x):
    def run(low, mid, up, rhs):
        def forward(s, t):
            c, d = s
            lo, m, u, r = t
            w = m - lo * c
            return (u / w, (r - lo * d) / w), (u / w, (r - lo * d) / w)

        def back(v, t):
            v = t[1] - t[0] * v
            return v, v

        zero = x.np.float32(0)
        cs = x.lax.scan(forward, (zero, zero), (low, mid, up, rhs))[1]
        return x.lax.scan(back, zero, cs, reverse=True)[1]

    return run, (x.array(500), x.array(500) + 3, x.array(500), x.array(500))


@loop("game of life, 16 by 16", NOT_WORSE)
def life(x):
    def step(_, g):
        n = sum(x.np.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((n == 3) | ((n == 2) & (g == 1))).astype("int32")

    return lambda g: x.lax.fori_loop(0, 100, step, g), (x.np.asarray((uniform(16, 16) > 1).astype("int32")),)


@loop("binomial tree of an option", NOT_WORSE)
def binomial(x):
    def run(strike):
        prices = x.np.exp(x.np.linspace(-1.0, 1.0, 128))

        def step(_, v):
            return x.np.maximum(0.999 * (0.5 * v + 0.5 * x.np.roll(v, -1)), strike - prices)

        return x.lax.fori_loop(0, 127, step, x.np.maximum(strike - prices, 0.0))[0]

    return run, (x.np.float32(1.1),)


@loop("random walk", NOT_WORSE)
def random_walk(x):
    def step(s, _):
        key, v = s
        key, own = x.random.split(key)
        v = v + x.random.uniform(own, ()) - 0.5
        return (key, v), v

    return lambda k: x.lax.scan(step, (k, x.np.float32(0)), None, length=300)[1], (x.random.key(0),)


@loop("table of a reinforcement learner", NOT_WORSE)
def learner(x):
    def step(q, t):
        s, a, r, new = t
        return q.at[s, a].add(0.1 * (r + 0.9 * q[new].max() - q[s, a])), None

    def numbers(n, seed):
        return x.np.asarray((uniform(500, seed=seed) * 1000).astype("int32") % n)

    args = x.np.zeros((16, 4)), numbers(16, 0), numbers(4, 1), x.array(500), numbers(16, 2)
    return lambda q, *t: x.lax.scan(step, q, t)[0], args


@loop("square roots by Newton", NOT_WORSE)
def newton(x):
    def root(v):
        def body(s):
            return (s[0] + v / s[0]) / 2, s[1] + 1

        return x.lax.while_loop(lambda s: (abs(s[0] * s[0] - v) > 1e-5) & (s[1] < 50), body, (v, 0))[0]

    return x.api.vmap(root), (x.array(64),)


@loop("adaptive steps of an equation", NOT_WORSE)
def adaptive(x):
    def body(s):
        t, y, h = s
        k1 = x.np.cos(t) - y
        k2 = x.np.cos(t + h) - (y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        ok = error < 1e-4
        return (x.np.where(ok, t + h, t), x.np.where(ok, y + h * (k1 + k2) / 2, y), x.np.where(ok, h * 1.2, h * 0.5))

    return lambda y: x.lax.while_loop(lambda s: s[0] < 10.0, body, (0.0 * y, y, 0.01 + 0 * y))[1], (x.np.float32(1),)


@loop("rotations of 3 by 3", NOT_WORSE)
def rotations(x):
    return lambda r, d: x.lax.fori_loop(0, 1000, lambda _, m: m @ d, r), (
        x.np.eye(3),
        x.np.eye(3) + 1e-4 * x.array(3, 3),
    )


@loop("8 by 8 products")
def products(x):
    return lambda m, w: x.lax.fori_loop(0, 300, lambda _, v: x.np.tanh(v @ w), m), (x.array(8, 8), 0.1 * x.array(8, 8))


@loop("a large product inside", NOT_WORSE)
def large_product(x):
    return lambda m, w: x.lax.fori_loop(0, 5, lambda _, v: x.np.tanh(v @ w), m), (
        x.array(256, 256),
        0.01 * x.array(256, 256),
    )


@loop("a small and a large product inside", NOT_WORSE)
def both_products(x):
    def step(_, s):
        v, m = s
        m = x.np.tanh(m @ m * 0.1)
        return x.np.tanh(v @ v * 0.01) + m.sum(), m

    return lambda v, m: x.lax.fori_loop(0, 5, step, (v, m)), (x.array(200, 200), x.array(8, 8))


@loop("a sort inside", NOT_WORSE)
def sorts(x):
    def step(v, _):
        v = x.np.sort(v * 1.7 % 1.0)
        return v, v[0]

    return lambda v: x.lax.scan(step, v, None, length=100)[1], (x.array(32),)


@loop("large arrays inside", NOT_WORSE)
def large_arrays(x):
    return lambda v: x.lax.fori_loop(0, 10, lambda _, a: x.np.sin(a) * 1.01 + 0.1, v), (x.array(1 << 18),)
