"""Serve an exported reader of digits over HTTP, in a process without the model's source that traces nothing.

    POST /digits   {"images": [[64 numbers], ...]}  ->  200 {"digits": [...], "chances": [...]}
    POST /jobs     the same                         ->  202 {"job": 1}, once the request is on the disk
    GET  /jobs/1                                    ->  200 with the answer, 202 while there is none, 404

A job that was accepted is answered even if the process is killed: it stays in the journal, and the next process
computes its answer.

    python examples/serving/server.py digits.gdx --journal jobs.sqlite --port 8000
"""

import argparse
import asyncio
import contextlib
import json
import sqlite3
import time
from pathlib import Path

STARTED = time.perf_counter()
import numpy as np  # noqa: E402

LOADED_NUMPY = time.perf_counter()
from gradix import export, jit  # noqa: E402

LOADED = time.perf_counter()
# The most images that are read at once. A program is compiled for each power of two up to this.
LARGEST = 64


class Reader:
    """The program of a file, compiled for several numbers of images."""

    def __init__(self, path):
        self.call = jit(export.deserialize(Path(path).read_bytes()).call)
        self.sizes = [2**k for k in range(LARGEST.bit_length())]
        for n in self.sizes:
            self.read(np.zeros((n, 64), np.float32))

    def read(self, images):
        """The answer for images, in as few calls as their number takes."""
        digits, chances = [], []
        for part in np.split(images, range(LARGEST, len(images), LARGEST)):
            size = next(n for n in self.sizes if n >= len(part))
            out = self.call(np.concatenate([part, np.zeros((size - len(part), 64), np.float32)]))
            digits += np.asarray(out["digit"])[: len(part)].tolist()
            chances += np.asarray(out["chance"])[: len(part)].round(4).tolist()
        return {"digits": digits, "chances": chances}


class Journal:
    """Accepted jobs on the disk. A job for which `add` has returned survives the end of the process."""

    def __init__(self, path):
        self.base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.base.execute("pragma journal_mode = wal")
        self.base.execute("pragma synchronous = full")
        self.base.execute("create table if not exists jobs (id integer primary key, images blob not null, answer text)")

    def add(self, images):
        return self.base.execute("insert into jobs (images) values (?)", (images.tobytes(),)).lastrowid

    def waiting(self):
        return self.base.execute(
            "select id, images from jobs where answer is null order by id limit ?", (LARGEST,)
        ).fetchall()

    def answer(self, job, text):
        self.base.execute("update jobs set answer = ? where id = ?", (text, job))

    def find(self, job):
        """A tuple with the answer of a job, or with None while there is no answer; None for no such job."""
        return self.base.execute("select answer from jobs where id = ?", (job,)).fetchone()


class App:
    """The server's answers, as an ASGI application."""

    def __init__(self, reader, journal, hold=False):
        self.reader, self.journal, self.hold = reader, journal, hold
        self.wake = asyncio.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.live(receive, send)
        try:
            status, body = await self.route(scope["method"], scope["path"], receive)
        except ValueError as e:
            status, body = 400, {"error": str(e)}
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def route(self, method, path, receive):
        if (method, path) == ("POST", "/digits"):
            return 200, self.reader.read(images_of(await body_of(receive)))
        if (method, path) == ("POST", "/jobs"):
            job = self.journal.add(images_of(await body_of(receive)))
            self.wake.set()
            return 202, {"job": job}
        if method == "GET" and path.startswith("/jobs/") and path[6:].isdecimal():
            found = self.journal.find(int(path[6:]))
            return (
                (404, {"error": "there is no such job"})
                if found is None
                else (202, {})
                if found[0] is None
                else (200, found[0])
            )
        return 404, {"error": f"there is nothing at {method} {path}"}

    async def live(self, receive, send):
        """Compute the answers of jobs between the start and the end of the server."""
        await receive()
        worker = asyncio.create_task(self.work())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
        await send({"type": "lifespan.shutdown.complete"})

    async def work(self):
        while not self.hold:
            self.wake.clear()
            for job, images in self.journal.waiting():
                self.journal.answer(
                    job, json.dumps(self.reader.read(np.frombuffer(images, np.float32).reshape(-1, 64)))
                )
                await asyncio.sleep(0)  # lets requests be answered between jobs
            if not self.journal.waiting():
                await self.wake.wait()


async def body_of(receive):
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ValueError("the request ended before its body")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def images_of(body):
    """The images of a request.

    Raises:
        ValueError: the request does not have the form shown at the top of this file.
    """
    try:
        images = np.asarray(json.loads(body)["images"], np.float32)
    except (KeyError, TypeError, UnicodeDecodeError, ValueError):
        raise ValueError('send {"images": [[64 numbers], ...]}') from None
    if images.ndim != 2 or images.shape[1] != 64 or not len(images):
        raise ValueError(f"images have 64 numbers each, got an array of shape {images.shape}")
    return images


def main():
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise SystemExit("The server of this example is uvicorn: pip install uvicorn") from None
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--journal", default="jobs.sqlite")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--hold",
        action="store_true",
        help="only accept jobs; they are answered after the next start without this option",
    )
    options = parser.parse_args()
    start = time.perf_counter()
    app = App(Reader(options.model), Journal(options.journal), options.hold)
    print(
        f"NumPy loaded in {LOADED_NUMPY - STARTED:.2f} s, Gradix in {LOADED - LOADED_NUMPY:.2f} s, the model in "
        f"{time.perf_counter() - start:.2f} s",
        flush=True,
    )
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
