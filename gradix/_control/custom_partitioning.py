"""What asks Python while a program is divided over devices: `custom_partitioning_p`, and `inspect_sharding_p`."""

from __future__ import annotations

from gradix._control.call import Call, jit_p
from gradix._core.effects import debug_effect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import to_axis
from gradix._transforms.batch import batch_jaxpr

# what XLA knows of such a call: `_runtime/xla_partitioning.py` answers its questions
TARGET = "gradix_custom_partitioning"


class CustomPartitioning(Call):
    """A call of `jaxpr`; on several devices each runs what `partitioner` gives for its part.

    A partitioner has `rule(mesh)`, the text of its sharding rule or "", and `batched(size, mapped,
    jaxpr)`, that of the operation under vmap. Derivatives are those of `jaxpr`, divided by the
    compiler.
    """

    def jvp(self, primals, tangents, *, jaxpr, name, **_):
        return jit_p.jvp(primals, tangents, jaxpr=jaxpr, name=name)

    def linearize(self, primals, tangents, *, jaxpr, name, **_):
        return jit_p.linearize(primals, tangents, jaxpr=jaxpr, name=name)

    def transpose(self, cts, *args, jaxpr, name, **_):
        return jit_p.transpose(cts, *args, jaxpr=jaxpr, name=name)

    def transpose_live(self, cts, lives, *args, jaxpr, name, **_):
        return jit_p.transpose_live(cts, lives, *args, jaxpr=jaxpr, name=name)

    def batch(self, axis, args, axes, *, jaxpr, name, partitioner):
        moved = [x if a is None else to_axis(axis.size, x, a, 0) for x, a in zip(args, axes)]
        fronts = tuple([None if a is None else 0 for a in axes])
        mapped, out_axes = batch_jaxpr(jaxpr, axis, fronts, (0,) * len(jaxpr.out_avals))
        more = partitioner.batched(axis.size, tuple([a is not None for a in axes]), mapped)
        params = {"jaxpr": mapped, "name": name, "partitioner": more}
        return bind(self, moved, params), list(out_axes)

    def dce(self, used, eqn):
        """Dropped as a whole or not at all: it is divided as a whole."""
        return eqn

    def lower(self, em, outs, *args, jaxpr, name, partitioner):
        devices = em.meshes.devices
        if devices is None or len(devices) == 1 or em.manual is not None:
            return em.call_jaxpr(name, jaxpr.jaxpr, jaxpr.consts, args)
        rule = partitioner.rule(em.meshes.mesh)
        return _asking(em, partitioner, outs, args, f"sdy.sharding_rule = {rule}" if rule else "")

    def show(self, params):
        return {k: params[k] for k in ("name", "partitioner", "jaxpr")}


class InspectSharding(Primitive):
    """Tells `inspector` how the compiler divides the operand; what it tells is `inspector(aval)`, a partitioner.

    Of programs for one device it is told while they are lowered.
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
            return []  # a part lies on its device
        if devices is None or len(devices) == 1:
            inspector.tell_whole(devices)
            return []
        _asking(em, inspector.of(x.aval), [x.aval], (x,), "", has_side_effect=True)
        return []


def _asking(em, partitioner, outs, args, attrs: str, **options):
    em.partitioners.append(partitioner)
    number = str(partitioner.number)
    return em.custom_call(
        TARGET, outs, *args, backend_config=number, api_version=2, attrs=attrs, **options
    )


custom_partitioning_p = CustomPartitioning("custom_partitioning")
inspect_sharding_p = InspectSharding("inspect_sharding")
