"""Draws public functions and arguments that they do not take, and calls them; `test_hostile.py` runs it.

Each call is printed before it is made. A line that begins with FAULT tells of an error of a class that says nothing to
users, of one without a text, and of a call that takes too long.
"""

import importlib
import inspect
import os
import random
import signal
import sys
import tempfile
import threading
import warnings

import numpy as np

import gradix
import gradix.numpy as jnp

MODULES = """gradix gradix.numpy gradix.lax gradix.random gradix.nn gradix.ops gradix.image gradix.tree gradix.tree_util
gradix.numpy.linalg gradix.numpy.fft gradix.scipy.special gradix.scipy.linalg gradix.scipy.signal gradix.scipy.stats
gradix.scipy.ndimage gradix.scipy.fft gradix.scipy.optimize gradix.scipy.interpolate gradix.sharding gradix.dlpack
gradix.debug gradix.export gradix.flatten_util gradix.dtypes gradix.nn.initializers gradix.experimental.sparse
gradix.experimental.checkify gradix.memory gradix.errors""".split()
# What ends or changes the process, waits for others, or writes files.
LEFT_OUT = set(
    """breakpoint start_server start_trace stop_trace shutdown initialize install_as_jax clear_caches clear_backends
    set_mesh use_mesh print_environment_info live_arrays profile save savez""".split()
)
NAMES = "axis dtype shape axes mode out keepdims size where order fill_value length precision indices k n side".split()
WAYS = ("plain", "plain", "plain", "jit", "grad", "vmap", "make_jaxpr", "thread")
UNTOLD = (SystemError, AssertionError, UnboundLocalError, MemoryError, EOFError)
LONGEST = 60  # seconds of one call


class Odd:
    def __array__(self, *args, **kwargs):
        return "odd"


class Raises:
    def __array__(self, *args, **kwargs):
        raise ZeroDivisionError("odd")

    __len__ = __getitem__ = __array__


class Negative:
    def __len__(self):
        return -1


class NoIndex:
    def __index__(self):
        return "x"


class Shaped:
    shape, dtype = (2,), "float32"


def closed():
    with open(os.devnull) as file:
        pass
    return file


def deleted():
    x = jnp.ones(4) + 0
    x.delete()
    return x


def donated():
    x = gradix.jit(lambda x: x * 2)(jnp.ones(4))
    gradix.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


ORDINARY = [
    lambda: jnp.ones((3, 2)),
    lambda: jnp.arange(4.0),
    lambda: jnp.arange(3),
    lambda: jnp.array(2.0),
    lambda: jnp.array(True),
    lambda: jnp.zeros((0, 3)),
    lambda: jnp.array([np.nan, np.inf, -np.inf]),
]
HOSTILE = [
    *ORDINARY,
    *(lambda x=x: x for x in (None, "abc", "", b"x", -1, 0, 2, 2**31, -(2**63), 2**70, 1.5, np.nan, np.inf, 1j, True)),
    *(
        lambda x=x: x
        for x in ((), (2, 3), (-1,), (2, -3), (10**9, 10**9), (2**62,), slice(1, 0, 0), Ellipsis, len, type)
    ),
    *(lambda x=x: x for x in (int, np.float32, "float32", np.dtype("S3"), NotImplemented, range(3), object())),
    *(lambda x=x: list(x) for x in ([], [1, [2]], [[1, 2], [3, 4]])),
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: iter([1]),
    lambda: memoryview(b"abcd"),
    lambda: lambda x: x,
    lambda: lambda *x: 1 / 0,
    lambda: np.array(["a", "b"]),
    lambda: np.array([object()]),
    lambda: np.zeros(3, "M8[s]"),
    lambda: np.ones((4, 4))[::-2, ::2],
    lambda: jnp.ones((1,) * 7),
    lambda: jnp.array([1 + 2j]),
    lambda: jnp.ones((3, 3), jnp.bfloat16),
    lambda: gradix.random.key(0),
    lambda: gradix.ShapeDtypeStruct((2,), "float32"),
    lambda: gradix.devices()[0],
    lambda: gradix.new_ref(jnp.ones(2)),
    *(Odd, Raises, Negative, NoIndex, Shaped, closed, deleted, donated),
]


def public():
    """The names and functions that are called."""
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        for member in sorted(getattr(module, "__all__", None) or dir(module)):
            if not member.startswith("_") and member not in LEFT_OUT and callable(f := getattr(module, member)):
                found.append((f"{name}.{member}", f))
    for member in sorted(dir(gradix.Array)):
        f = getattr(gradix.Array, member, None)
        if not member.startswith("_") and callable(f):
            found.append((f"Array.{member}", lambda *args, f=f, **kw: f(jnp.ones((3, 2)), *args, **kw)))
    return found


def count_of(drawn, f) -> int:
    """How many arguments a function gets: mostly as many as it can be called with."""
    try:
        known = [p for p in inspect.signature(f).parameters.values() if p.kind in (0, 1)]
    except (TypeError, ValueError):
        known = []
    count = drawn.choice((0, 1, 1, 2, 2, 3, 4))
    needed = sum(p.default is p.empty for p in known)
    return max(needed, min(count, len(known))) if known and drawn.random() < 0.8 else count


def made(f, way, args, named):
    """The result of one call, waited for and shown."""
    if way == "grad":
        result = gradix.grad(lambda x: f(x, *args[1:], **named))(args[0] if args else 1.0)
    elif way in ("jit", "vmap", "make_jaxpr"):
        result = getattr(gradix, way)(f)(*args, **named)
    else:
        result = f(*args, **named)
    repr(result)
    return gradix.block_until_ready(result)


def error_of(call) -> BaseException | None:
    try:
        call()
    except BaseException as e:
        return e
    return None


def in_thread(call) -> BaseException | None:
    """The error of a call in another thread."""
    errors: list = []
    thread = threading.Thread(target=lambda: errors.append(error_of(call)), daemon=True)
    thread.start()
    thread.join(LONGEST)
    return errors[0] if errors else TimeoutError("the thread goes on")


def late(*_):
    raise TimeoutError("the call goes on")


def main(seed: int, count: int) -> None:
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    signal.signal(signal.SIGALRM, late)
    drawn, functions = random.Random(seed), public()
    for _ in range(count):
        name, f = drawn.choice(functions)
        numbers = [
            drawn.randrange(len(HOSTILE if drawn.random() < 0.6 else ORDINARY)) for _ in range(count_of(drawn, f))
        ]
        way = drawn.choice(WAYS)
        keyword = {drawn.choice(NAMES): drawn.randrange(len(HOSTILE))} if drawn.random() < 0.3 else {}
        print(name, way, numbers, keyword, flush=True)
        args, named = [HOSTILE[i]() for i in numbers], {k: HOSTILE[i]() for k, i in keyword.items()}
        signal.alarm(LONGEST)
        error = (in_thread if way == "thread" else error_of)(lambda: made(f, way, args, named))  # noqa: B023
        signal.alarm(0)
        if isinstance(error, (*UNTOLD, TimeoutError)) or error is not None and not str(error).strip():
            print("FAULT", name, way, numbers, keyword, repr(error)[:300], flush=True)
    print("done", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
