"""What all tests share: the x64 switch, configuration put back, the reference implementation where it is installed."""

import gc
import importlib.util
import itertools
import os
import random
import re
import zlib

import hypothesis
import numpy as np
import pytest

from gradix._api.jit import sharing
from gradix._base import config as _config
from gradix._base.tree import recursion

# No deadline and no complaint of slow draws: both would depend on what else the machine does. Whether draws repeat is
# said in each profile: hypothesis's own default is another one where the variable CI is set.
_unhurried = dict(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("quick", max_examples=50, derandomize=True, **_unhurried)
hypothesis.settings.register_profile("full", max_examples=500, derandomize=False, **_unhurried)
hypothesis.settings.load_profile(os.environ.get("GRADIX_TEST_PROFILE", "quick"))  # `make test-full` sets it

# The suite writes no compiled programs into the user's home, and retraces on purpose; nor do the processes it starts.
for _name, _value in (("gradix_cache", "off"), ("gradix_retrace_warning", 0)):
    _config.config.update(_name, _value)
    os.environ[_name.upper()] = str(_value)

# As each module that is marked says it.
_MARKED = re.compile(r"^pytestmark = .*\bmark\.x32\b", re.MULTILINE)
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
HAVE_PEER = importlib.util.find_spec("jax") is not None


def rows(item):
    """What a test was given by each of its parametrisations."""
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        yield tuple([(name.strip(), id(item.callspec.params[name.strip()])) for name in names])


def covering(members, strength):
    """Tests, of those of one function, that together meet every combination of so many rows of its parametrisations."""
    meets = {item: set(itertools.combinations(rows(item), strength)) for item in members}
    missing, chosen = set().union(*meets.values()), []
    while missing:
        chosen.append(max(members, key=lambda item: len(meets[item] & missing)))
        missing -= meets[chosen[-1]]
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    if named := [item.nodeid for item in items if _ADDRESS.search(item.nodeid)]:
        # processes that share the tests among them need the same names
        raise pytest.UsageError("names of tests hold an address; give `parametrize` ids:\n" + "\n".join(named))
    sampled = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            sampled.setdefault((item.nodeid.partition("[")[0], mark.args), []).append(item)
    for (_, (strength,)), members in sampled.items():
        for item in set(members).difference(covering(members, strength)):
            item.add_marker("slow")
    if _config.state.gradix_rewrites != "all":
        for item in items:
            if item.get_closest_marker("rewritten"):
                item.add_marker(pytest.mark.skip(reason="the rewrites it is about are turned off"))
    if HAVE_PEER:
        return
    for item in items:
        if item.get_closest_marker("parity"):
            item.add_marker(pytest.mark.skip(reason="the reference implementation (jax) is not installed"))


def pytest_collection_finish():
    """What importing and collecting made stays until the end, and walks of the garbage collector leave it out."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    """A module that is marked `x32` as a whole makes its constants without 64-bit types."""
    if isinstance(collector, pytest.Module) and _MARKED.search(collector.path.read_text(encoding="utf-8")):
        with _config.enable_x64(False):
            collector.obj


@pytest.fixture(autouse=True)
def _types_of_its_facts(request, monkeypatch):
    """What a test that is marked `x32` states is so without 64-bit types, in the processes it starts as well."""
    before = _config.config.jax_enable_x64
    if not before or request.node.get_closest_marker("x32") is None:
        yield
        return
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    _config.config.update("jax_enable_x64", False)
    yield
    _config.config.update("jax_enable_x64", before)


@pytest.fixture(autouse=True)
def _numbers_of_its_own(request):
    """A test draws the same numbers whatever ran before it in its process: generators start anew from the test's name.

    Those of the test's module, and the shared ones of `random` and NumPy. What a module draws when it is imported
    comes from the seed written there; a fixture of wider scope, and a helper outside the module, seeds its own.
    """
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = type(value.bit_generator)(seed).state
        elif isinstance(value, random.Random | np.random.RandomState):
            value.seed(seed)


@pytest.fixture(autouse=True, scope="module")
def _stack_of_its_thread():
    """A module gives the thread back the levels of recursion that it entered, which all tests after it need.

    Where calls of C have a budget of their own, an exhausted one is given back up to two levels for each frame.
    """
    missed = 0 if recursion._is_shared_with_frames() else 2 * recursion._depth()

    def entered():
        return recursion._entered() - (recursion._depth() if recursion._is_shared_with_frames() else 0)

    before = entered()
    yield
    lost = entered() - before
    assert lost <= missed + 2, f"{lost} levels of recursion were entered and not left"


@pytest.fixture(autouse=True)
def _traces_of_its_own():
    """A test counts the traces it makes, and finds none that another test made of the same function."""
    sharing._known.clear()


@pytest.fixture(autouse=True)
def _configuration_put_back():
    """Options a test sets for the whole process end with the test."""
    config = _config.config
    before = config.values
    yield
    for name, value in config.values.items():
        if value != before.get(name, value):  # what a test defined anew stays
            config.update(name, before[name])


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    """The test runs with 64-bit types off, then on."""
    with _config.enable_x64(request.param):
        yield request.param


@pytest.fixture
def peer():
    """The `jax` package, or a skip."""
    return pytest.importorskip("jax")
