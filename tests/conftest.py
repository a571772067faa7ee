"""What all tests share: the x64 switch, configuration put back, the reference implementation where it is installed."""
import importlib.util
import os

import hypothesis
import pytest

from gradix._base import config as _config

hypothesis.settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("full", max_examples=500, deadline=None)
hypothesis.settings.load_profile(os.environ.get("GRADIX_TEST_PROFILE", "quick"))  # `make test-full` sets it

# The suite writes no compiled programs into the user's home, and retraces on purpose; nor do the processes it starts.
for _name, _value in (("gradix_cache", "off"), ("gradix_retrace_warning", 0)):
    _config.config.update(_name, _value)
    os.environ[_name.upper()] = str(_value)

HAVE_PEER = importlib.util.find_spec("jax") is not None


def pytest_collection_modifyitems(items):
    if HAVE_PEER:
        return
    for item in items:
        if item.get_closest_marker("parity"):
            item.add_marker(pytest.mark.skip(reason="the reference implementation (jax) is not installed"))


@pytest.fixture(autouse=True)
def _configuration_put_back():
    """Options a test sets for the whole process end with the test."""
    config = _config.config
    before = config.values
    yield
    for name, value in config.values.items():
        if value != before[name]:
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
