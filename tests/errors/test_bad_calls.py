"""Every bad call raises the error it should, with a message that helps."""

import builtins
import os
import re
import warnings

import pytest

from tests.errors.bad_calls import bad_calls, scope
from tests.parity.namespace import target

CALLS = list(bad_calls())
LONGEST = 25
# With PARITY_TARGET=jax the types are checked, not the wording.
WORDING = os.environ.get("PARITY_TARGET", "gradix") == "gradix"


@pytest.fixture(scope="module")
def ns():
    return target()


def error_types(ns, names):
    if "*" in names:
        return (Exception,)
    return tuple(getattr(builtins, name, None) or getattr(ns.errors, name) for name in names)


@pytest.mark.x32
@pytest.mark.promotes
@pytest.mark.parametrize("bad", CALLS, ids=lambda bad: bad.id)
def test_bad_call(ns, bad):
    names = scope(ns)
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        result = eval(bad.text, names)
        ns.jax.block_until_ready(result)
    error = caught.value
    assert isinstance(error, error_types(ns, bad.types)), f"{bad.text}: {type(error).__name__}: {error}"
    if WORDING:
        check_message(bad, error)


def check_message(bad, error):
    """The message names what was wrong, is short enough to be read, and is not a bare assertion."""
    message = str(error).strip()
    assert message, f"{bad.text}: {type(error).__name__} without a message"
    assert not isinstance(error, AssertionError) or "AssertionError" in bad.types, (
        f"{bad.text}: a bare assertion: {message}"
    )
    assert message.count("\n") < LONGEST, f"{bad.text}: {message.count(chr(10)) + 1} lines:\n{message}"
    assert not re.fullmatch(r'(File )?"?\S+\.py"?(:\d+|, line \d+)?', message), f"{bad.text}: only a place: {message}"
    found = re.search(bad.pattern, message, re.IGNORECASE | re.DOTALL)
    assert found, f"{bad.text}: {type(error).__name__} does not say {bad.pattern!r}:\n{message}"


def test_the_table_is_long_enough():
    print(len(CALLS), "bad calls")
    assert len(CALLS) >= 120
    assert len({bad.id for bad in CALLS}) == len(CALLS)
