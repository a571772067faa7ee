"""Shows progress: by a bar of tqdm in terminals and notebooks, by lines of text elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time

from gradix._base.lazy import lazy_module

_tqdm = lazy_module("tqdm")
_notebook = lazy_module("tqdm.notebook")
LINE_EVERY = 5.0  # seconds between lines of a log
BAR_EVERY = 0.1  # seconds between two drawings of a bar


class Lines:
    """Writes a line of text every few seconds, and one at the end."""

    every = LINE_EVERY

    def __init__(self, name: str, total: int | None, file):
        self.name, self.total, self.file = name, total, file
        self.began = time.perf_counter()

    def show(self, steps: int, value: str) -> None:
        self.file.write(self._text(steps, value, False) + "\n")
        self._flush()

    def close(self, steps: int, value: str) -> None:
        self.file.write(self._text(steps, value, True) + "\n")
        self._flush()

    def _flush(self) -> None:
        flush = getattr(self.file, "flush", None)
        if flush is not None:
            flush()

    def _text(self, steps: int, value: str, is_last: bool) -> str:
        seconds = time.perf_counter() - self.began
        rate = steps / seconds if seconds > 0 else 0.0
        parts = [f"{steps}/{self.total} steps" if self.total is not None else f"{steps} steps", f"{rate:.3g} steps/s"]
        if is_last:
            parts.append(f"done in {_duration(seconds)}")
        elif self.total is not None and rate:
            parts.append(f"{_duration((self.total - steps) / rate)} left")
        return f"{self.name}: " + ", ".join([*parts, *([value] if value else [])])


class Bar:
    """A bar that tqdm draws."""

    every = BAR_EVERY

    def __init__(self, name: str, total: int | None, file, in_notebook: bool):
        made = _notebook.tqdm if in_notebook else _tqdm.tqdm
        self.bar = made(desc=name, total=total, file=file, mininterval=0, miniters=1)

    def show(self, steps: int, value: str) -> None:
        if value:
            self.bar.set_postfix_str(value, refresh=False)
        self.bar.update(steps - self.bar.n)

    def close(self, steps: int, value: str) -> None:
        self.show(steps, value)
        self.bar.close()


def display(name: str, total: int | None, file) -> Lines | Bar:
    """A bar in terminals and notebooks if tqdm is installed; lines elsewhere."""
    stream = sys.stderr if file is None else file
    in_notebook = file is None and "ipykernel" in sys.modules
    is_terminal = bool(getattr(stream, "isatty", lambda: False)())
    if (is_terminal or (in_notebook and _is_installed("ipywidgets"))) and _is_installed("tqdm"):
        return Bar(name, total, stream, in_notebook)
    return Lines(name, total, stream)


def _is_installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
