"""`%load_ext gradix`: the magic `%%gradix_profile`, which profiles a cell of a notebook."""

from __future__ import annotations

from typing import Any

from gradix._api.costs.profile import Profile, profile
from gradix._api.devices import devices
from gradix._base import tracebacks
from gradix._base.lazy import lazy_module
from gradix._base.tree import PyTreeDef

_showing = lazy_module("gradix._api.showing")


def load_ipython_extension(ipython: Any) -> None:
    """Define `%%gradix_profile`, and show treedefs and devices; IPython calls this for `%load_ext gradix`.

    Args:
        ipython: the shell of IPython.

    Example:
        >>> import gradix
        >>> class Shell:
        ...     def register_magic_function(self, function, kind):
        ...         print("%%" + function.__name__, "for a", kind)
        >>> gradix.load_ipython_extension(Shell())
        %%gradix_profile for a cell
    """

    def gradix_profile(line: str, cell: str) -> Profile:
        """Run the cell, and show what each of its lines costs; a name keeps the profile."""
        with profile() as p:
            ipython.run_cell(cell)
        if line.strip():
            ipython.push({line.strip(): p})
        return p

    ipython.register_magic_function(gradix_profile, "cell")
    tracebacks.leave_out_in(ipython)
    # these classes are jaxlib's, and get no method of ours
    formatter = getattr(getattr(ipython, "display_formatter", None), "formatters", {}).get("text/html")
    if formatter is not None:
        formatter.for_type(PyTreeDef, _showing.structure)
        formatter.for_type(type(devices()[0]), _showing.device)
