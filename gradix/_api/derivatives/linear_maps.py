"""The linear functions that `vjp` and `linearize` return; they are pytrees of their residuals."""

from __future__ import annotations

from functools import partial

from gradix._api.boundary import cotangents_above
from gradix._api.derivatives.cotangent_places import DidntWant, DontWant, GradRef, GradValue, NotNeeded
from gradix._base.tracebacks import filter_frames
from gradix._base.tree import broadcast_prefix, numbered, register_pytree_node, tree_flatten as flatten
from gradix._core import dtypes, seams
from gradix._core.array import as_array
from gradix._core.divisions import cotangent_aval
from gradix._core.primitive import Linear
from gradix._core.refs import Ref
from gradix._ops.basis import float0_zeros, instantiate, is_differentiable, tangent_aval, zeros
from gradix._ops.convert import convert_element_type
from gradix._transforms.linearize import LinearProgram
from gradix._transforms.staging import eval_jaxpr, stage

_FLOAT0 = dtypes.float0


def finished(ct, aval):
    """A cotangent as the user gets it: an array if zero, float0 without derivative."""
    if not is_differentiable(aval):
        return float0_zeros(aval.shape)
    if ct is not None:
        return ct
    want = cotangent_aval(aval)
    if want is aval:
        return zeros(aval)
    return seams.reshard(zeros(aval.plain), want.division)


def shown_tangent(t, aval):
    return instantiate(t, aval) if is_differentiable(aval) else float0_zeros(aval.shape)


def tangent_of(name, aval, t, index):
    """The user's tangent for a value of type `aval`; returns None for zeros of float0."""
    want = tangent_aval(aval)
    if want.dtype == _FLOAT0:
        if getattr(t, "dtype", None) == _FLOAT0:
            return None
        got = as_array(t).aval
        raise TypeError(
            f"primal and tangent arguments to {name} do not match; dtypes must be equal, or in case of "
            f"int/bool primal dtype the tangent dtype must be float0. Got primal dtype {aval.dtype} and "
            f"so expected tangent dtype float0, but got tangent dtype {got.dtype} instead (leaf {index}). "
            f"Pass np.zeros(shape, gradix.dtypes.float0)."
        )
    t = as_array(t)
    got = t.aval
    if got.dtype != want.dtype:
        raise TypeError(
            f"primal and tangent arguments to {name} do not match; dtypes must be equal, or in case of "
            f"int/bool primal dtype the tangent dtype must be float0. Got primal dtype {want.dtype} and "
            f"so expected tangent dtype {want.dtype}, but got tangent dtype {got.dtype} instead (leaf "
            f"{index})."
        )
    if got.shape != want.shape:
        raise ValueError(
            f"{name} called with different primal and tangent shapes; got primal shape {want.shape} and "
            f"tangent shape as {got.shape} (leaf {index})."
        )
    return t


def _cotangent(ct, aval, index, of):
    want = tangent_aval(aval)
    if want.dtype == _FLOAT0:
        return None
    ct = as_array(ct)
    if ct.aval.dtype != want.dtype or ct.aval.shape != want.shape:
        if ct.aval.shape == want.shape and ct.aval.weak_type and _becomes(ct.aval.dtype, want.dtype):
            return convert_element_type(ct, want.dtype)
        raise of.error(
            f"unexpected JAX type (e.g. shape/dtype) for argument to {of.shown}, as the cotangent type does not match: "
            f"got {ct.aval}, but expected {want} because the corresponding output of the function had type {aval} "
            f"(output {index}). Pass a cotangent for each element, as jnp.ones_like(y)."
        )
    return ct


def _becomes(dtype, wanted) -> bool:
    """Whether a Python number of a dtype may stand for one of another dtype."""
    try:
        return dtypes.promote_types(dtype, wanted) == wanted
    except dtypes.TypePromotionError:  # of strict promotion
        return False


def spread_inputs(program: LinearProgram, leaves):
    """The program on a list of all leaves; it takes the differentiable leaves only, in order."""
    return program if len(program.in_avals) == len(leaves) else Spread(program, leaves)


class Spread:
    """A linear program whose list of inputs has None at leaves that have no tangent."""

    __slots__ = ("program", "active", "outs")

    def __init__(self, program, leaves):
        self.program, self.active, self.outs = (program, [is_differentiable(x.aval) for x in leaves], program.outs)

    def restricted(self, wanted) -> Spread:
        """As `LinearProgram.restricted`, for a flag for each leaf."""
        out = object.__new__(Spread)
        out.active, out.outs = self.active, self.outs
        out.program = self.program.restricted([w for w, a in zip(wanted, self.active) if a])
        return out

    def transpose(self, cts):
        given = iter(self.program.transpose(cts))
        return [next(given) if a else None for a in self.active]

    def apply(self, tangents, known=None):
        return self.program.apply([t for t, a in zip(tangents, self.active) if a], known)


