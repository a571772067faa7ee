"""The reference: one page for each public name, made from its docstring, its signature and what it supports."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import docstrings
import public
import support
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

# The short names of modules, as the pages and docstrings write them.
SHORT = {
    "jnp": "gradix.numpy", "np": "gradix.numpy", "numpy": "gradix.numpy", "lax": "gradix.lax", "random": "gradix.random", "nn": "gradix.nn",
    "tree": "gradix.tree", "tree_util": "gradix.tree_util", "jsp": "gradix.scipy", "debug": "gradix.debug", "errors": "gradix.errors",
    "export": "gradix.export", "checkify": "gradix.experimental.checkify", "sparse": "gradix.experimental.sparse", "linalg": "gradix.numpy.linalg",
    "sharding": "gradix.sharding", "ffi": "gradix.ffi", "distributed": "gradix.distributed", "jax": "gradix",
}  # fmt: skip
_NAME = re.compile(r"^([\w.]+?)(?:\(.*\))?$", re.DOTALL)
MARKS = {"x": "yes", "·": "no", "0": "zero", "run": "yes", "jvp": "from jvp", "direct": "yes", "expand": "by others"}
TITLES = {
    "jit": "jit", "vmap": "vmap", "jvp": "forward derivatives (jvp)", "grad": "reverse derivatives (grad, vjp)",
}  # fmt: skip


def page_of(text: str, module: str = "") -> str | None:
    """The page of what a piece of code names, such as `jnp.where` or `lax.scan(f, init)`; None if it names nothing public."""
    match = _NAME.match(text.strip())
    if match is None:
        return None
    head, _, rest = match[1].partition(".")
    candidates = [match[1], f"{SHORT.get(head, '?')}.{rest}", f"gradix.{match[1]}"]
    if module:
        candidates.insert(0, f"{module}.{match[1]}")
    found = next((c for c in candidates if c in public.names()), None)
    if found is None:
        return next((f"reference/{c}" for c in candidates[:3] if "." in c and c in public.modules()), None)
    return f"reference/{found}"


def write_pages(folder: Path) -> None:
    """Write the page of each public module and name; what they say is made by the directives when Sphinx reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in public.modules():
        write(folder / f"{name}.rst", f"{_title(name)}\n\n.. public-module:: {name}\n")
    for path, name in public.names().items():
        title = path if name.module == "gradix" else f"{path.removeprefix('gradix.')}"
        write(folder / f"{path}.rst", f":orphan:\n\n{_title(title)}\n\n.. public-name:: {path}\n")


