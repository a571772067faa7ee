"""Where a program runs: NumPy on the host, XLA, and the choice between them."""

import os

# jaxlib reads this variable once, when it is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
