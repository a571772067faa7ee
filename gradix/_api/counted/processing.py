"""Sizes that values decide: how programs with them are processed before they are lowered."""

from typing import NamedTuple

from gradix._api.counted.masking import call, masked
from gradix._api.counted.results import close
from gradix._api.counted.sealing import Sealing
from gradix._control.mapped import mapped_jaxpr
from gradix._core.aval import seen


class Processing(NamedTuple):
    """What lower layers need of this package, in `seen.counts` from the first count on."""

    masked: object
    mapped: object
    call: object
    close: object
    sealing: object


seen.counts = Processing(masked, mapped_jaxpr, call, close, Sealing)
