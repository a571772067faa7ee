"""Primitives that call Python functions on the host: pure_callback, io_callback, debug_callback."""

from __future__ import annotations

import numpy as np

from gradix._base.errors import CallbackResultError
from gradix._control.custom_partitioning import ask
from gradix._core import seams
from gradix._core.array import as_numpy, wrap_host
from gradix._core.dtypes import canonicalize_dtype
from gradix._core.effects import debug_effect, io_effect, no_effects, ordered_debug_effect, ordered_io_effect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import expand_axis, to_front
from gradix._transforms.batch import insert_axis


class Callback(Primitive):
    """Calls `callback` on NumPy arrays; it returns a list of arrays of types `result_avals`."""

    multiple_results = True
    effectful = True

    def __init__(self, name: str, effect=None, ordered_effect=None):
        super().__init__(name)
        self.effect, self.ordered_effect = effect, ordered_effect

    def abstract(self, *avals, result_avals, **_):
        return list(result_avals)

    def effects(self, params):
        if self.effect is None:
            return no_effects
        return frozenset([self.ordered_effect if params.get("ordered") else self.effect])

    def run(self, args, params):
        outs = params["callback"](*[a.host for a in args])
        # the results are copied, because the callback may keep its arrays and change them
        return [wrap_host(_checked(np.array(as_numpy(o)), a)) for o, a in zip(outs, params["result_avals"])]

    def jvp(self, primals, tangents, **params):
        if self.effect is not None and not params["result_avals"]:
            return bind(self, primals, params), []
        if not any(t is not None for t in tangents):
            outs = bind(self, primals, params)
            return outs, [None] * len(outs)
        what = "Pure" if self.effect is None else "IO"
        raise ValueError(
            f"{what} callbacks do not support JVP: the derivative of a Python function is not known. "
            "Wrap the call in custom_jvp or custom_vjp, or stop the gradient with lax.stop_gradient."
        )

    def transpose(self, ct, *args, **params):
        raise ValueError(
            f"A {self.name} cannot be transposed: the transpose of a Python function is not known. Wrap "
            "the call in custom_vjp, or give a transpose with custom_derivatives.linear_call."
        )

    def batch(self, size, args, axes, *, callback, result_avals, vmap_method=None, **params):
        if self.effect is not None:
            vmap_method = "sequential"
            if params.get("ordered") and self is io_callback_p:
                raise ValueError(
                    "Cannot vmap an ordered io_callback: the examples have no order. Use ordered=False, "
                    "or lax.map over the examples."
                )
        if vmap_method is None:
            raise NotImplementedError(
                "vmap of a pure_callback needs to know how the callback handles many examples. Pass vmap_method: "
                '"sequential" calls it once per example, "expand_dims" or "broadcast_all" once with a leading axis.'
            )
        if vmap_method == "sequential":
            xs = [to_front(size, x, a) if a is not None else x for x, a in zip(args, axes)]
            mapped = _one_by_one(callback, size, [a is not None for a in axes], result_avals)
        else:
            wide = vmap_method == "broadcast_all"
            xs = [
                to_front(size, x, a)
                if wide or a is not None
                else expand_axis(x, 0)
                if vmap_method == "expand_dims"
                else x
                for x, a in zip(args, axes)
            ]
            mapped = callback
        avals = tuple([insert_axis(a, size, 0) for a in result_avals])
        if "whole" in params:
            params["whole"] = tuple([n + (a is not None) for n, a in zip(params["whole"], axes)])
        outs = bind(self, xs, {"callback": mapped, "result_avals": avals, "vmap_method": vmap_method, **params})
        return outs, [0] * len(outs)

    def divide(self, mesh, avals, outs, params):
        """The function gets whole arrays, and each device gets its results whole."""
        return [(None,) * a.ndim for a in outs]

    def lower(self, em, outs, *args, callback, result_avals, whole=None, **params):
        def call(*arrays):
            return [_checked(as_numpy(o), a) for o, a in zip(callback(*arrays), result_avals)]

        kept = self.effect is not None
        if em.is_divided and (whole is not None or em.manual is not None and kept):
            if outs:
                raise NotImplementedError(
                    f"{self.name} in shard_map over some axes of a mesh, {sorted(map(str, em.manual.axes))}, is not "
                    "possible: the compiler divides along the others, where it would be called by several devices. "
                    "Leave out axis_names, so that all axes of the mesh are manual."
                )
            return self._by_part(em, whole, args, {"callback": call, "result_avals": (), "ordered": False})
        return em.callback(call, outs, *args, has_side_effect=kept, ordered=bool(params.get("ordered")) and kept)

    def _by_part(self, em, whole, args, params):
        """The call as one that each device makes with its parts of the operands.

        For each operand, `whole` is the number of leading axes along which parts are whole. If it is None, the
        first device along mesh axes that are not manual makes the call, with all that these divide.
        """
        avals, axes = tuple([v.aval for v in args]), ()
        if whole is None:
            whole = tuple([a.ndim for a in avals])
            axes = tuple([n for n in em.manual.mesh.axis_names if n not in em.manual.axes])
        asked = seams.call_by_part(whole, axes, lambda *xs: bind(self, xs, params), avals, em.host_callbacks)
        em.register_callback(params["callback"], avals)
        ask(em, asked, list(asked.out_avals), args, "", has_side_effect=True)
        return []

    def show(self, params):
        hidden = {"ordered"} if self.effect is None else set()
        return {k: v for k, v in params.items() if k not in hidden}


def _one_by_one(callback, size, mapped, avals):
    def call(*arrays):
        outs = [np.empty((size, *a.shape), a.dtype) for a in avals]
        for i in range(size):
            row = callback(*[x[i] if m else x for x, m in zip(arrays, mapped)])
            for out, value, aval in zip(outs, row, avals):
                out[i] = _checked(as_numpy(value), aval)
        return outs

    return call


def _checked(array, aval):
    if array.shape != aval.shape:
        raise CallbackResultError(
            f"The callback returned an array of shape {array.shape} where its result_shape_dtypes say "
            f"{aval.shape}. Return that shape, or declare the one returned."
        )
    if array.dtype == aval.dtype:
        return array
    if array.dtype.kind not in "OSU" and canonicalize_dtype(array.dtype) != aval.dtype:
        raise CallbackResultError(
            f"The callback returned an array of dtype {array.dtype} where its result_shape_dtypes say "
            f"{aval.dtype}. Return that dtype, for example with .astype, or declare the one returned."
        )
    return array.astype(aval.dtype)


pure_callback_p = Callback("pure_callback")
io_callback_p = Callback("io_callback", io_effect, ordered_io_effect)
debug_callback_p = Callback("debug_callback", debug_effect, ordered_debug_effect)
