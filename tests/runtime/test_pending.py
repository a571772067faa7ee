"""Programs that may be long run beside the caller: values, errors, order, donation, and what the option changes."""

import os
import pickle
import threading
import time

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import pending
from gradix.experimental import io_callback


def spin(x, n):
    """A loop whose number of turns XLA does not know: some 10 ms for a million."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (0, x))[1]


MANY = np.int32(2_000_000)


@pytest.fixture
def slow():
    """A jitted loop that has not run yet, and so is taken to be long."""
    return gradix.jit(spin)


@pytest.fixture
def hold():
    """Keeps the helper busy until the test lets it go, so that later programs have not begun."""
    gates = []

    def take():
        gate = threading.Event()
        gates.append(gate)
        pending.later(lambda buffers: gate.wait(60) and [], 0)([])
        return gate

    yield take
    for gate in gates:
        gate.set()


def test_the_call_returns_before_the_value_is_there(slow, hold):
    gate = hold()
    y = slow(jnp.float32(0), MANY)
    assert not y.is_ready() and not y.is_deleted()
    gate.set()
    assert y.block_until_ready() is y and y.is_ready()
    assert float(y) == 2


READS = {
    "numpy": np.asarray,
    "float": float,
    "print": repr,
    "item": lambda y: y.item(),
    "device_get": gradix.device_get,
    "pickle": lambda y: pickle.loads(pickle.dumps(y)),
    "dlpack": np.from_dlpack,
    "format": "{:.1f}".format,
    "pointer": lambda y: y.unsafe_buffer_pointer(),
    "copy": lambda y: np.asarray(y.copy()),
    "bool": bool,
    "clone": lambda y: float(y.clone()),
    "async copy": lambda y: (y.copy_to_host_async(), float(y)),
    "shards": lambda y: float(y.addressable_shards[0].data),
    "put": lambda y: float(gradix.device_put(y, gradix.devices()[0])),
    "eager": lambda y: float(y + 1),
    "index": lambda y: float(y[...]),
    "weak": lambda y: float(lax.convert_element_type(y, "float16")),
    "live": lambda y: len(gradix.live_arrays()),
    "barrier": lambda y: gradix.effects_barrier(),
    "block": gradix.block_until_ready,
}


@pytest.mark.parametrize("how", READS)
def test_a_pending_value_is_read_in_every_way(how, slow, hold):
    gate = hold()
    y = slow(jnp.float32(0), MANY)
    assert not y.is_ready()
    threading.Timer(0.02, gate.set).start()
    READS[how](y)
    assert float(y) == 2


def test_programs_of_pending_values_are_pending(slow, hold):
    add = gradix.jit(lambda x, y: x + y)
    few = [float(add(jnp.float32(i), jnp.float32(1))) for i in range(5)]  # by generated code now
    gate = hold()
    y = slow(jnp.float32(0), MANY)
    z = add(y, jnp.float32(1))
    w = add(z, z)
    u = add(jnp.float32(2), jnp.float32(3))
    assert u.is_ready() and float(u) == 5 and not z.is_ready() and not w.is_ready()
    gate.set()
    assert float(w) == 6 and few == [1, 2, 3, 4, 5]
    for _ in range(4):
        assert float(add(y, z)) == 5


def test_programs_of_many_results_are_left_to_a_helper_if_they_take_longer():
    few, many = pending.Pace(1), pending.Pace(200)
    for _ in range(5):
        few.note(8e-4)
        many.note(8e-4)
    assert few.is_long and not many.is_long


def test_quick_programs_are_called_as_before():
    quick = gradix.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: x + 1, x))
    for _ in range(200):
        if (y := quick(jnp.float32(0)))._buffer.__class__ is not pending.PendingBuffer:
            break
        y.block_until_ready()
    else:
        pytest.fail("the program still runs beside the caller")
    assert quick(jnp.float32(0)).is_ready()
    assert float(quick(quick(jnp.float32(0)))) == 6


def test_the_option_makes_calls_wait(slow):
    with gradix._base.config._Override("jax_cpu_enable_async_dispatch", False):
        y = slow(jnp.float32(0), MANY)
        assert y.is_ready() and type(y._buffer) is not pending.PendingBuffer


def test_a_donated_argument_is_gone_at_the_call_and_read_before(slow, hold):
    gate = hold()
    x = jnp.arange(3.0) + 1
    total = gradix.jit(lambda x, n: spin(x.sum(), n))(x, MANY)
    new = gradix.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted() and not new.is_ready()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    gate.set()
    assert new.tolist() == [2, 4, 6] and float(total) == 2


def test_a_pending_argument_is_donated(slow, hold):
    gate = hold()
    x = slow(jnp.zeros(3), MANY)
    y = gradix.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_ready()
    gate.set()
    assert y.tolist() == [3, 3, 3]


def test_an_error_comes_where_the_value_is_read_and_in_what_depends_on_it(hold):
    gate = hold()

    def fail(buffers):
        raise RuntimeError("why")

    (bad,) = pending.later(fail, 1)([])
    (after,) = pending.later(lambda buffers: buffers, 1)([bad])
    gate.set()
    for _ in range(2):
        for b in (bad, after):
            with pytest.raises(RuntimeError, match="why"):
                b.block_until_ready()
            assert b.is_ready()
    (fine,) = pending.later(lambda buffers: [np_ready()], 1)([])
    fine.block_until_ready()


def np_ready():
    return gradix.jit(lambda x: x + 1)(jnp.float32(1))._buffer


def test_callbacks_belong_to_the_call(slow):
    """A long program with callbacks returns when they have run, and raises what they raise."""
    seen, context = [], []

    def note(x):
        seen.append(float(x))
        context.append(gradix.config.jax_enable_x64)
        return np.float32(slow(jnp.float32(x), np.int32(5)))  # programs run in callbacks, also long ones

    def body(i, x):
        return io_callback(note, x, x, ordered=True)

    f = gradix.jit(lambda x, n: spin(lax.fori_loop(0, 3, body, x), n))
    assert float(f(jnp.float32(0), np.int32(1))) == pytest.approx(2, abs=0.1) and len(seen) == 3

    class Mine(Exception):
        pass

    def bad(x):
        raise Mine

    g = gradix.jit(lambda x, n: gradix.pure_callback(bad, x, spin(x, n)))
    with pytest.raises(Mine):
        g(jnp.float32(0), MANY)


def test_nans_are_found_at_the_call():
    with gradix.debug_nans(True), pytest.raises(FloatingPointError):
        gradix.jit(lambda x, n: spin(x, n) * np.nan)(jnp.float32(0), MANY)


def test_only_so_many_programs_wait(hold):
    gate = hold()
    threading.Timer(0.05, gate.set).start()
    for _ in range(3 * pending._MOST):
        last = pending.later(lambda buffers: [np_ready()], 1)([])
        assert len(pending._queue.runs) <= pending._MOST
    last[0].block_until_ready()


def test_results_are_freed_one_by_one(slow):
    import gc
    import weakref

    f = gradix.jit(lambda x, n: (spin(x, n), x * 2))
    kept, dropped = f(jnp.zeros(5), MANY)
    dropped.block_until_ready()
    gone = weakref.ref(dropped._buffer.made)
    del dropped
    gc.collect()
    assert gone() is None and kept.tolist() == [2] * 5


def test_many_threads_launch(slow):
    found = []

    def work(i):
        for _ in range(5):
            found.append(float(slow(jnp.float32(i), np.int32(60))))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == [2.0] * 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_fork_waits_for_the_values(slow):
    y = slow(jnp.float32(0), MANY)
    child = os.fork()
    if child == 0:
        os._exit(0 if float(y) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_loader_runs_beside_a_step(slow):
    """The order of events says that the two overlap, without a clock."""
    events = []
    y = slow(jnp.float32(0), np.int32(40_000_000))
    events.append(y.is_ready())
    time.sleep(0.001)
    events.append(y.is_ready())
    assert float(y) == 2 and events == [False, False]
