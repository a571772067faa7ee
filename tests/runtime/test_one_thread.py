"""Small products and factorizations wake no thread of BLAS or LAPACK, however many are configured."""

import subprocess
import sys
import threading

import pytest
import threadpoolctl

import gradix
import gradix.numpy as jnp
from gradix._base.one_thread import on_one_thread
from gradix._platforms import factors_on_one_thread
from gradix._runtime.program import lower

# Counts how often the threads of the pools, which exist before Gradix has any of its own, were given a processor.
_WAKINGS = r"""
import os, sys, time
import numpy as np, scipy.linalg.lapack, threadpoolctl
threads = int(sys.argv[1])
threadpoolctl.threadpool_limits(threads)
rng = np.random.default_rng(0)
plain = rng.random((120, 120)).astype(np.float32)
pool = [t for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]

def wakings():
    lines = [l for t in pool for l in open(f"/proc/self/task/{t}/status")]
    return sum(int(l.split()[1]) for l in lines if "ctxt_switches" in l)

def woken(f):
    f(); f()  # compiles
    before = wakings()
    for _ in range(5): f()
    return wakings() - before

assert len(pool) >= threads - 1, pool
if not woken(lambda: plain @ plain): print("products wake no thread on this machine"); sys.exit()
time.sleep(0.5)  # those that were woken look for further work for a while

import gradix, gradix.numpy as jnp
block, la = gradix.block_until_ready, jnp.linalg
found = {}
for dtype, sizes in (np.float32, (12, 60, 140)), (np.complex64, (60,)):
    for n in sizes:
        a = jnp.asarray((rng.random((n, n)) + n * np.eye(n)).astype(dtype))
        h, v = a @ a.conj().T, a[0]
        cases = {
            "product": lambda: a @ a, "matrix and vector": lambda: a @ v, "einsum": lambda: jnp.einsum("ij,kj->ik", a, a),
            "solve": lambda: la.solve(a, a), "triangular": lambda: gradix.scipy.linalg.solve_triangular(a, a, lower=True),
            "inv": lambda: la.inv(a), "eigh": lambda: la.eigh(h), "eigvalsh": lambda: la.eigvalsh(h), "svd": lambda: la.svd(a),
            "pinv": lambda: la.pinv(a), "qr": lambda: la.qr(a), "cholesky": lambda: la.cholesky(h), "det": lambda: la.det(a),
            "cond": lambda: la.cond(a), "eig": lambda: la.eig(a),
        }
        compiled = gradix.jit(lambda a: la.svd(a @ a)[1])
        cases["compiled"] = lambda: compiled(a)
        if dtype is np.float32:
            slope = gradix.grad(lambda a: la.pinv(a).sum())
            cases["gradient"] = lambda: slope(a)
        for name, f in cases.items():
            count = woken(lambda: block(f()))
            if count: found[name, n, dtype.__name__] = count
left = {i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"}
print(found or "none woken;", "threads as before" if left == {threads} else left)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the turns of threads in /proc")
@pytest.mark.parametrize("threads", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_no_thread_is_woken(threads):
    done = subprocess.run([sys.executable, "-c", _WAKINGS, str(threads)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if "wake no thread" in done.stdout:
        pytest.skip(done.stdout)
    assert done.stdout == "none woken; threads as before\n"


def _threads():
    # The controllers ask the library anew each time.
    return [c.num_threads for c in _CONTROLLERS if c.user_api == "blas"]


_CONTROLLERS = threadpoolctl.ThreadpoolController().lib_controllers


@pytest.fixture
def three_threads():
    with threadpoolctl.threadpool_limits(3):
        if not _threads() or set(_threads()) != {3}:
            pytest.skip("the library of products has no pool that can be set")
        yield


def test_the_number_of_threads_is_put_back(three_threads):
    found = on_one_thread(_threads, "numpy")()
    assert 1 in found and set(_threads()) == {3}
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda: 1 / 0, "numpy")()
    assert set(_threads()) == {3}


def test_calls_within_calls_and_beside_each_other(three_threads):
    inner = on_one_thread(_threads, "numpy")
    once, twice = on_one_thread(_threads, "numpy")(), on_one_thread(inner, "numpy")()
    assert twice == once
    seen, barrier = [], threading.Barrier(4)

    def work():
        on_one_thread(lambda: (barrier.wait(30), seen.append(_threads())), "numpy")()

    workers = [threading.Thread(target=work) for _ in range(4)]
    [w.start() for w in workers], [w.join() for w in workers]
    assert seen[0] == once  # the last ones may still hold it; the first never sees more
    assert set(_threads()) == {3}


@pytest.mark.parametrize("rows, kept", [(100, True), (512, True), (600, False)])
def test_compiled_factorizations_of_large_matrices_keep_their_threads(rows, kept):
    program = gradix.make_jaxpr(jnp.linalg.eigvalsh)(gradix.ShapeDtypeStruct((3, rows, rows), "float32"))
    assert factors_on_one_thread("cpu", lower(program, "f").facts) is kept
    without = gradix.make_jaxpr(jnp.sin)(gradix.ShapeDtypeStruct((rows, rows), "float32"))
    assert not factors_on_one_thread("cpu", lower(without, "f").facts)
