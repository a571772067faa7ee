"""How treescope, a viewer of trees in notebooks, shows arrays; it calls this itself where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import is_extended

_adapters = lazy_module("treescope.ndarray_adapters")
_parts = lazy_module("treescope.rendering_parts")


def _numbers(x: Any) -> np.ndarray:
    """The values as numbers that NumPy's own dtypes have, which treescope draws."""
    host = np.asarray(x)
    return host if host.dtype.kind in "biufc" and host.dtype.isbuiltin == 1 else host.astype(np.float32)


def _truncated(host: np.ndarray, edges: tuple[int | None, ...]) -> np.ndarray:
    """So many elements from both ends of each axis, with one between them; None keeps the axis."""
    for axis, n in enumerate(edges):
        if n is not None:
            size = host.shape[axis]
            host = np.take(host, [*range(n), n, *range(size - n, size)], axis)
    return host


class Adapter:
    """What treescope asks of an array, by the names of its class NDArrayAdapter."""

    def get_axis_info_for_array_data(self, array: ArrayImpl) -> tuple:
        return tuple([_adapters.PositionalAxisInfo(i, n) for i, n in enumerate(array.shape)])

    def get_array_data_with_truncation(
        self, array: ArrayImpl, mask: Any, edge_items_per_axis: tuple[int | None, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        shown = np.broadcast_to(np.asarray(True if mask is None else mask, bool), array.shape)
        shown = _truncated(shown, edge_items_per_axis).copy()
        for axis, n in enumerate(edge_items_per_axis):
            if n is not None:
                np.moveaxis(shown, axis, 0)[n] = False
        return _truncated(_numbers(array), edge_items_per_axis), shown

    def get_array_summary(self, array: ArrayImpl, fast: bool) -> str:
        about = f"gradix.Array {array.aval.str_short()}"
        if fast or not self.should_autovisualize(array) or not array.size:
            return about
        host = _numbers(array)
        known = host[np.isfinite(host)]
        if host.dtype.kind == "c" or not known.size:
            return about
        lost = f" not finite: {host.size - known.size:,}" if known.size < host.size else ""
        return f"{about} [≥{known.min():.4g}, ≤{known.max():.4g}]{lost}"

    def get_numpy_dtype(self, array: ArrayImpl) -> np.dtype | None:
        return None if is_extended(array.dtype) else _numbers(array[(0,) * array.ndim]).dtype if array.size else None

    def get_sharding_info_for_array_data(self, array: ArrayImpl) -> None:
        return None

    def should_autovisualize(self, array: ArrayImpl) -> bool:
        return not (array.is_deleted() or is_extended(array.dtype)) and array.is_fully_addressable


def shown(array: ArrayImpl, path: str | None, subtree_renderer: Any) -> Any:
    """The array as a node of the tree: a summary, which unfolds to the values."""
    summary = Adapter().get_array_summary(array, fast=False)
    return _parts.build_custom_foldable_tree_node(
        label=_parts.abbreviation_color(_parts.text(f"<{summary}>")),
        contents=_parts.fold_condition(
            collapsed=_parts.empty_part(),
            expanded=_parts.indented_children([_parts.text("deleted" if array.is_deleted() else repr(array))]),
        ),
        path=path,
    )
