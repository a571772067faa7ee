"""Pictures, in text, of how arrays are divided over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._base.tree import tree_map
from gradix._core.array import as_array
from gradix._core.sharding import Sharding
from gradix._core.trace import Tracer

_WIDTH, _HEIGHT = 48, 12


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback` with the sharding of each array in a tree.

    Args:
        value: concrete arrays; of a traced one see `jit(f).lower(x).compile().output_shardings`.
        callback: takes a Sharding.

    Raises:
        NotImplementedError: an array is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> inspect_array_sharding(jnp.ones(2), callback=lambda s: print(s.is_fully_replicated))
        True
    """

    def inspect(x):
        if isinstance(x, Tracer):
            raise NotImplementedError(
                "inspect_array_sharding of a traced array: the compiler has not chosen its "
                "sharding yet. Return the array, or look at "
                "jit(f).lower(x).compile().output_shardings."
            )
        callback(as_array(x).sharding)  # type: ignore[attr-defined]

    tree_map(inspect, value)


def visualize_array_sharding(arr, **kwargs) -> None:
    """Print how an array of one or two axes is divided over devices.

    Example:
        >>> import gradix.numpy as jnp
        >>> visualize_array_sharding(jnp.ones(8), max_width=11)
        ┌─────────┐
        │  CPU 0  │
        └─────────┘
    """
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(arr.shape, s, **kwargs))


def visualize_sharding(
    shape,
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
) -> None:
    """Print how arrays of a shape are divided: a box for each part, with the numbers of the devices that hold it.

    Args:
        shape: of one or two axes.
        sharding: the division.
        use_color: accepted; boxes tell the parts.
        scale: of the picture.
        min_width, max_width: in letters.

    Raises:
        ValueError: there are more axes, or none.

    Example:
        >>> import gradix
        >>> from gradix.sharding import SingleDeviceSharding
        >>> visualize_sharding((8, 8), SingleDeviceSharding(gradix.devices()[0]), max_width=11)
        ┌─────────┐
        │         │
        │  CPU 0  │
        │         │
        └─────────┘
    """
    print(drawn(tuple(shape), sharding, scale, min_width, max_width))


def drawn(
    shape: tuple, sharding: Sharding, scale: float = 1.0, min_width: int = 9, max_width: int = 80
) -> str:
    """The picture as text."""
    if len(shape) not in (1, 2):
        raise ValueError(
            f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}."
        )
    holders: dict[tuple, list[int]] = {}
    kind = ""
    for device, index in sharding.devices_indices_map(shape).items():
        index = index if len(shape) == 2 else (slice(None), *index)
        full = shape if len(shape) == 2 else (1, *shape)
        starts = tuple([s.indices(n)[0] for s, n in zip(index, full)])
        holders.setdefault(starts, []).append(device.id)
        kind = device.platform.upper()
    rows, columns = sorted({r for r, _ in holders}), sorted({c for _, c in holders})
    names = {k: f"{kind} {','.join(map(str, sorted(v)))}" for k, v in holders.items()}
    widest = max(map(len, names.values())) + 4
    width = max(
        widest,
        min(
            max(int(_WIDTH * scale) // len(columns), min_width),
            max(widest, (max_width - 1) // len(columns) - 1),
        ),
    )
    height = 1 if len(shape) == 1 else max(1, min(3, int(_HEIGHT * scale) // len(rows)))
    line = lambda left, mid, right: left + mid.join(["─" * width] * len(columns)) + right  # noqa: E731
    out = [line("┌", "┬", "┐")]
    for i, r in enumerate(rows):
        blank = "│" + "│".join([" " * width] * len(columns)) + "│"
        label = "│" + "│".join([names[r, c].center(width) for c in columns]) + "│"
        out += [blank] * ((height - 1) // 2) + [label] + [blank] * (height // 2)
        out.append(line("├", "┼", "┤") if i + 1 < len(rows) else line("└", "┴", "┘"))
    return "\n".join(out)
