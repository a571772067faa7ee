"""What the doctests of the package need; the tests' own fixtures are in tests/conftest.py."""

import sys

import pytest

from gradix._base.config import config

# importing them is what installs gradix as jax
collect_ignore = ["gradix/pytest.py", "gradix/compat/answers/jax.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Doctests run as in a process of their own.

    The reference implementation, which another test may have imported, is not there, and functions warn when they are
    traced often, which the suite turns off.
    """
    if not isinstance(item, pytest.DoctestItem):
        return (yield)
    peer = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "jax"}
    before = config.gradix_retrace_warning
    config.update("gradix_retrace_warning", 3)
    try:
        return (yield)
    finally:
        config.update("gradix_retrace_warning", before)
        sys.modules.update(peer)
