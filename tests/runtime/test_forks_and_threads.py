"""Processes made by fork, and threads that call a new function at the same time."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

FORKS = """
import os, subprocess, sys, warnings
import numpy as np
import gradix, gradix.numpy as jnp
warnings.simplefilter("always")
def forked(what):
    number = os.fork()
    if not number:
        try:
            what()
        except RuntimeError as e:
            print("refused" if "os.fork()" in str(e) else e, flush=True)
        os._exit(0)
    os.waitpid(number, 0)
f = gradix.jit(lambda x: x * 2 + 1)
with warnings.catch_warnings(record=True) as before:
    warnings.simplefilter("always")
    forked(lambda: print("before", f(jnp.ones(3))[0].item(), flush=True))
x, big = f(jnp.ones(3)), jnp.ones(1 << 20) * 2
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    subprocess.run(["true"])
    print("warnings of subprocess", len([w for w in found if w.category is RuntimeWarning]), flush=True)
    for what in (lambda: f(x), lambda: gradix.jit(lambda x: x + 1)(x), lambda: jnp.sin(big) @ big,
                 lambda: print("host", float(jnp.ones(3).sum()), x.tolist(), flush=True)):
        forked(what)
ours = [w for w in found if w.category is RuntimeWarning and "os.fork()" in str(w.message)]
print("warnings", len(ours), len([w for w in before if w.category is RuntimeWarning]), os.path.basename(ours[0].filename), flush=True)
print("parent", f(x).tolist())
if not os.fork():
    sys.exit(0)                     # a process that ends as usual does not wait for XLA's threads either
os.wait()
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_refuses_in_place_of_hanging(tmp_path):
    file = tmp_path / "forks.py"
    file.write_text(FORKS)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])},
    )
    assert done.stdout.splitlines() == [
        "before 3.0",
        "warnings of subprocess 0",
        "refused",
        "refused",
        "refused",
        "host 3.0 [3.0, 3.0, 3.0]",
        "warnings 4 0 forks.py",
        "parent [7.0, 7.0, 7.0]",
        "ended",
    ], done.stdout + done.stderr[-2000:]


def at_once(n: int, function) -> list:
    """The results of a function of the number of a thread, in threads that begin together."""
    barrier, results = threading.Barrier(n), [None] * n

    def run(i):
        barrier.wait()
        try:
            results[i] = function(i)
        except Exception as e:
            results[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def test_threads_that_call_a_new_function_trace_it_once():
    def slow(x):
        time.sleep(0.05)
        return x + 1

    f = gradix.jit(slow)
    assert [float(r[0]) for r in at_once(16, lambda i: f(jnp.full(2, i)))] == [i + 1 for i in range(16)]
    assert f.stats().traces == f.stats().compiles == 1
    assert [r.shape for r in at_once(4, lambda i: f(jnp.ones(i + 3)))] == [(3,), (4,), (5,), (6,)]
    assert f.stats().traces == 5 and not f._tracing


def test_a_trace_that_fails_in_one_thread_fails_in_each():
    def fails(x):
        time.sleep(0.02)
        raise KeyError("mine")

    f = gradix.jit(fails)
    assert [type(r) for r in at_once(6, lambda i: f(jnp.ones(2)))] == [KeyError] * 6 and not f._tracing


def test_functions_that_call_each_other_do_not_wait_for_each_other():
    def even(x, n):
        time.sleep(0.01)
        return x if n == 0 else odd(x, n - 1)

    def odd(x, n):
        time.sleep(0.01)
        return x * 2 if n == 0 else even(x, n - 1)

    even, odd = gradix.jit(even, static_argnums=1), gradix.jit(odd, static_argnums=1)
    start = time.monotonic()
    results = at_once(8, lambda i: (even if i % 2 else odd)(jnp.float32(1), 3 + i % 3))
    assert [float(r) for r in results] == [1 + (3 + i % 3 + (i + 1) % 2) % 2 for i in range(8)]
    assert time.monotonic() - start < 50  # the time after which a thread gives up


def test_a_function_that_calls_itself_outside_of_its_trace_does_not_wait_for_itself():
    seen = []

    def f(x):
        if len(seen) < 2:
            seen.append(1)
            with gradix.ensure_compile_time_eval():
                return x + np.asarray(g(jnp.ones(2)))
        return x * 2

    g = gradix.jit(f)
    assert g(jnp.ones(2)).tolist() == [4, 4]
