"""The tests in `eight` need eight devices, which a process has from its first use of one: `test_eight.py` starts it."""
import os

collect_ignore = [] if os.environ.get("GRADIX_TEST_EIGHT") else ["eight"]
