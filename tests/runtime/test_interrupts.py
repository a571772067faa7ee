"""Interrupts at any moment: the process lives, the exception comes out as itself, and what follows works."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

# What the programs below share: `interrupted(work, delay)` sends Ctrl-C while `work()` runs, which must be interrupted.
COMMON = """
import _thread, os, random, signal, sys, time
import numpy as np
import gradix, gradix.numpy as jnp
from gradix import lax

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as in a shell's background jobs

def interrupted(work, delay, must=True):
    # Not a `Thread`: what Python does when one goes would swallow a handler's exception.
    done, sent, over = [_thread.allocate_lock() for _ in range(3)]
    done.acquire(), over.acquire()
    def kick():
        if not done.acquire(timeout=delay):
            os.kill(os.getpid(), signal.SIGINT)
            sent.acquire()
        over.release()
    try:
        _thread.start_new_thread(kick, ())
        try:
            work()
        finally:
            done.release()
        over.acquire()
        if sent.locked():
            time.sleep(0.1)      # the handler runs here at the latest
    except KeyboardInterrupt:
        return True
    assert not sent.locked(), "the interrupt was lost"
    assert not must, "the work ended before the interrupt"
    return False
"""


def run(program, *args, code=0):
    """Run a program in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + textwrap.dedent(program), *args],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


COMPILING = """
def long(x):
    for i in range(400):
        x = jnp.sin(x) @ x + jnp.cos(x) * i
    return gradix.pure_callback(np.asarray, x, x) if "callback" in sys.argv else x
lowered = gradix.jit(long).lower(jnp.ones((8, 8)))
interrupted(lowered.compile, 0.05)
time.sleep(0.5)                  # XLA's threads go on, and must find what they read
print(gradix.jit(lambda x: x * 2)(jnp.ones(2)).tolist(), flush=True)
"""


@pytest.mark.parametrize("how", ["plain", "callback"])
def test_a_compilation_is_interrupted(how):
    assert run(COMPILING + "os._exit(0)", how) == "[2.0, 2.0]\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_process_ends_as_python_ends_it_though_a_compilation_goes_on():
    assert run(COMPILING + "raise KeyboardInterrupt", "plain", code=-signal.SIGINT) == "[2.0, 2.0]\n"


def test_an_import_of_mlirs_bindings_is_interrupted():
    """The bindings end the process if a handler raises while they load."""
    program = """
    from gradix._runtime import xla
    interrupted(lambda: (xla.parse_module("module {}"), time.sleep(9)), float(sys.argv[1]))
    print(gradix.jit(lambda x: gradix.pure_callback(np.asarray, x, x))(jnp.ones(2)).tolist())
    """
    for delay in (0.002, 0.008):
        assert run(program, str(delay)) == "[1.0, 1.0]\n"


LOOPS = {
    "host kernel": """
    call = gradix.jit(jnp.sort)
    x = jnp.asarray(np.random.rand(4000).astype("f"))
    """,
    "host kernels in a loop": """
    call = gradix.jit(lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.sort(x) * 0.5, x))
    x = jnp.asarray(np.random.rand(4000).astype("f"))
    """,
    "callback": """
    call = gradix.jit(lambda x: gradix.pure_callback(lambda v: v * 2, x, x))
    x = jnp.ones(50)
    """,
    "ordered callbacks in a loop": """
    from gradix.experimental import io_callback
    def step(i, x):
        io_callback(lambda i: None, None, i, ordered=True)
        return x + 1
    call = gradix.jit(lambda x: lax.fori_loop(0, 20, step, x))
    x = jnp.ones(50)
    """,
    "print": """
    sys.stdout = open(os.devnull, "w")
    call = gradix.jit(lambda x: (gradix.debug.print("{}", x), x)[1])
    x = jnp.ones(2)
    """,
}

REPEATING = """
random.seed(int(sys.argv[1]))
expected = np.asarray(call(x))
call(x), call(x), call(x)        # now by generated code

class Late(BaseException):
    pass

def late(*_):
    raise Late("by a handler of the user")

def forever():
    while True:
        call(x)

for i in range(int(sys.argv[2])):
    assert interrupted(forever, random.uniform(0, 0.02))
    if i % 4 == 0 and hasattr(signal, "SIGALRM"):        # any signal's handler may raise anything
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-3, 0.02))
        try:
            forever()
        except Late as error:
            assert error.args == ("by a handler of the user",)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
np.testing.assert_array_equal(call(x), expected)
print("right", file=sys.__stdout__)
"""