class Pullback:
    """The function that `vjp` returns: it maps cotangents of outputs to cotangents of inputs.

    The residuals can be inspected. Those that are arguments of the function can be replaced: set an
    entry of `args_res` to None to free an argument, and set it to the argument again before the
    next call.

    Example:
        >>> import gradix
        >>> _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> [float(x) for x in pull.args_res], pull.opaque_residuals
        ([2.0, 3.0], [])
        >>> pull.args_res[1] = 5.0
        >>> [float(ct) for ct in pull(1.0)]
        [5.0, 2.0]
    """

    __slots__ = ("program", "in_tree", "out_tree", "in_avals", "out_avals", "source", "args", "_args_res")
    shown, error = "vjp function", ValueError  # its name in errors, and the type of an error of structure

    def __init__(self, program, in_tree, out_tree, in_avals, out_avals, source=None, *, args=()):
        self.program, self.in_tree, self.out_tree = program, in_tree, out_tree
        self.in_avals, self.out_avals, self.source = in_avals, out_avals, source
        self.args, self._args_res = args, None

    def __call__(self, cts):
        return self.in_tree.unflatten(self._pulled(cts))

    def _pulled(self, cts, wanted: list[bool] | None = None) -> list:
        """The cotangents of the inputs; those that are not wanted are None, and not computed."""
        try:
            leaves, tree = flatten(cts)
            above = cotangents_above(cts, self.out_tree) if tree != self.out_tree else None
            if above is not None:
                leaves = [zeros(tangent_aval(a)) if c is None else c for c, a in zip(above, self.out_avals)]
            elif tree != self.out_tree:
                raise self.error(
                    f"unexpected tree structure of argument to {self.shown}: the cotangent tree does not match: got "
                    f"{tree}, but expected to match {self.out_tree}, the structure of the function's output."
                )
            cts = [_cotangent(c, a, i, self) for i, (c, a) in enumerate(zip(leaves, self.out_avals))]
            program = self.program if self._args_res is None else self._replaced()
            cts += [None] * (len(program.outs) - len(cts))
            if wanted is None:
                return [finished(c, a) for c, a in zip(program.transpose(cts), self.in_avals)]
            out = program.restricted(wanted).transpose(cts)
            return [finished(c, a) if w else None for c, a, w in zip(out, self.in_avals, wanted)]
        except Exception as error:
            filter_frames(error)
            raise

    @property
    def args_res(self) -> list:
        """For each input the array that was passed if it is a residual, else `NotNeeded()`."""
        if self._args_res is None:
            kept = {id(r) for r in base(self.program).residuals()}
            self._args_res = [x if id(x) in kept else NotNeeded() for x in self.args or [None] * len(self.in_avals)]
        return self._args_res

    @args_res.setter
    def args_res(self, values) -> None:
        own = self.args_res
        if len(values) == len(self.in_tree.children()) and len(values) != len(own):  # a tree for each argument
            places = numbered(self.in_tree)
            values = broadcast_prefix(tuple(values), places, lambda v: v is None)
        if len(values) != len(own):
            raise ValueError(
                f"args_res takes a value, or None, for each of the {len(own)} inputs of the vjp function, or a tree of "
                f"them for each of its {len(self.in_tree.children())} arguments; got {len(values)}."
            )
        own[:] = [old if isinstance(old, NotNeeded) else new for old, new in zip(own, values)]

    @property
    def opaque_residuals(self) -> list:
        """The residuals that are not arguments."""
        given = {id(x) for x in self.args}
        return [r for r in base(self.program).residuals() if id(r) not in given]

    @property
    def jaxpr(self):
        """The linear program from tangents to tangents; its constants are the residuals."""
        return self._staged()[0]

    def _staged(self) -> tuple:
        linear = base(self.program)
        return stage(
            lambda *ts: [instantiate(t, a) for t, a in zip(linear.apply(ts), linear.out_avals)], linear.in_avals
        )

    @property
    def fun(self):
        """The pullback as a function of lists of cotangents, in which None stands for zero."""
        return self.program.transpose

    def _replaced(self):
        """The program with the current `args_res` in place of the arguments."""
        new = {}
        for i, (old, now) in enumerate(zip(self.args, self.args_res)):
            if now is None:
                raise ValueError(
                    f"the vjp function needs its argument {i}, of type {old.aval}, which was taken away: "
                    f"set args_res[{i}] to it again before the call."
                )
            if now is not old and not isinstance(now, NotNeeded):
                new[id(old)] = as_array(now)
        if not new:
            return self.program
        program = base(self.program).with_residuals(new)
        return Spread(program, [Linear(a) for a in self.in_avals]) if isinstance(self.program, Spread) else program

    def with_refs(self, *places):
        """A pullback that adds cotangents to refs.

        Args:
            *places: for each argument, in its tree, a `Ref` to add the cotangent to,
                `gradix.ad.GradValue()` to return it, or `gradix.ad.DontWant()`, for which a bare
                `object()` stands too.

        Example:
            >>> import gradix
            >>> _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
            >>> total = gradix.new_ref(10.0)
            >>> pull.with_refs(total, gradix.ad.DontWant())(1.0)
            (GradRef(), DidntWant())
            >>> total
            Ref(13., dtype=float32)
        """
        leaves, tree = flatten(places, lambda x: x is None or isinstance(x, (Ref, GradValue, DontWant)))
        leaves = [DontWant() if type(x) is object else x for x in leaves]
        if tree != self.in_tree or not all(isinstance(x, (Ref, GradValue, DontWant)) for x in leaves):
            raise TypeError(
                "with_refs takes, per argument, a Ref, gradix.ad.GradValue() or gradix.ad.DontWant(), in "
                f"its tree {self.in_tree}; got {places!r}."
            )
        return partial(self._put, leaves)

    def _put(self, places, cts):
        out = []
        wanted = [not isinstance(place, DontWant) for place in places]
        for place, ct in zip(places, self._pulled(cts, wanted)):
            if isinstance(place, Ref):
                place.addupdate(ct)
                out.append(GradRef())
            else:
                out.append(DidntWant() if isinstance(place, DontWant) else ct)
        return self.in_tree.unflatten(out)

    def __repr__(self) -> str:
        return f"<vjp function of {len(self.in_avals)} inputs and {len(self.out_avals)} outputs>"


