"""Memory layouts of arguments and results of compiled programs."""
from gradix._core.formats import Format as Format, Layout as Layout

__all__ = ["Format", "Layout"]
