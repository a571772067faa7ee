"""A plug-in for `make strict`: the suite under the options that forbid to promote dtypes, and to broadcast over ranks.

What a test mixes itself is what the options are there to forbid. Where they raise, the call that the test made is
looked at: if its arguments have several ranks, or dtypes without a common one, the test is skipped, else it fails,
since then it is the library that mixed them. Tests that state what promotion gives, or which frames an error shows, are
marked `promotes`, and run without the options.
"""

import inspect
import itertools
import sysconfig
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gradix
from gradix._base.config import config

STRICT = {"jax_numpy_rank_promotion": "raise", "jax_numpy_dtype_promotion": "strict"}
# The frames of the library are what is looked at.
FRAMES = {"jax_traceback_filtering": "tracebackhide"}
LIBRARY = str(Path(gradix.__file__).parent)
ELSEWHERE = (LIBRARY, *{sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_skipped: Counter = Counter()


def pytest_configure():
    """Set the options for all of the process."""
    for name, value in {**STRICT, **FRAMES}.items():
        config.update(name, value)


@pytest.fixture(autouse=True)
def _promotion_of_its_facts(request):
    """What a test that is marked `promotes` states is so without the options."""
    if request.node.get_closest_marker("promotes") is None:
        yield
        return
    config.update("jax_traceback_filtering", "auto")
    with gradix.numpy_rank_promotion("allow"), gradix.numpy_dtype_promotion("standard"):
        yield
    for name, value in FRAMES.items():
        config.update(name, value)


def is_of_the_options(error: BaseException) -> bool:
    """Whether the options raised it."""
    return isinstance(error, gradix.dtypes.TypePromotionError) or "jax_numpy_rank_promotion is" in str(error)


def call_of_a_test(error: BaseException):
    """The frame of the library's function that the innermost frame of a test called; None if it called none."""
    frames, traceback = [], error.__traceback__
    while traceback:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    inner = list(itertools.takewhile(lambda f: f.f_code.co_filename.startswith(ELSEWHERE), reversed(frames)))
    return next((f for f in reversed(inner) if f.f_code.co_filename.startswith(LIBRARY)), None)


def operands(frame) -> list:
    """The arrays and numbers among the arguments of a call."""
    found = inspect.getargvalues(frame)
    names = [*found.args, *filter(None, (found.varargs, found.keywords))]
    leaves = gradix.tree.leaves([found.locals[name] for name in names if name in found.locals])
    return [x for x in leaves if isinstance(x, (gradix.Array, np.ndarray, np.generic, bool, int, float, complex))]


def mixes(values) -> bool:
    """Whether arrays have several ranks, scalars apart, or dtypes without a common one under the options."""
    if len({np.ndim(x) for x in values} - {0}) > 1:
        return True
    try:
        with gradix.numpy_dtype_promotion("strict"):
            gradix.numpy.result_type(*values)
    except ValueError:
        return bool(values)
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip what a test mixes itself."""
    try:
        return (yield)
    except Exception as error:
        frame = call_of_a_test(error) if is_of_the_options(error) else None
        if frame is None or not mixes(operands(frame)):
            raise
        _skipped[item.nodeid.partition("::")[0]] += 1
        pytest.skip("the test itself mixes ranks or dtypes")
