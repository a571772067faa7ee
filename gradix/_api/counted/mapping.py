"""`vmap` of functions with sizes that values decide, which differ among the examples."""

from __future__ import annotations

from functools import wraps

from gradix._api.arguments import name_of
from gradix._api.counted.ragged import Ragged
from gradix._base.tree import tree_flatten
from gradix._control.mapped import mapped
from gradix._control.program_interning import interned
from gradix._core.operators import Array
from gradix._ops.basis import move_axis
from gradix._ops.convert import convert_element_type
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.joining import concatenate
from gradix._ops.shape import reshape
from gradix._transforms.batch import example_aval
from gradix._transforms.counted import Closing
from gradix._transforms.staging import StagingTracer, hoist, stage


def _is_ragged(x) -> bool:
    return type(x) is Ragged


def check_axes(fun, arguments, axes) -> None:
    """Raise where `vmap` would map a `Ragged` over another axis than that of its rows.

    Args:
        axes: the axis of each leaf of the arguments.
    """
    at = 0
    for x in tree_flatten(arguments, _is_ragged)[0]:
        if type(x) is not Ragged:
            at += 1
            continue
        if axes[at : at + 2] not in ([0, 0], [None, None]):
            raise ValueError(
                f"vmap of {name_of(fun)} maps a Ragged over its rows, which are the first axis: give it in_axes=0, or "
                f"None to share it, got {axes[at]} for its buffer and {axes[at + 1]} for its counts."
            )
        at += 2


def rows_opened(tree):
    """The arguments of one example, in which a `Ragged` has become one of its rows."""
    leaves, structure = tree_flatten(tree, _is_ragged)
    if not any(map(_is_ragged, leaves)):
        return tree
    return structure.unflatten([x.as_row() if type(x) is Ragged and x.is_row() else x for x in leaves])


def over_rows(f, xs):
    """The body of a loop over `xs`, which gets the rows of a `Ragged` as arrays of their own lengths."""
    if not any(map(_is_ragged, tree_flatten(xs, _is_ragged)[0])):
        return f

    @wraps(f)
    def body(*args):
        return f(*args[:-1], rows_opened(args[-1]))

    return body


def batch_whole(flat, axis, leaves, axes) -> tuple:
    """As `batch`, for a function that is traced before it is mapped.

    Returns:
        the results, their batch axes, and the sizes of the results that have sizes of their own:
        a dict from the position of a result to the sizes of the examples, and the axes that have
        them, as a `Ragged` says it.
    """
    if axis.name is not None:
        raise NotImplementedError(
            f"vmap with axis_name={axis.name!r} of a function with sizes that values decide: they differ among the "
            "examples, which are traced without this axis. Leave out axis_name."
        )
    positions: list[int] = []
    ranks: list[int | tuple[int, ...]] = []
    places = [i for i, x in enumerate(leaves) if isinstance(x, Array)]  # numbers that are not mapped stay numbers

    def whole(*xs):
        operands = list(leaves)
        for i, x in zip(places, xs):
            operands[i] = x
        outs = flat(*operands)
        closing = Closing(StagingTracer)
        positions[:] = [i for i, x in enumerate(outs) if closing.concerns(x)]
        sizes = []
        for i in positions:
            own = {j: d for j, d in enumerate(outs[i].aval.shape) if closing.is_own(d)}
            if list(own) == list(range(len(own))) and len(set(own.values())) == 1:
                ranks.append(len(own))
                sizes.append(_strong(dim_as_value(own[0])))
            else:
                ranks.append(tuple(own))
                sizes.append(_strong(concatenate([reshape(dim_as_value(d), (1,)) for d in own.values()], 0)))
            outs[i] = closing.close(outs[i])
        return [*outs, *sizes]

    rows, of_rows = [leaves[i] for i in places], [axes[i] for i in places]
    avals = [x.aval if a is None else example_aval((x.aval, a)) for x, a in zip(rows, of_rows)]
    closed, consts = hoist(*stage(whole, avals))
    outs = mapped(interned(closed), axis.size, [*consts, *rows], [*[None] * len(consts), *of_rows])
    n = len(outs) - len(positions)
    return outs[:n], [0] * n, dict(zip(positions, zip(outs[n:], ranks)))


def _strong(n):
    return convert_element_type(n, n.aval.dtype)


def results(fun, tree, vals, sizes: dict, wanted):
    """The result of `vmap`, in which arrays of different sizes are `Ragged`."""
    outs = []
    for i, (x, w) in enumerate(zip(vals, wanted)):
        if w is None or (i in sizes and w not in (0, -x.aval.ndim)):
            raise NotImplementedError(
                f"vmap of {name_of(fun)} with out_axes={w} for a function in which values decide sizes: rows of "
                "different lengths stay the first axis, and no result is known to be the same for all. Use out_axes=0."
            )
        outs.append(Ragged(x, *sizes[i]) if i in sizes else move_axis(x, 0, w % x.aval.ndim))
    return tree.unflatten(outs)


def no_refs(fun) -> NotImplementedError:
    return NotImplementedError(
        f"vmap of {name_of(fun)} over mutable arrays, in which values decide sizes. Map over their values instead."
    )


def no_chunks() -> NotImplementedError:
    return NotImplementedError(
        "vmap with chunk_size of a function whose result has a size that values decide: its rows are of different "
        "lengths. Leave out chunk_size, or return what has a known size, such as a sum."
    )
