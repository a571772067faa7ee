"""Print the oldest versions that `pyproject.toml` allows of what the package needs, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8"))
for needed in PROJECT["project"]["dependencies"]:
    name, least, where = re.match(r"([\w-]+)>=([\d.]+)[^;]*(;.*)?", needed).groups()
    print(f"{name}=={least}.*{where or ''}")
