"""Functions on pytrees: nested tuples, lists, dicts, dataclasses and registered types."""

import re as _re

from gradix._base import tree as _tree
from gradix._base.lazy import alias as _alias, on_demand as _on_demand
from gradix._base.tree import static

with _on_demand(globals()):
    from gradix._api.showing import summary as summary

all = _alias(_tree.tree_all, "all", __name__)
broadcast = _alias(_tree.tree_broadcast, "broadcast", __name__)
flatten = _alias(_tree.tree_flatten, "flatten", __name__)
flatten_with_path = _alias(_tree.tree_flatten_with_path, "flatten_with_path", __name__)
leaves = _alias(_tree.tree_leaves, "leaves", __name__)
leaves_with_path = _alias(_tree.tree_leaves_with_path, "leaves_with_path", __name__)
map = _alias(_tree.tree_map, "map", __name__)
map_with_path = _alias(_tree.tree_map_with_path, "map_with_path", __name__)
reduce = _alias(_tree.tree_reduce, "reduce", __name__)
reduce_associative = _alias(_tree.tree_reduce_associative, "reduce_associative", __name__)
structure = _alias(_tree.tree_structure, "structure", __name__)
transpose = _alias(_tree.tree_transpose, "transpose", __name__)
unflatten = _alias(_tree.tree_unflatten, "unflatten", __name__)

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "summary",
    "transpose",
    "unflatten",
]

# Their documentation calls them by these names.
_LONG = _re.compile(rf"\btree_(?=(?:{'|'.join(__all__)})\b)")
for _name in set(__all__) - {"static", "summary"}:
    globals()[_name].__doc__ = _LONG.sub("", globals()[_name].__doc__)
