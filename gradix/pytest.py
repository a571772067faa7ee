"""`pytest -p gradix.pytest` runs a test suite for JAX on gradix, also in worker processes."""

from gradix.compat import answering, install_as_jax

install_as_jax()
answering.reach_children()


def pytest_report_header() -> str:
    """The line in the header of pytest's report."""
    return "jax: gradix is used instead"
