"""Memory layouts of arguments and results of compiled programs."""

from gradix._api.constraints import with_layout_constraint as with_layout_constraint
from gradix._core.array_layouts import Format as Format, Layout as Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]
