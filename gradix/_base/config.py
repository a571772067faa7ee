"""Configuration: process-wide options, thread-local overrides, and the context of a trace."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import errors, options
from .lazy import lazy_module

absl_flags = lazy_module("gradix._base.absl_flags")
_elsewhere = lazy_module("gradix._base.elsewhere")
html: Any = lazy_module("html")

__all__ = [
    "config", "define", "guards_transfers", "is_x64", "on_update", "state", "trace_context", "within",
    *options.CONTEXT_MANAGERS, "checking_leaks", "disable_jit", "transfer_guard",
]  # fmt: skip

_UNSET = type("Unset", (), {"__repr__": lambda self: "<unset>", "__slots__": ()})()
_TRUE, _FALSE = ("y", "yes", "t", "true", "on", "1"), ("n", "no", "f", "false", "off", "0", "")


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The context managers named in `options.CONTEXT_MANAGERS`, which are made at import."""


class TraceContext(tuple):
    """The values of the options a trace depends on; equal ones are one object."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


class _State(threading.local):
    """Holds options: the class has process-wide values, which a thread's own ones override."""

    context = TraceContext()

    def __reduce__(self):
        return "state"


state = _State()
_checks: dict[str, Callable[[Any], Any]] = {}
_hooks: dict[str, list[Callable[[Any], None]]] = {}
_entry_hooks: dict[str, list[Callable[[Any], None]]] = {}
_traced: list[str] = []
_contexts: dict[tuple, TraceContext] = {}
_overriding: dict[int, dict] = {}  # thread id -> the overrides of a thread that has some
_lock = threading.RLock()


def is_x64() -> bool:
    """Whether 64-bit types are enabled in this thread."""
    return state.jax_enable_x64


def trace_context() -> TraceContext:
    """The options that change a trace, which the keys of jit's caches must contain."""
    return state.context


def define(name: str, default: Any, values: Any = None, *, traced: bool = False) -> None:
    """Add an option.

    Args:
        name: the name, which starts with `gradix_`. The environment variable of that name in
            capitals gives the first value.
        default: the default value; its type is the type of the option. None is allowed if it is the
            default.
        values: a tuple of the allowed values, or a function that returns the checked value or
            raises.
        traced: whether traces depend on it.
    """
    check = _check_for(name, default, values)
    value = default
    for variable in _environment_names(name):
        if os.environ.get(variable):  # an empty variable counts as not set
            value = _from_environment(variable, os.environ[variable], default, check)
            break
    _checks[name] = check
    if traced:
        _traced.append(name)
    setattr(_State, name, value)
    _refresh_contexts()


def process_wide(name: str) -> Any:
    """The value of an option in threads that do not override it."""
    return getattr(_State, _known(name))


def on_update(name: str, hook: Callable[[Any], None]) -> None:
    """Call `hook(value)` before `config.update` sets an option; it may raise to refuse it."""
    _hooks.setdefault(_known(name), []).append(hook)


def on_entry(name: str, hook: Callable[[Any], None]) -> None:
    """Call `hook(value)` when an option changes in a thread, which `hook` runs in."""
    _entry_hooks.setdefault(_known(name), []).append(hook)


def _environment_names(name: str) -> tuple[str, str]:
    bare = name.removeprefix("jax_").removeprefix("gradix_")
    return f"GRADIX_{bare}".upper(), (name if not name.startswith("gradix_") else f"JAX_{bare}").upper()


def origin(name: str) -> str:
    """Where the first value of an option comes from: an environment variable, or the default."""
    for variable in _environment_names(_known(name)):
        if os.environ.get(variable):
            return f"environment variable {variable}"
    return "default"


def _from_environment(variable: str, text: str, default: Any, check: Callable) -> Any:
    try:
        if isinstance(default, (int, float)) and not isinstance(default, bool):
            return check(type(default)(text))
        return check(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"Environment variable {variable}={text!r}: {error}") from None


