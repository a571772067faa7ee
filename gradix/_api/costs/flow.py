"""A compiled program as a graph of the data's flow, whose functions, lines, loops, calls and fusions fold."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable

from gradix._api.costs.lines import phase
from gradix._api.costs.runs import Counted
from gradix._runtime.hlo.module import Computation, Instruction, Module, Place

# Opcodes that are no work: their readers read what they are made of.
_PASSED_THROUGH = frozenset(
    "parameter constant tuple get-tuple-element bitcast optimization-barrier domain add-dependency "
    "async-start async-update async-done after-all".split()
)
_NESTED = frozenset(["while", "conditional", "call"])


class Node:
    """A box of the graph.

    Attributes:
        parent: the number of the box around it; -1 for none.
        kind: "function", "line", "loop", "branches", "call", "fusion" or "operation".
        name: the function's name, the line's source, or what the operation is called.
        origin: the instruction that tells its place, phase and scope.
        shape: the type of what it makes; empty for functions and lines.
        calls: how often it ran.
        seconds, flops, nbytes: what it cost, without the boxes in it.
        reads: the numbers of the program's parameters that it reads.
        left_out: how many operations are in it that have no box.
    """

    __slots__ = (
        "calls", "flops", "kind", "left_out", "name", "nbytes", "origin", "parent", "reads", "seconds", "shape",
    )  # fmt: skip

    def __init__(self, parent: int, kind: str, name: str, origin: Instruction | None, shape: str = ""):
        self.parent, self.kind, self.name, self.origin, self.shape = parent, kind, name, origin, shape
        self.calls, self.left_out = 0, 0
        self.seconds = self.flops = self.nbytes = 0.0
        self.reads: set[int] = set()


class Flow:
    """The graph of a compiled program.

    Args:
        module: the program.
        counted: what each of its instructions took, by name.
        most: how many boxes it has at most; of what is less costly, the parts are left out.

    Attributes:
        nodes: the boxes, each after the one around it.
        edges: the bytes that go from one innermost box to another, by their numbers.
    """

    def __init__(self, module: Module, counted: dict[str, Counted], most: int):
        self._module, self._counted = module, counted
        self.nodes: list[Node] = []
        self._node_of: dict[int, int] = {}  # of instructions that have a box, or are in one
        self._calls: dict[int, Instruction] = {}  # of single operations, which have no box
        self._left = most
        self._functions: dict[str, list[tuple[int, int, str]]] = {}
        self._sources: dict[tuple[int, tuple[int, ...]], frozenset[int]] = {}
        self._arguments = {p.id: p.parameter for p in module.entry.parameters}
        self._part(module.entry, -1)
        self._take_fusions_apart()
        self.edges = self._edges()

    # -- boxes ----------------------------------------------------------------------------------------

    def _part(self, part: Computation, parent: int) -> None:
        """The boxes of a part of the program: its functions, lines, and what runs in them."""
        functions: dict[tuple, dict[tuple, list[Instruction]]] = {}
        for i in self._shown(part):
            origin = self._module.origin(i)
            place, when = origin.place, phase(origin)
            name = _function_at(self._functions, place) if place is not None else ""
            file = place.file if place is not None else ""
            apart = i.id if place is None or i.opcode in _NESTED else 0
            functions.setdefault((name, file, when), {}).setdefault((place, apart), []).append(i)
        for (name, _, _), lines in functions.items():
            inside = parent
            if name and len(lines) > 1 and len(functions) > 1:
                inside = self._add(Node(parent, "function", name, self._origin(lines)))
            for held in lines.values():
                self._line(held, inside)

    def _shown(self, part: Computation) -> list[Instruction]:
        """The instructions that do something; in place of a call of a single one, that one."""
        found = []
        for i in part.instructions:
            if i.opcode == "call":
                inner = self._shown(self._module.computations[i.called[0]])
                found += inner if len(inner) < 2 else [i]
                if len(inner) == 1:
                    self._calls[inner[0].id] = i
            elif i.opcode not in _PASSED_THROUGH:
                found.append(i)
        return found

    def _origin(self, lines: dict[tuple, list[Instruction]]) -> Instruction:
        return self._module.origin(min([held[0] for held in lines.values()], key=_line_number))

    def _line(self, held: list[Instruction], parent: int) -> None:
        """The box of a line, or of the only operation of one."""
        inside, origin = parent, self._module.origin(held[0])
        is_told = origin.place is not None and len(held) > 1
        if is_told:
            text = linecache.getline(*origin.place).strip() if origin.place is not None else ""
            inside = self._add(Node(parent, "line", text or str(origin.place), origin))
        if is_told and self._left < len(held):  # what they cost is told of the line
            self.nodes[inside].left_out = len(held)
            for i in held:
                self._cost(inside, i)
                self._node_of[i.id] = inside
            return
        for i in held:
            self._operation(i, inside, is_whole_line=not is_told)

    def _operation(self, i: Instruction, parent: int, is_whole_line: bool) -> None:
        module = self._module
        kind = {"while": "loop", "conditional": "branches", "call": "call", "fusion": "fusion"}.get(
            i.opcode, "operation"
        )
        origin = module.origin(i)
        name = origin.scope.rpartition("/")[2] or i.opcode
        if is_whole_line and origin.place is not None:
            name = linecache.getline(*origin.place).strip() or name
        node = self._add(Node(parent, kind, name, origin, str(i.shape)))
        self._node_of[i.id] = node
        self._cost(node, i)
        if i.opcode in _NESTED:
            for number in i.called:
                part = module.computations[number]
                if i.opcode == "while" and not module.instructions[part.root].shape.parts:
                    for inner in module.running(part):  # the condition, which is no box of its own
                        self._cost(node, inner)
                else:
                    self._part(part, node)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        self._left -= 1
        return len(self.nodes) - 1

    def _cost(self, number: int, i: Instruction) -> None:
        known, node, module = self._counted.get(i.name), self.nodes[number], self._module
        if i.id in self._calls:
            self._cost(number, self._calls[i.id])
        if known is None:
            return
        node.calls = max(node.calls, known.calls)
        node.seconds += known.seconds
        node.nbytes += known.calls * module.bytes_moved(i)
        if i.opcode not in _NESTED:
            node.flops += known.calls * module.flops(i)

    def _take_fusions_apart(self) -> None:
        """Give boxes to what is fused, in the costliest fusions first."""
        numbers = {n: self._module.instructions[i] for i, n in self._node_of.items() if self.nodes[n].kind == "fusion"}
        for number in sorted(numbers, key=lambda n: -self.nodes[n].seconds):
            whole, node = numbers[number], self.nodes[number]
            inner = [x for n in whole.called for x in self._module.computations[n].instructions]
            inner = [x for x in inner if x.opcode not in _PASSED_THROUGH]
            if len(inner) < 2:
                node.kind = "operation"
            elif len(inner) > self._left:
                node.left_out = len(inner)
            else:
                self._take_apart(number, whole, inner)

    def _take_apart(self, number: int, whole: Instruction, inner: list[Instruction]) -> None:
        """Boxes for what is in a fusion; its cost is shared among them, as it is among lines."""
        node, module = self.nodes[number], self._module
        shares = {x.id: part for x, part in module.shares(whole)}
        told = sum([shares.get(x.id, 0.0) for x in inner])
        for x in inner:
            made = Node(number, "operation", x.opcode, module.origin(x if x.place is not None else whole), str(x.shape))
            part = shares.get(x.id, 0.0) / told if told else 0.0
            made.calls, made.seconds, made.nbytes = node.calls, part * node.seconds, part * node.nbytes
            made.flops = node.calls * module.flops(x)
            self._node_of[x.id] = self._add(made)
        if told:
            node.seconds = node.flops = node.nbytes = 0.0

    # -- the data's flow ------------------------------------------------------------------------------

    def _edges(self) -> dict[tuple[int, int], int]:
        """What goes from box to box; each value counts once, also where it is read twice."""
        inner = {n.parent for n in self.nodes}
        moved: dict[tuple[int, int], dict[int, int]] = {}
        for number, node in list(self._node_of.items()):
            if node in inner:
                continue
            for operand in self._module.instructions[number].operands:
                for source in self._made_by(operand, ()):
                    if source < 0:
                        self.nodes[node].reads.add(-1 - source)
                    elif (start := self._node_of[source]) != node:
                        shape = self._module.instructions[source].shape
                        moved.setdefault((start, node), {})[source] = shape.nbytes
        return {ends: sum(values.values()) for ends, values in moved.items()}

    def _made_by(self, number: int, index: tuple[int, ...]) -> frozenset[int]:
        """The numbers of the innermost instructions that make a value; -1 - k for the program's parameter k."""
        key = number, index
        found = self._sources.get(key)
        if found is None:
            self._sources[key] = frozenset()  # for a value that is made of itself
            found = self._sources[key] = frozenset(self._found(self._module.instructions[number], index))
        return found

    def _found(self, i: Instruction, index: tuple[int, ...]) -> list[int]:
        module = self._module
        if i.id in self._arguments:
            return [-1 - self._arguments[i.id]]
        if i.opcode == "parameter":
            caller = module.callers[module.part_of[i.id]]
            if caller.opcode == "conditional":
                given = caller.operands[1 + caller.called.index(module.part_of[i.id])]
            else:
                given = caller.operands[0 if caller.opcode == "while" else min(i.parameter, len(caller.operands) - 1)]
            return [*self._made_by(given, index)]
        if i.opcode == "get-tuple-element":
            return [*self._made_by(i.operands[0], (i.index, *index))]
        if i.opcode == "tuple" and index:
            return [*self._made_by(i.operands[index[0]], index[1:])]
        has_boxes = i.opcode in _NESTED or i.opcode == "fusion" and self._has_parts(i)
        if has_boxes and not self._is_left_out(i):
            roots = [module.instructions[module.computations[n].root] for n in i.called]
            if i.opcode == "while":
                roots = [root for root in roots if root.shape.parts]
            return [x for root in roots for x in self._made_by(root.id, index)]
        if i.id in self._node_of:
            return [i.id]
        return [x for n in i.operands for x in self._made_by(n, index if i.opcode != "tuple" else ())]

    def _has_parts(self, fusion: Instruction) -> bool:
        return any(x.id in self._node_of for n in fusion.called for x in self._module.computations[n].instructions)

    def _is_left_out(self, i: Instruction) -> bool:
        """Whether an instruction has its line's box, in place of boxes for what is in it."""
        return i.id in self._node_of and self.nodes[self._node_of[i.id]].kind == "line"

    # -- for a page -----------------------------------------------------------------------------------

    def told(self, text: Callable[[str], int], place: Callable[[Place | None], int], names: dict[int, str]) -> dict:
        """The graph as lists for JSON.

        Args:
            text, place: give the number of a text, and of a place, in lists that hold each of them once.
            names: those of the program's parameters, by number.
        """
        nodes = []
        for n in self.nodes:
            origin = n.origin
            told: list[float] = [
                n.parent,
                text(n.kind),
                text(n.name),
                place(origin.place if origin is not None else None),
            ]
            told += [
                text(origin.scope if origin is not None else ""),
                text(phase(origin) if origin is not None else ""),
            ]
            told += [text(n.shape[:80]), n.calls, round(1e6 * n.seconds, 2), round(n.flops), round(n.nbytes)]
            nodes.append([*told, n.left_out, [text(names.get(k) or f"argument {k}") for k in sorted(n.reads)[:8]]])
        return {"nodes": nodes, "edges": [[a, b, nbytes] for (a, b), nbytes in self.edges.items()]}


def _line_number(i: Instruction) -> int:
    return i.place.line if i.place is not None else 0


def _function_at(known: dict[str, list[tuple[int, int, str]]], place: Place) -> str:
    """The name of the innermost function around a line; empty where there is none."""
    spans = known.get(place.file)
    if spans is None:
        try:
            tree = ast.parse("".join(linecache.getlines(place.file)))
        except SyntaxError:  # a cell with commands of the notebook, for one
            tree = ast.Module([], [])
        spans = known[place.file] = [
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    around = [span for span in spans if span[0] <= place.line <= span[1]]
    return max(around)[2] if around else ""
