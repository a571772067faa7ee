"""`pallas_call_p`: a call of the program that runs a kernel over its grid."""

from __future__ import annotations

from gradix._control.call import Call
from gradix._control.composite import Composite


class KernelCall(Composite):
    """A call of `jaxpr`, which cuts blocks, runs `kernel` for each program of `grid`, and puts them back.

    A transform is applied to the program as a whole, and gives a plain call.
    """

    dce = Call.dce
    lower = Call.lower

    def show(self, params):
        return {k: params[k] for k in ("name", "grid", "kernel")}


pallas_call_p = KernelCall("pallas_call")