class PublicModule(SphinxDirective):
    """`.. public-module:: gradix.lax`: what the module says, and a table of its names."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        code = _linker(self.env.docname, module.__name__)
        made: list[nodes.Node] = []
        for title, text in docstrings.sections(inspect.getdoc(module) or ""):
            made += [docstrings.program(text)] if title == "Example" else docstrings.blocks(text, code)
        groups: dict[str, list[public.Name]] = {}
        for last in public.modules()[module.__name__]:
            name = public.names()[f"{module.__name__}.{last}"]
            groups.setdefault(name.kind, []).append(name)
        for kind, title in (
            ("function", "Functions"),
            ("class", "Classes"),
            ("exception", "Errors"),
            ("value", "Values"),
            ("primitive", "Primitives"),
        ):
            if kind in groups:
                made.append(nodes.rubric(title, title))
                made.append(
                    _table(
                        [[_link_to(self.env.docname, n.path, n.last)] for n in groups[kind]],
                        [docstrings.inline(public.summary_of(n), code) for n in groups[kind]],
                    )
                )
        return made


class PublicName(SphinxDirective):
    """`.. public-name:: gradix.lax.scan`: all that is known of the name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = public.names()[self.arguments[0]]
        self.code = _linker(self.env.docname, name.module)
        body = self._alias(name) if name.path != name.home else self._whole(name)
        described = self._described(name)
        content = next(n for node in described for n in node.findall(addnodes.desc_content))
        content += body
        return [self._place(name), *described]

    def _place(self, name: public.Name) -> nodes.Node:
        place = nodes.paragraph(classes=["place"])
        place += [nodes.Text("in "), _link_to(self.env.docname, name.module, name.module)]
        if found := public.source_of(name.value):
            file, line = found
            place += [
                nodes.Text(" · "),
                nodes.reference("", "source", refuri=f"../source/{file}.html#L-{line}", internal=True),
            ]
        return place

    def _alias(self, name: public.Name) -> list[nodes.Node]:
        line = nodes.paragraph("", "", *docstrings.inline(public.summary_of(name), self.code))
        same = nodes.paragraph(
            "",
            "",
            nodes.Text("It is the same object as "),
            _link_to(self.env.docname, name.home, name.home),
            nodes.Text("."),
        )
        return [line, same]

    def _whole(self, name: public.Name) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        types = _types(name.value)
        for title, text in docstrings.sections(public.docstring(name)):
            if title:
                made.append(nodes.rubric(title, title))
            if title == "Example":
                made.append(docstrings.program(text))
            elif title in ("Args", "Raises", "Attributes"):
                made.append(
                    docstrings.definitions(docstrings.entries(text), types if title == "Args" else {}, self.code)
                )
            elif title == "See also":
                made.append(nodes.paragraph("", "", *docstrings.inline(text, self.code)))
            else:
                made += docstrings.blocks(text, self.code)
        if name.kind == "value":
            made.append(nodes.paragraph("", "", *self._value(name.value)))
        if name.kind in ("class", "exception"):
            made += self._members(name)
        made += self._support(name)
        others = sorted(p for p, n in public.names().items() if n.home == name.path and p != name.path)
        if others:
            also = nodes.paragraph("", "Also as ")
            for i, path in enumerate(others):
                also += [nodes.Text(", " if i else ""), _link_to(self.env.docname, path, path)]
            also += nodes.Text(".")
            made.append(also)
        return made

    def _value(self, value: Any) -> list[nodes.Node]:
        shown = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
        shown = shown if len(shown) < 100 else type(value).__name__
        return [nodes.Text("Value: "), nodes.literal(shown, shown)]

    def _members(self, name: public.Name) -> list[nodes.Node]:
        """The methods and properties that the class itself, or a base of it that is not public, gives."""
        found: dict[str, Any] = {}
        for base in name.value.__mro__:
            if base.__module__.partition(".")[0] in ("gradix", "jaxlib") and base not in Exception.__mro__:
                for n, value in vars(base).items():
                    if not n.startswith("_") and (
                        callable(value) or isinstance(value, (property, classmethod, staticmethod))
                    ):
                        found.setdefault(n, value)
        rows = [
            (n, v, (inspect.getdoc(getattr(v, "__func__", v)) or "").split("\n\n")[0]) for n, v in sorted(found.items())
        ]
        if not rows:
            return []
        left = [[nodes.literal(n + _call(v), n + _call(v))] for n, v, _ in rows]
        right = [docstrings.inline(" ".join(text.split()), self.code) for _, _, text in rows]
        return [nodes.rubric("Members", "Members"), _table(left, right)]

    def _support(self, name: public.Name) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for primitive, row in support.rules_of(name):
            title = f"Rules of the primitive {primitive}"
            shown = {c: row[c] for c in ("jvp", "transpose", "linearize", "batch", "host", "lower")}
            made += [
                nodes.rubric(title, title),
                _table([[nodes.literal(c, c)] for c in shown], [[nodes.Text(MARKS.get(m, m))] for m in shown.values()]),
            ]
            if row["dtypes"]:
                made.append(nodes.paragraph("", f"Its operands are {row['dtypes']}."))
        if name.path != name.home or (found := support.support_of(name)) is None:
            return made
        made.append(nodes.rubric("Supports", "Supports"))
        # Every page has these words, so the search leaves them out.
        facts = nodes.container(classes=["no-search"])
        facts += _table(
            [[nodes.Text(TITLES[w])] for w in found.transformations],
            [
                [nodes.Text("yes" if ok else "no: it raises an error that says why")]
                for ok in found.transformations.values()
            ],
        )
        facts += _table(
            [[nodes.literal(d, d)] for d in support.DTYPES],
            [[nodes.Text(f"gives {found.dtypes[d]}" if d in found.dtypes else "not accepted")] for d in support.DTYPES],
            ("Operands of dtype", "With 64-bit types on"),
        )
        if found.primitives:
            line = nodes.paragraph("", "Made of the operations ")
            for i, primitive in enumerate(found.primitives):
                line += [nodes.Text(", " if i else ""), self.code_of_primitive(primitive)]
            line += nodes.Text(".")
            facts += line
        made.append(facts)
        return made

    def code_of_primitive(self, primitive: str) -> nodes.Node:
        page = f"gradix.lax.{primitive}_p"
        return (
            _link_to(self.env.docname, page, primitive)
            if page in public.names()
            else nodes.literal(primitive, primitive)
        )

    def _described(self, name: public.Name) -> list[nodes.Node]:
        """The signature, as Sphinx's domain of Python writes it and its search finds it."""
        what = {"class": "class", "exception": "exception", "function": "function"}.get(name.kind, "data")
        call = _call(name.value) if what in ("class", "function", "exception") else ""
        text = StringList([f".. py:{what}:: {name.path}{call}", ""], source=self.env.doc2path(self.env.docname))
        holder = nodes.Element()
        self.state.nested_parse(text, self.content_offset, holder)
        for wanted in list(holder.findall(addnodes.pending_xref)):
            page = _types_by_name().get(wanted["reftarget"].rpartition(".")[2])
            linked = (
                [_reference(self.env.docname, f"reference/{page}", n) for n in wanted.children]
                if page
                else wanted.children
            )
            wanted.replace_self(linked)
        return holder.children


