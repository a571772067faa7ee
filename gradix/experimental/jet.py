"""Taylor mode: derivatives of many orders along a curve, in one pass."""

from gradix._api.derivatives.jet import jet as jet

__all__ = ["jet"]
