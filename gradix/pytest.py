"""`pytest -p gradix.pytest`: run a test suite written for JAX on gradix, in worker processes too."""

from gradix.compat import answering, install_as_jax

answering.reach_children()
install_as_jax()


def pytest_report_header() -> str:
    """The line at the head of pytest's report."""
    return "jax: gradix stands in for it"
