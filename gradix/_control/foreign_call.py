"""The primitive that calls a compiled function registered with XLA under a name."""

from __future__ import annotations

import numpy as np

from gradix._control.scan import bind_scan
from gradix._core.aval import abstract_token
from gradix._core.effects import io_effect, no_effects, ordered_io_effect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import expand_axis, to_front
from gradix._transforms.batch import insert_axis, mapped_aval
from gradix._transforms.staging import stage_closed

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class ArrayAttribute:
    """A NumPy array as an attribute, with a hash and equality."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray):
        self.array = array

    def __eq__(self, other) -> bool:
        return (
            type(other) is ArrayAttribute
            and self.array.dtype == other.array.dtype
            and np.array_equal(self.array, other.array)
        )

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.dtype, self.array.tobytes()))

    def __repr__(self) -> str:
        return repr(self.array)


class ForeignCall(Primitive):
    """Calls the function that is registered with XLA as `target_name`.

    Its results have the types `result_avals`. Layouts list axes from major to minor. `attributes`
    and `input_output_aliases` are sorted pairs, so that parameters can be compared. `tokens` are the
    places of tokens among the operands and among the results of the function.
    """

    multiple_results = True
    effectful = True
    _EFFECTS = frozenset({io_effect})
    _ORDERED = frozenset({ordered_io_effect})

    def abstract(self, *avals, result_avals, **_):
        return list(result_avals)

    def effects(self, params):
        if any(params["tokens"]):
            return self._ORDERED
        return self._EFFECTS if params["has_side_effect"] else no_effects

    def jvp(self, primals, tangents, **params):
        if not any(t is not None for t in tangents):
            outs = bind(self, primals, params)
            return outs, [None] * len(outs)
        raise ValueError(
            f"The FFI call to `{params['target_name']}` cannot be differentiated: the derivative of "
            "a compiled function is not known. Wrap the call in custom_jvp or custom_vjp, or stop "
            "the gradient with lax.stop_gradient."
        )

    def batch(self, size, args, axes, **params):
        method = params["vmap_method"]
        if method is None:
            raise NotImplementedError(
                f"vmap of the FFI call to `{params['target_name']}` needs to know how the function "
                "handles many examples. Pass vmap_method to ffi_call: 'sequential' calls it once "
                "for each example, 'expand_dims' or 'broadcast_all' once with a leading axis. Got "
                "vmap_method=None."
            )
        mapped = [a is not None for a in axes]
        xs = [x if a is None else to_front(size, x, a) for x, a in zip(args, axes)]
        if method.startswith("sequential"):
            return self._one_by_one(size, xs, mapped, params)
        if method == "broadcast_all":
            xs = [to_front(size, x, a) for x, a in zip(args, axes)]
            mapped = [True] * len(xs)
        elif method == "expand_dims":
            xs = [x if m else expand_axis(x, 0) for x, m in zip(xs, mapped)]
            mapped = [True] * len(xs)
        avals = tuple([insert_axis(a, size, 0) for a in params["result_avals"]])
        wider = {
            "result_avals": avals,
            "input_layouts": tuple([_wider(o) if m else o for o, m in zip(params["input_layouts"], mapped)]),
            "output_layouts": tuple([_wider(o) for o in params["output_layouts"]]),
        }
        outs = bind(self, xs, {**params, **wider})
        return outs, [0] * len(outs)

    def _one_by_one(self, size, xs, mapped, params):
        fixed = [x for x, m in zip(xs, mapped) if not m]
        rows = [x for x, m in zip(xs, mapped) if m]

        def once(*given):
            kept, row = iter(given[: len(fixed)]), iter(given[len(fixed) :])
            return bind(self, [next(row) if m else next(kept) for m in mapped], params)

        row_avals = [mapped_aval(size, 0, x.aval) for x in rows]
        closed = stage_closed(once, [*[x.aval for x in fixed], *row_avals])
        unroll = size if params["vmap_method"] == "sequential_unrolled" else 1
        outs = bind_scan(closed, fixed, [], rows, size, False, unroll=max(1, unroll))
        return outs, [0] * len(outs)

    def divide(self, mesh, avals, outs, params):
        """The function gets whole arrays, and each device gets its results whole."""
        return [(None,) * a.ndim for a in outs]

    def lower(self, em, outs, *args, **params):
        version, config = params["custom_call_api_version"], params["legacy_backend_config"]
        taken, given = params["tokens"]
        operands, types = list(args), list(outs)
        operand_layouts = [tuple(reversed(o)) for o in params["input_layouts"]]
        result_layouts = [tuple(reversed(o)) for o in params["output_layouts"]]
        aliases = {_beside(o, given): _beside(i, taken) for i, o in params["input_output_aliases"]}
        for i in taken:
            operands.insert(i, em.ordering_token())
            operand_layouts.insert(i, ())
        for i in given:
            types.insert(i, abstract_token)
            result_layouts.insert(i, ())
        results = em.custom_call(
            params["target_name"],
            types,
            *operands,
            backend_config=_plain(params["attributes"]) if version >= 4 else config or "",
            api_version=version,
            operand_layouts=operand_layouts,
            result_layouts=result_layouts,
            aliases=aliases,
            has_side_effect=params["has_side_effect"] or bool(taken or given),
        )
        em.join_tokens([results[i] for i in given])
        return [r for i, r in enumerate(results) if i not in given]


def _beside(i: int, tokens: tuple) -> int:
    """The place of array number `i` among arrays and tokens, whose places are `tokens`."""
    for t in tokens:
        i += t <= i
    return i


def _plain(attributes: tuple) -> dict:
    """Nested sorted pairs as nested dictionaries."""
    return {
        k: _plain(v) if isinstance(v, tuple) else v.array if type(v) is ArrayAttribute else v for k, v in attributes
    }


def _wider(order: tuple) -> tuple:
    """A layout with a new first axis, which becomes the major one."""
    return (0, *[i + 1 for i in order])


ffi_call_p = ForeignCall("ffi_call")
