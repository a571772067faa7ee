"""Text pictures that show how arrays are divided over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradix._api.custom_partitioning import local_part, next_number
from gradix._base.tree import tree_map
from gradix._control.custom_partitioning import inspect_sharding_p
from gradix._core.array import as_array
from gradix._core.sharding import Sharding, SingleDeviceSharding
from gradix._core.trace import Tracer, bind
from gradix._runtime.program import lower
from gradix._runtime.xla import local_devices
from gradix._transforms.staging import stage_closed

if TYPE_CHECKING:
    pass

_HEIGHT = 10  # lines of a picture
_LETTERS = 2.5  # as many letters side by side are as wide as a line is high


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback` with the sharding of each array, at compile time for traced arrays.

    Args:
        value: arrays in a pytree. Within `shard_map`, where each device has its own part, the
            callback is not called.
        callback: a function of a Sharding.

    Example:
        >>> import gradix.numpy as jnp
        >>> inspect_array_sharding(jnp.ones(2), callback=lambda s: print(s.is_fully_replicated))
        True
    """

    def inspect(x):
        x = as_array(x)
        if isinstance(x, Tracer):
            bind(inspect_sharding_p, (x,), {"inspector": _Inspector(callback)})
        else:
            callback(x.sharding)  # type: ignore[attr-defined]

    tree_map(inspect, value)


class _Inspector:
    """A function of shardings in the form that the compiler calls."""

    def __init__(self, tell: Callable[[Sharding], None], aval=None):
        self.tell, self.number = tell, next_number()
        self.in_avals = self.out_avals = (aval,)

    def of(self, aval) -> _Inspector:
        """The inspector for one operand, of this type."""
        return _Inspector(self.tell, aval)

    def tell_whole(self, devices) -> None:
        self.tell(SingleDeviceSharding(devices[0] if devices else local_devices()[0]))

    def answer(self, mesh, devices, in_shardings, out_shardings):
        """Call the function, and return a program for the operand as it is divided."""
        self.tell(in_shardings[0])
        part = local_part(self.in_avals[0], in_shardings[0])
        closed = stage_closed(lambda x: [x], [part])
        return lower(closed, "part", devices=devices, part_of=mesh).text, in_shardings, in_shardings


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print how an array of one or two axes is divided; for a traced one when it is compiled.

    Args:
        arr: the array.
        kwargs: the options of `visualize_sharding`.

    Raises:
        ValueError: there are more axes, or none.

    Example:
        >>> import gradix.numpy as jnp
        >>> visualize_array_sharding(jnp.ones(8))
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(arr.shape, s, **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print how arrays of a shape are divided: a box for each part, with its devices.

    Args:
        shape: a shape of one or two axes.
        sharding: the sharding.
        use_color, color_map: accepted for compatibility; boxes show the parts.
        scale: the size of the picture, relative to the default.
        min_width, max_width: the least width of a box with its frame, and the largest of the
            picture, in letters.

    Raises:
        ValueError: there are more axes, or none.

    Example:
        >>> import gradix
        >>> from gradix.sharding import SingleDeviceSharding
        >>> visualize_sharding((8, 8), SingleDeviceSharding(gradix.devices()[0]), scale=0.4)
        ┌────────┐
        │        │
        │ CPU 0  │
        │        │
        └────────┘
    """
    print(drawn(tuple(shape), sharding, scale, min_width, max_width))


def drawn(shape: tuple, sharding: Sharding, scale: float = 1.0, min_width: int = 9, max_width: int = 80) -> str:
    """The picture as text."""
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}.")
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
    height = int(_HEIGHT * scale)
    across = height * shape[1] // shape[0] if len(shape) == 2 else height // shape[0]
    width = max(int(across * _LETTERS) // len(columns), min_width) - 2
    width = min(width, (max_width - 1) // len(columns) - 1)
    width = max(width, *map(len, names.values()))
    height = 1 if len(shape) == 1 else max(1, height // len(rows) - 1)
    line = lambda left, mid, right: left + mid.join(["─" * width] * len(columns)) + right  # noqa: E731
    out = [line("┌", "┬", "┐")]
    for i, r in enumerate(rows):
        blank = "│" + "│".join([" " * width] * len(columns)) + "│"
        label = "│" + "│".join([_centred(names[r, c], width) for c in columns]) + "│"
        out += [blank] * ((height - 1) // 2) + [label] + [blank] * (height // 2)
        out.append(line("├", "┼", "┤") if i + 1 < len(rows) else line("└", "┴", "┘"))
    return "\n".join(out)


def _centred(name: str, width: int) -> str:
    """A name in the middle of a cell, or half a letter to the left of it."""
    return (" " * ((width - len(name)) // 2) + name).ljust(width)