def _check_for(name: str, default: Any, values: Any) -> Callable[[Any], Any]:
    """A function that checks and normalises a new value of the option."""
    if callable(values):
        return functools.partial(values, name)
    if values is not None:
        return functools.partial(_check_choice, name, values, default is None)
    if isinstance(default, bool):
        return functools.partial(_check_boolean, name)
    return functools.partial(_check_type, name, (str,) if default is None else (type(default),))


def _check_boolean(name: str, value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
    elif isinstance(value, int) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ValueError(f"option {name} must be True or False; got {value!r} of type {type(value).__name__}.")


def _check_choice(name: str, values: tuple, none: bool, value: Any) -> Any:
    if isinstance(value, Hashable):
        spellings: Mapping[Any, Any] = options.VALUE_SPELLINGS.get(name, {})
        value = spellings.get(value, value)
        if value in values or (none and value is None):
            return value
    # A member of an enumeration, or its name in capitals, stands for the value of that name.
    text = getattr(value, "value", value)
    if isinstance(text, str) and text.lower() in values:
        return text.lower()
    allowed = ", ".join(map(repr, values)) + (" or None" if none else "")
    raise ValueError(f"option {name} must be one of {allowed}; got {value!r} of type {type(value).__name__}.")


def _check_type(name: str, types: tuple[type, ...], value: Any) -> Any:
    if value is None or isinstance(value, types):
        return value
    if float in types and isinstance(value, int):
        return float(value)
    raise ValueError(
        f"option {name} must be of type {types[0].__name__}; got {value!r} of type {type(value).__name__}."
    )


def _check_integer_or_none(name: str, value: Any) -> Any:
    return _check_type(name, (int,), int(value) if isinstance(value, str) else value)


def _check_device(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str) or hasattr(value, "platform"):
        return value or None
    raise ValueError(
        f"{name.removeprefix('jax_')} must be a Device, such as gradix.devices('cpu')[0], or the name of a platform, "
        f"such as 'cpu'; got {value!r} of type {type(value).__name__}."
    )


def _check_progress(name: str, value: Any) -> Any:
    if isinstance(value, bool) or callable(value):
        return value
    raise ValueError(f"option {name} is set by `with gradix.progress(...)`; got {value!r}.")


def _known(name: str) -> str:
    """The full name of an option, for any of its names."""
    if name in _checks:
        return name
    bare = name.removeprefix("gradix_")
    alias = options.SPELLINGS.get(bare, "jax_" + bare)
    if (name.startswith("gradix_") or bare in options.SPELLINGS) and alias in _checks:
        return alias
    near = _elsewhere.close_to(name, _checks)
    raise AttributeError(f"Unrecognized config option: {name}{near}")


def _context_of(overrides: dict) -> TraceContext:
    values = tuple([overrides[name] if name in overrides else getattr(_State, name) for name in _traced])
    return _contexts.setdefault(values, TraceContext(values))


def _refresh_contexts() -> None:
    """Bring the contexts of all threads up to date after a process-wide change."""
    with _lock:
        _State.context = _context_of({})
        for overrides in _overriding.values():
            overrides["context"] = _context_of(overrides)


def _set_local(name: str, value: Any) -> None:
    """Override an option in this thread, or end that with `_UNSET`."""
    overrides = state.__dict__
    overrides.pop(name, None)
    if value is not _UNSET:
        overrides[name] = value
    with _lock:
        if overrides.keys() - {"context"}:
            overrides["context"] = _context_of(overrides)
            _overriding[threading.get_ident()] = overrides
        else:
            overrides.pop("context", None)
            _overriding.pop(threading.get_ident(), None)
    for hook in _entry_hooks.get(name, ()):
        hook(getattr(state, name))


class _Entered(threading.local):
    """The overrides of this thread by option, in the order in which they were entered."""

    def __init__(self):
        self.by_name: dict[str, list[list]] = {}


_entered = _Entered()


def enter_local(name: str, value: Any) -> list:
    """Override an option in this thread until `leave_local` gets the result, from any task."""
    entry = [value]
    _entered.by_name.setdefault(name, []).append(entry)
    _set_local(name, value)
    return entry


def leave_local(name: str, entry: list) -> None:
    """End an override. Others of the same option may have begun later: the last one holds.

    Tasks of an event loop share their thread and end in any order; what one of them found when it
    began may be over by then.
    """
    entries = _entered.by_name.get(name, [])
    at = next((i for i, e in enumerate(entries) if e is entry), None)
    if at is None:  # it was entered in another thread
        return
    del entries[at]
    if at == len(entries):
        _set_local(name, entries[-1][0] if entries else _UNSET)


@contextlib.contextmanager
def within(context: TraceContext) -> Iterator[None]:
    """Context manager that gives this thread the options of `trace_context()` of another thread."""
    with contextlib.ExitStack() as stack:
        for name, value in zip(_traced, context):
            if getattr(state, name) is not value:
                stack.enter_context(_Override(name, value))
        yield


def apart(context: TraceContext, name: str) -> tuple[Any, tuple]:
    """The value of an option in a context, and those of the others."""
    i = _traced.index(_known(name))
    return context[i], (*context[:i], *context[i + 1 :])


def guards_transfers() -> bool:
    """Whether an option guards the transfer of arrays that operations are given."""
    return (
        state.jax_transfer_guard_host_to_device not in _SILENT
        or state.jax_transfer_guard_device_to_device not in _SILENT
    )


_SILENT = (None, "allow")


class Config:
    """The options of the process; `gradix.config`.

    Example:
        >>> config.update("jax_numpy_rank_promotion", "warn")
        >>> config.jax_numpy_rank_promotion
        'warn'
        >>> config.update("jax_numpy_rank_promotion", "allow")
    """

    __slots__ = ()

    def update(self, name: str, val: Any) -> None:
        """Set an option for the whole process; overrides by context managers take precedence.

        Args:
            name: the name of the option, with or without the prefix `gradix_`.
            val: its new value.

        Raises:
            AttributeError: there is no such option.
            ValueError: the option cannot have that value.
        """
        name = _known(name)
        value = _checks[name](val)
        for hook in _hooks.get(name, ()):
            hook(value)
        setattr(_State, name, value)
        for implied in options.IMPLIED.get(name, ()):
            setattr(_State, implied, value)
        _refresh_contexts()
        for hook in _entry_hooks.get(name, ()):
            hook(self.read(name))

    def preset(self, name: str, value: Any) -> None:
        """Set an option to a value of the library's own, which is valid and is not checked."""
        setattr(_State, _known(name), value)
        _refresh_contexts()

    def read(self, name: str) -> Any:
        """The value of an option in this thread."""
        return getattr(state, _known(name))

    _read = read  # the name by which libraries written for JAX ask

    @property
    def values(self) -> dict[str, Any]:
        """All options and their values in this thread."""
        return {name: getattr(state, name) for name in _checks}

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{name}</td><td>{html.escape(repr(value))}</td><td>{origin(name)}</td></tr>"
            for name, value in sorted(self.values.items())
        ]
        head = "<tr><th>option</th><th>value</th><th>first value from</th></tr>"
        return f"<table style='text-align:left'>{head}{''.join(rows)}</table>"

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are enabled in this thread."""
        return state.jax_enable_x64

    def config_with_absl(self) -> None:
        """Define a flag of absl for each option; `absl.app.run` sets those on the command line."""
        absl_flags.after_start(absl_flags.define(self._flags()), self.update)

    def parse_flags_with_absl(self) -> None:
        """Define a flag of absl for each option, and set those on the command line at once."""
        absl_flags.read_now(absl_flags.define(self._flags()), self.update)

    def _flags(self) -> dict[str, Any]:
        return {name: value for name, value in self.values.items() if name.startswith("jax_")}

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(state, _known(name))
        except AttributeError:
            near = _elsewhere.close_to(name, _checks)
            raise AttributeError(f"{name!r} is not a config option; config.values lists them{near or '.'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Options are set with config.update({_known(name)!r}, {value!r}).")

    def __dir__(self):
        return [*super().__dir__(), *_checks]


class _Override(contextlib.ContextDecorator):
    """Overrides an option in this thread, in a `with` block or a decorated function; reentrant."""

    __slots__ = ("name", "value", "entries")

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value
        self.entries: list[list] = []

    def __enter__(self):
        self.entries.append(enter_local(self.name, self.value))

    def __exit__(self, *exc):
        leave_local(self.name, self.entries.pop())
        if self.name == "jax_check_tracer_leaks" and self.value and exc[0] is None:
            errors.check_leaks()

    def _recreate_cm(self):
        return _Override(self.name, self.value)


def override(name: str, value: Any) -> _Override:
    """Context manager that sets an option in this thread."""
    return _Override(name, _checks[name](value))


class Setting:
    """An option that can be overridden: calling it gives a context manager or decorator."""

    def __init__(self, option: str, doc: str, name: str = "", shown: str | None = None):
        name = name or option.removeprefix("jax_")
        self.option = option
        self.name = self.__name__ = option.removeprefix("jax_")
        self.__doc__ = (
            f"Context manager: {doc}. Thread-local; `config.update({option!r}, value)` sets it everywhere.\n\n"
            f"Example:\n    >>> import gradix\n"
            f"    >>> with gradix.{name}({'' if shown is None else repr(shown)}):\n"
            f"    ...     gradix.config.{option}\n    {True if shown is None else shown!r}"
        )

    def __call__(self, new_val: Any = _UNSET) -> _Override:
        if new_val is _UNSET:
            if not isinstance(getattr(_State, self.option), bool):
                raise TypeError(f"{self.name}() needs an argument: the new value of the option {self.option}.")
            new_val = True
        return _Override(self.option, _checks[self.option](new_val))

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return getattr(state, self.option)

    def get_global(self) -> Any:
        """The value outside of context managers, as `config.update` set it."""
        return getattr(_State, self.option)

    def __bool__(self):
        raise TypeError(f"{self.name} is a context manager, not a value; its value is config.{self.option}.")

    def __repr__(self):
        return f"<context manager of the option {self.option} (now {self.value!r})>"


def checking_leaks() -> _Override:
    """Context manager: report traced arrays that outlive the function they were traced in.

    Example:
        >>> with checking_leaks():
        ...     config.jax_check_tracer_leaks
        True
    """
    return _Override("jax_check_tracer_leaks", True)


def disable_jit(disable: bool = True) -> _Override:
    """Context manager in which `jit` and control flow run Python, so that debuggers see values.

    Args:
        disable: False enables `jit` again inside of another such context.

    Example:
        >>> with disable_jit():
        ...     config.jax_disable_jit
        True
    """
    return _Override("jax_disable_jit", _checks["jax_disable_jit"](disable))


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Context manager: allow, log or disallow all transfers between host and devices.

    Args:
        new_val: "allow", "log", "disallow", "log_explicit" or "disallow_explicit".

    Raises:
        ValueError: `new_val` is another word.

    Example:
        >>> import gradix
        >>> with gradix.transfer_guard("allow"):
        ...     print(gradix.device_get(gradix.numpy.arange(3)))
        [0 1 2]
    """
    names = ("jax_transfer_guard", *options.IMPLIED["jax_transfer_guard"])
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(_Override(name, _checks[name](new_val)))
        yield


config = Config()

for _name, _default in {**options.BOOLEANS, **options.FLOATS}.items():
    define(_name, _default, traced=_name in options.TRACED)
for _name, _default in options.INTEGERS.items():
    define(_name, _default, _check_integer_or_none, traced=_name in options.TRACED)
for _name, _default in options.STRINGS.items():
    define(_name, _default, _check_device if _name == "jax_default_device" else None, traced=_name in options.TRACED)
for _name, (_default, _values) in options.CHOICES.items():
    define(_name, _default, _values, traced=_name in options.TRACED)
define("gradix_progress", False, _check_progress, traced=True)
for _name, (_option, _doc) in options.CONTEXT_MANAGERS.items():
    globals()[_name] = Setting(_option, _doc, _name, options.SHOWN.get(_name))