@cache
def _types_by_name() -> dict[str, str]:
    """The page of each type that signatures name, by its name alone."""
    kinds = ("class", "exception", "value")
    found = sorted(public.names().items(), reverse=True)
    return {n.last: path for path, n in found if n.kind in kinds and path == n.home and not hasattr(builtins, n.last)}


def _call(value: Any) -> str:
    """The parameters with types and defaults, or nothing where there are none to be known."""
    if isinstance(value, property):
        return ""
    value = getattr(value, "__func__", value)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "()" if inspect.isroutine(value) else ""
    shown = [
        p.replace(default=_Shown(p.default)) if p.default is not p.empty else p
        for p in signature.parameters.values()
        if not p.name.startswith("_") and p.name != "self"
    ]
    shown = [p.replace(annotation=_annotation(p.annotation)) for p in shown]
    return str(signature.replace(parameters=shown, return_annotation=_annotation(signature.return_annotation)))


class _Shown:
    """A default as the page shows it: values that have no short text as three dots."""

    def __init__(self, value: Any):
        text = getattr(value, "__name__", None) if callable(value) else repr(value)
        self.text = text if text and len(text) < 60 and "<" not in text and "\n" not in text else "..."

    def __repr__(self) -> str:
        return self.text


# What the short names of `gradix._core.annotations` that have no page stand for.
IN_PLAIN_WORDS = {
    "Axes": "int | Sequence[int]",
    "KeyLike": "Array | ndarray",
    "Shape": "int | Sequence[int]",
    "Size": "int",
}
_OWN_WORD = re.compile(rf"\b(?:{'|'.join(IN_PLAIN_WORDS)})\b")


class _Annotation:
    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _annotation(value: Any) -> Any:
    """An annotation by its short names."""
    if value is inspect.Parameter.empty:
        return value
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)
    return _Annotation(_OWN_WORD.sub(lambda word: IN_PLAIN_WORDS[word[0]], text))


def _types(value: Any) -> dict[str, str]:
    """The types of the parameters that have an annotation."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: repr(_annotation(p.annotation)) for p in parameters if p.annotation is not p.empty}


def _linker(docname: str, module: str) -> docstrings.Code:
    """Makes pieces of code into links to the pages of what they name."""

    def code(text: str) -> nodes.Node:
        page = page_of(text, module)
        if page is None or page == docname:
            return nodes.literal(text, text)
        return _reference(docname, page, nodes.literal(text, text))

    return code


def _link_to(docname: str, path: str, shown: str) -> nodes.Node:
    return _reference(docname, f"reference/{path}", nodes.literal(shown, shown))


def _reference(docname: str, page: str, inner: nodes.Node) -> nodes.reference:
    up = "../" * docname.count("/")
    return nodes.reference("", "", inner, refuri=f"{up}{page}.html", internal=True)


def _table(
    left: list[list[nodes.Node]], right: list[list[nodes.Node]], heads: tuple[str, str] | None = None
) -> nodes.table:
    """A table of two columns."""
    group = nodes.tgroup("", nodes.colspec(colwidth=30), nodes.colspec(colwidth=70), cols=2)
    if heads:
        group += nodes.thead("", nodes.row("", *[nodes.entry("", nodes.paragraph("", h)) for h in heads]))
    rows = [
        nodes.row("", nodes.entry("", nodes.paragraph("", "", *a)), nodes.entry("", nodes.paragraph("", "", *b)))
        for a, b in zip(left, right)
    ]
    group += nodes.tbody("", *rows)
    return nodes.table("", group, classes=["names"])


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"


def write(path: Path, text: str) -> None:
    """Write a file, and the folders that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
