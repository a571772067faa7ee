"""Pipelines inside of kernels: an inner grid, over blocks of references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix import lax
from gradix._api.arguments import name_of
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.tree import tree_leaves, tree_map, tree_structure
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import when
from gradix.experimental.pallas._races import touched
from gradix.experimental.pallas._specs import BlockSpec, no_block_spec


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """A function of references that runs `body` for each program of an inner grid, on blocks of them.

    Args:
        body: a kernel, of references to a block of each reference. `pl.program_id` gives it its
            place in the inner grid.
        grid, in_specs, out_specs: as for `pallas_call`.
        core_axis_name: the axis of cores of a mesh, or a tuple of axes, between which the programs
            are divided; here the first core runs all of them.
        tiling, core_axis, dimension_semantics, trace_scopes, no_pipelining: accepted; they have no
            effect here.

    Returns:
        A function of references or trees of them, those that are read and then those that are written.
        By the keyword `scratches` it takes further references, which it gives to `body` whole.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x, o):
        ...     def body(x_block, o_block):
        ...         o_block[...] = x_block[...] + 1
        ...     block = pl.BlockSpec((2,), lambda i: (i,))
        ...     pltpu.emit_pipeline(body, grid=(2,), in_specs=[block], out_specs=[block])(x, o)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((4,), "float32"))(jnp.arange(4.0))
        Array([1., 2., 3., 4.], dtype=float32)
    """
    ins, outs = _listed(in_specs), _listed(out_specs)

    def pipeline(*refs, scratches: Any = (), allocations: Any = None, **_):
        n, m = len(ins), len(outs)
        if len(refs) != n + m:
            raise ValueError(
                f"the pipeline of {name_of(body)} has {n} in_specs and {m} out_specs, but got {len(refs)} references."
            )
        if not m:
            raise NotImplementedError(
                f"the pipeline of {name_of(body)} has no out_specs. Write to references of the kernel through one."
            )

        written = tree_leaves(refs[n:])

        def kernel(*blocks):
            given = [*blocks[:n], *blocks[n + m :], *scratches]
            body(*given)

        call = pallas_call(
            kernel,
            tree_map(lambda r: ShapeDtypeStruct(r.shape, r.dtype), list(refs[n:])),
            grid=grid,
            in_specs=[*ins, *outs],
            out_specs=outs,
            input_output_aliases={tree_structure(refs[:n]).num_leaves + i: i for i in range(len(written))},
            name=name_of(body),
        )

        def run():
            for i, ref in enumerate(tree_leaves(refs)):
                touched(ref, ..., i >= tree_structure(refs[:n]).num_leaves)
            values = call(*tree_map(lambda r: r.read(), refs))
            for ref, value in zip(written, tree_leaves(values)):
                ref.write(value)

        when(core_axis_name is None or lax.axis_index(core_axis_name) == 0)(run)

    return pipeline


def _listed(specs) -> list:
    if isinstance(specs, BlockSpec):
        return [specs]
    return [] if specs is no_block_spec or specs is None else list(specs)


def emit_pipeline_with_allocations(
    body: Callable[..., None], *, grid: Any, in_specs: Any = (), out_specs: Any = ()
) -> tuple[Callable[..., None], Callable[..., Any]]:
    """`emit_pipeline`, and a function that makes buffers for it, which are not needed here.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def body(x, o):
        ...     o[...] = x[...] * 10
        >>> def kernel(x, o):
        ...     pairs = pl.BlockSpec((2,), lambda i: (i,))
        ...     pipeline, _ = pltpu.emit_pipeline_with_allocations(
        ...         body, grid=(2,), in_specs=[pairs], out_specs=[pairs]
        ...     )
        ...     pipeline(x, o)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((4,), "int32"))(jnp.arange(4))
        Array([ 0, 10, 20, 30], dtype=int32)
    """
    pipeline = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs)
    return pipeline, lambda *refs, **_: ()
