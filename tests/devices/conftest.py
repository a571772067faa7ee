"""What is not collected here: programs that tests start, and what needs eight devices.

A process has its devices from its first use of one, so `test_eight.py` starts another for the tests in `eight`.
"""

import os

collect_ignore = ["programs"] if os.environ.get("GRADIX_TEST_EIGHT") else ["programs", "eight"]
