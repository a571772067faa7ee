"""What kernels send to other devices of a mesh: values with the places that they are written to.

All devices run a kernel in step, so a copy or a signal is made for all of them at a time, by
gathering what each sends over the axes of the mesh.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base import config
from gradix._base.tree import tree_flatten
from gradix._control.shard_map import Frame
from gradix._core.refs import Ref, View
from gradix._core.trace import is_unknown, state
from gradix.experimental.pallas._predicates import anywhere, condition
from gradix.experimental.pallas._refs import KernelRef, KernelView, Sliceable, Transformed
from gradix.experimental.pallas._windows import as_index


def device_axes() -> tuple[str, ...]:
    """The axes of the mesh of which a kernel runs on each device, in the order of the mesh."""
    bound = [name for name, t in state.axes.items() if isinstance(t, Frame)]
    mesh = config.state.gradix_mesh
    order = list(mesh.axis_names) if mesh is not None else bound
    return tuple(sorted(bound, key=order.index))


@contextlib.contextmanager
def untracked() -> Iterator[None]:
    """A context in which types do not say over which axes of the mesh values vary.

    A kernel is traced for references whose types do not say so; the values that it is run on do.
    """
    before, state.manual = state.manual, frozenset()
    try:
        yield
    finally:
        state.manual = before


def deliver(
    what: str, device_id: Any, device_id_type: Any, value: Any, places: Sequence[Ref], write: Callable[..., None]
) -> None:
    """Send a value to a device, and write on each device what is sent to it.

    Args:
        what: the operation, for messages.
        device_id, device_id_type: the device that each device sends to.
        value: an array, of one type on all devices.
        places: references whose indices the sender computes.
        write: a function of whether something arrives, the value, and those references. It is called
            for each sender, in the order of the devices.

    Raises:
        ValueError: the kernel does not run on a mesh, or the mesh has no such device.
    """
    axes = device_axes()
    if not axes:
        raise ValueError(f"{what} reaches other devices, but the kernel runs on one. Call it in shard_map over a mesh.")
    target = _number(what, device_id, device_id_type, axes)
    holds = condition()
    if holds is not None:
        target = jnp.where(holds, target, np.int32(-1))
    for ref in places:
        _check_root(what, _root(ref), holds is not None)
    indices = [_indices(ref) for ref in places]
    sent = [target, value, *[i for row in indices for i in row]]
    targets, values, *rest = [lax.all_gather(x, axes) for x in sent]
    arrives = targets == lax.axis_index(axes).astype(np.int32)
    with anywhere():
        for sender in range(targets.shape[0]):
            given = iter([x[sender] for x in rest])
            write(arrives[sender], values[sender], *[_at(ref, given) for ref in places])


def _number(what: str, device_id: Any, device_id_type: Any, axes: tuple[str, ...]) -> Any:
    """The number of a device among all devices of the mesh, an int32."""
    if getattr(device_id_type, "value", "mesh") == "logical":
        return _integer(what, device_id)
    if isinstance(device_id, dict):
        given = {}
        for names, i in device_id.items():
            i = _integer(what, i)
            for name in reversed(names if isinstance(names, tuple) else (names,)):
                if name not in axes:
                    raise NotImplementedError(
                        f"{what} names a device by the axis {name!r}, which is none of the mesh: its axes are "
                        f"{', '.join(map(repr, axes))}. Cores of a device run one after another here, and cannot be "
                        "reached."
                    )
                given[name] = lax.rem(i, as_index(lax.axis_size(name)))
                i = lax.div(i, as_index(lax.axis_size(name)))
        ids = [given[a] if a in given else lax.axis_index(a) for a in axes]
    else:
        ids = tree_flatten(device_id)[0]
        if len(ids) != len(axes):
            raise ValueError(
                f"{what} got the device_id {device_id!r} of {len(ids)} indices, for a mesh with the axes "
                f"{', '.join(map(repr, axes))}. Give an index for each axis, or a dict from axes to indices; a number "
                "among all devices needs device_id_type=pl.DeviceIdType.LOGICAL."
            )
    number = as_index(0)
    for a, i in zip(axes, ids):
        number = number * as_index(lax.axis_size(a)) + _integer(what, i)
    return number


def _integer(what: str, i: Any) -> Any:
    x = jnp.asarray(i)
    if x.shape or x.dtype.kind not in "iu":
        raise TypeError(f"{what} needs integers as device_id, got {i!r}.")
    return x.astype(np.int32)


# -- references that senders name ----------------------------------------------------------------


def _root(ref: Ref) -> Ref:
    while isinstance(ref, (View, Transformed)):
        ref = ref.base
    return ref


def _check_root(what: str, root: Ref, is_conditional: bool) -> None:
    if isinstance(root, KernelRef):
        return
    if isinstance(root, Sliceable):
        raise NotImplementedError(
            f"{what} writes to a reference that pl.select_ref picked, which may differ between devices. Make one "
            "reference of the arrays, and take a part of it with ref.at[i]."
        )
    if is_conditional:
        raise NotImplementedError(
            f"{what} under pl.when writes to {root.aval}, a reference from outside of the kernel. Make it an "
            "argument or a result of the kernel."
        )


def _indices(ref: Ref) -> list:
    """The traced indices of a part of a reference, from the innermost part."""
    if isinstance(ref, View):
        return [*_indices(ref.base), *[x for x in tree_flatten(ref.index)[0] if is_unknown(x)]]
    return _indices(ref.base) if isinstance(ref, Transformed) else []


def _at(ref: Ref, given) -> Ref:
    """The same part of a reference with other traced indices, which are taken from an iterator."""
    if isinstance(ref, View):
        base = _at(ref.base, given)
        leaves, tree = tree_flatten(ref.index)
        return KernelView(base, tree.unflatten([next(given) if is_unknown(x) else x for x in leaves]))
    return type(ref)(_at(ref.base, given), ref.how) if isinstance(ref, Transformed) else ref
