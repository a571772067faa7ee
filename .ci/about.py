"""Print on what the suite runs: `suite on Python 3.11.7: jaxlib 0.10.2, numpy 2.4.6, ...`."""

import platform
from importlib.metadata import PackageNotFoundError, version


def known(package: str) -> str:
    """A package and its version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


packages = ", ".join(map(known, ("jaxlib", "numpy", "scipy", "ml_dtypes", "jax")))
print(f"suite on Python {platform.python_version()}: {packages}")
