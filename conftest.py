"""What the doctests of the package need; the tests' own fixtures are in tests/conftest.py."""

import sys

import pytest

# importing them is what installs gradix as jax
collect_ignore = ["gradix/pytest.py", "gradix/compat/answers/jax.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Doctests run as in a process without the reference implementation, which another test may have imported."""
    peer = {}
    if isinstance(item, pytest.DoctestItem):
        peer = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "jax"}
    try:
        return (yield)
    finally:
        sys.modules.update(peer)
