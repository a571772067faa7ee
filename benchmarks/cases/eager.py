"""Single operations on small arrays, outside `jit`, as at an interactive prompt."""

from itertools import count

from benchmarks.case import case

LIMIT = 0.35


@case("add", "eager", LIMIT, numpy=True, torch=True)
def add(x):
    a, b = x.array(8), x.array(8, seed=1)
    return lambda: a + b


@case("multiply by a scalar", "eager", LIMIT, numpy=True, torch=True)
def multiply(x):
    a = x.array(8)
    return lambda: a * 2.0


@case("sum over an axis", "eager", LIMIT, numpy=True, torch=True)
def total(x):
    a, np = x.array(16, 16), x.np
    return lambda: np.sum(a, axis=0)


@case("matmul 16x16", "eager", LIMIT, numpy=True, torch=True)
def matmul(x):
    a, b = x.array(16, 16), x.array(16, 16, seed=1)
    return lambda: a @ b


@case("slice", "eager", LIMIT, numpy=True, torch=True)
def slices(x):
    a = x.array(64)
    return lambda: a[2:10]


@case("integer index", "eager", LIMIT, numpy=True, torch=True)
def index(x):
    a = x.array(16, 16)
    return lambda: a[3]


def numpy_at_set(x):
    """NumPy's way to the same result: copy, then assign."""
    a = x.array(16)

    def copy_and_set():
        b = a.copy()
        b[3] = 1.0
        return b

    return copy_and_set


def torch_at_set(x):
    """PyTorch's way: an update out of place."""
    a, value, torch = x.array(16), x.api.tensor(1.0), x.api
    return lambda: torch.select_scatter(a, value, 0, 3)


@case(".at[].set", "eager", LIMIT, numpy=numpy_at_set, torch=torch_at_set)
def at_set(x):
    a = x.array(16)
    return lambda: a.at[3].set(1.0)


@case("where", "eager", LIMIT, numpy=True, torch=True)
def where(x):
    a, b, np = x.array(8), x.array(8, seed=1), x.np
    condition = a > 1.0
    return lambda: np.where(condition, a, b)


@case("concatenate", "eager", LIMIT, numpy=True, torch=True)
def concatenate(x):
    a, b, np = x.array(8), x.array(8, seed=1), x.np
    return lambda: np.concatenate([a, b])


@case("einsum", "eager", LIMIT, numpy=True, torch=True)
def einsum(x):
    a, b, np = x.array(8, 16), x.array(16, 4), x.np
    return lambda: np.einsum("ij,jk->ik", a, b)


@case("5 operations on each of 20 new shapes", "eager", 0.01, numpy=True, torch=True)
def new_shapes(x):
    sizes, np = count(3), x.np

    def run():
        results = []
        for _ in range(20):
            a = np.ones((next(sizes), 3), dtype=np.float32)
            results.append(np.sum(np.sin(a) * 2.0 + a))
        return results

    return run
