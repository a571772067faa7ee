"""A whole process that imports the library and ends."""

import os
import subprocess
import sys

from benchmarks.case import case


@case("import in a new process", "import", 0.45, numpy=True)
def whole_process(x):
    statement = "import numpy" if x.name == "numpy" else f"import {x.name}, {x.name}.numpy"
    # An installed package has its bytecode, so a source tree may keep its bytecode too.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True, env=environment) and None