def base(program) -> LinearProgram:
    return program.program if isinstance(program, Spread) else program


class Transpose(Pullback):
    """The function that `linear_transpose` returns."""

    __slots__ = ()
    shown, error = "linear_transpose function", TypeError  # type: ignore[assignment]


class Pushforward(Pullback):
    """The function that `linearize` returns: it maps tangents of inputs to tangents of outputs."""

    __slots__ = ()

    def __call__(self, *tangents):
        ts, tree = flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(
                f"linearized function called with tangents of tree structure {tree}, but the primals had "
                f"{self.in_tree}."
            )
        try:
            ts = [tangent_of("the linearized function", a, t, i) for i, (a, t) in enumerate(zip(self.in_avals, ts))]
        except TypeError as e:
            raise ValueError(str(e)) from None
        outs = self.program.apply(ts)
        return self.out_tree.unflatten([shown_tangent(t, a) for t, a in zip(outs, self.out_avals)])

    @property
    def func(self) -> partial:
        """The function of tangents, with its program and the residuals as its first arguments, `func.args`."""
        return partial(eval_jaxpr, *self._staged())

    def __repr__(self) -> str:
        return f"<linearized function of {len(self.in_avals)} inputs and {len(self.out_avals)} outputs>"


# -- as pytrees ------------------------------------------------------------------------------------


class _Shape:
    """A pullback without its residuals; those of pullbacks of one program are equal."""

    __slots__ = ("pullback", "program", "residuals")

    def __init__(self, pullback: Pullback):
        self.pullback, self.program = pullback, base(pullback.program)
        self.residuals = self.program.residuals()

    def __eq__(self, other) -> bool:
        return type(other) is _Shape and self.program is other.program

    def __hash__(self) -> int:
        return id(self.program)

    def filled(self, values) -> Pullback:
        """The pullback with these values for its residuals."""
        program = self.program.with_residuals({id(r): v for r, v in zip(self.residuals, values)})
        old = self.pullback
        if isinstance(old.program, Spread):
            program = Spread(program, [Linear(a) for a in old.in_avals])
        return type(old)(program, old.in_tree, old.out_tree, old.in_avals, old.out_avals, (self, list(values)))


def _flatten(pullback: Pullback) -> tuple[list, _Shape]:
    if pullback.source is not None:  # made from parts: still of the same shape
        shape, values = pullback.source
        return values, shape
    shape = _Shape(pullback)
    return shape.residuals, shape


for _kind in (Pullback, Transpose, Pushforward):
    register_pytree_node(_kind, _flatten, lambda shape, values: shape.filled(values))