@pytest.mark.parametrize("what", LOOPS)
def test_python_that_programs_call_is_interrupted(what):
    assert run(textwrap.dedent(LOOPS[what]) + REPEATING, "0", "15") == "right\n"


@pytest.mark.slow
@pytest.mark.parametrize("what", LOOPS)
def test_python_that_programs_call_is_interrupted_many_times(what):
    assert run(textwrap.dedent(LOOPS[what]) + REPEATING, "1", "300") == "right\n"


LONG = """
def spin(x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.999 + 1e-3), (0, x))[1]
"""


@pytest.mark.parametrize("how", ["read", "numpy", "call", "donated", "callback"])
def test_a_running_program_is_interrupted(how):
    """Within 0.3 s on an idle machine; here the loop of minutes must only not end first."""
    program = (
        LONG
        + """
    endless = np.int32(2 ** 31 - 1)
    how = sys.argv[1]
    def last(x, n):
        y = spin(x, n)
        return gradix.pure_callback(lambda y: y, y, y) if how == "callback" else y
    f = gradix.jit(last, donate_argnums=0 if how == "donated" else ())
    if how == "call":
        gradix.config.update("jax_cpu_enable_async_dispatch", False)
    quick = np.asarray(f(jnp.float32(1), np.int32(3)))
    started = time.time()
    read = np.asarray if how == "numpy" else float
    assert interrupted(lambda: read(f(jnp.float32(1), endless)), 0.3)
    seconds = time.time() - started
    # What does not need the value goes on, also programs that may be long, in another helper.
    assert np.asarray(f(jnp.float32(1), np.int32(3))) == quick
    assert float(gradix.jit(lambda x: x + 1)(1.0)) == 2
    sys.stderr.write(f"{seconds}")
    raise KeyboardInterrupt
    """
    )
    run(textwrap.dedent(LONG) + textwrap.dedent(program.removeprefix(LONG)), how, code=-signal.SIGINT)


def test_a_process_ends_while_a_program_runs():
    program = """
    y = gradix.jit(spin)(jnp.float32(1), np.int32(2 ** 31 - 1))
    print(y.is_ready())
    """
    assert run(LONG + textwrap.dedent(program)) == "False\n"


ANYWHERE = (
    LONG
    + """
from gradix.experimental import io_callback
rng = random.Random(int(sys.argv[1]))
x = jnp.asarray(np.random.default_rng(0).random(3000).astype("f"))
step = gradix.jit(lambda x: jnp.sort(x) * 2)
ask = gradix.jit(lambda x: gradix.pure_callback(np.cumsum, x, x))
wait = gradix.jit(spin)

def compile_more():
    c = rng.random()
    gradix.jit(lambda x: jnp.sin(x @ x) + c + gradix.pure_callback(np.asarray, x, x))(jnp.ones((4, 4)))

def progress():
    with gradix.progress("turning", file=sys.stdout):
        wait(jnp.float32(0), np.int32(1000))
        gradix.jit(lambda x: lax.fori_loop(0, 200, lambda i, x: x * 0.5, x))(1.0)

def show():
    def body(i, s):
        gradix.debug.print("{}", i)
        return s + 1
    gradix.jit(lambda s: lax.fori_loop(0, 30, body, s))(0.0)

def kernels():
    for _ in range(50):
        step(x)

def callbacks():
    for _ in range(50):
        ask(x)

def loops():
    float(wait(jnp.float32(0), np.int32(rng.choice([5, 1000, 10 ** 6]))))

sys.stdout = open(os.devnull, "w")
works = [compile_more, progress, show, kernels, callbacks, loops]
seen = 0
while seen < int(sys.argv[2]):
    seen += interrupted(rng.choice(works), rng.uniform(0, 0.06), must=False)
np.testing.assert_array_equal(step(x), np.sort(x) * 2)
np.testing.assert_allclose(ask(x), np.cumsum(x), rtol=1e-5)
print(f"{float(wait(jnp.float32(0), np.int32(100))):.3f}", file=sys.__stdout__, flush=True)
"""
)


def test_interrupts_at_random_moments():
    assert run(ANYWHERE, "0", "15") == "0.095\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_interrupts_at_many_random_moments(seed):
    assert run(ANYWHERE, str(seed + 1), "200") == "0.095\n"
