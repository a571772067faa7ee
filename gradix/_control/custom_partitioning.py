"""`custom_partitioning_p` and `inspect_sharding_p`, for which the partitioner calls Python."""

from __future__ import annotations

from gradix._control.call import AnnotatedCall
from gradix._core.effects import debug_effect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import to_axis
from gradix._transforms.batch import batch_jaxpr

# the target of the custom call; `_runtime/xla_partitioning.py` answers XLA's questions about it
TARGET = "gradix_custom_partitioning"


class CustomPartitioning(AnnotatedCall):
    """A call of `jaxpr`; on several devices, each runs the program of `partitioner` on its part.

    A partitioner has the methods `rule(mesh)`, which returns the text of its sharding rule or "",
    and `batched(size, mapped, jaxpr)`, which returns the partitioner under vmap. Derivatives are
    those of `jaxpr`, and the compiler divides them.
    """

    def batch(self, axis, args, axes, *, jaxpr, name, partitioner):
        moved = [x if a is None else to_axis(axis.size, x, a, 0) for x, a in zip(args, axes)]
        fronts = tuple([None if a is None else 0 for a in axes])
        mapped, out_axes = batch_jaxpr(jaxpr, axis, fronts, (0,) * len(jaxpr.out_avals))
        more = partitioner.batched(axis.size, tuple([a is not None for a in axes]), mapped)
        params = {"jaxpr": mapped, "name": name, "partitioner": more}
        return bind(self, moved, params), list(out_axes)

    def dce(self, used, eqn):
        """Keep all results, because the call is partitioned as a whole."""
        return eqn

    def lower(self, em, outs, *args, jaxpr, name, partitioner):
        devices = em.meshes.devices
        if devices is None or len(devices) == 1 or em.manual is not None:
            return em.call_jaxpr(name, jaxpr.jaxpr, jaxpr.consts, args)
        rule = partitioner.rule(em.meshes.mesh)
        return ask(em, partitioner, outs, args, f"sdy.sharding_rule = {rule}" if rule else "")

    def show(self, params):
        return {k: params[k] for k in ("name", "partitioner", "jaxpr")}


class InspectSharding(Primitive):
    """Reports to `inspector(aval)`, a partitioner, how the compiler divides the operand.

    For a program on one device, this is reported while the program is lowered.
    """

    multiple_results = True
    effectful = True

    def abstract(self, x, **_):
        return []

    def effects(self, params):
        return frozenset([debug_effect])

    def run(self, args, params):
        params["inspector"].tell(args[0].sharding)
        return []

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), []

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), []

    def lower(self, em, outs, x, *, inspector):
        devices = em.meshes.devices
        if em.manual is not None:
            return []  # inside `shard_map`, each part is on one device
        if devices is None or len(devices) == 1:
            inspector.tell_whole(devices)
            return []
        ask(em, inspector.of(x.aval), [x.aval], (x,), "", has_side_effect=True)
        return []


def ask(em, partitioner, outs, args, attrs: str, **options):
    """An operation of which the compiler asks `partitioner` for the program of one device."""
    em.partitioners.append(partitioner)
    number = str(partitioner.number)
    return em.custom_call(TARGET, outs, *args, backend_config=number, api_version=2, attrs=attrs, **options)


custom_partitioning_p = CustomPartitioning("custom_partitioning")
inspect_sharding_p = InspectSharding("inspect_sharding")
