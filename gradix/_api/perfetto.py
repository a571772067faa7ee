"""Hands a file to ui.perfetto.dev, which fetches it from this machine when a link is opened."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

_SITE = "https://ui.perfetto.dev"
_PORT = 9001  # the one that the site may fetch from


class _Server(HTTPServer):
    """A server of one file, which counts how often it was fetched."""

    allow_reuse_address = True

    def __init__(self, file: Path):
        super().__init__(("127.0.0.1", _PORT), _Handler)
        self.file, self.fetched = file, 0


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send the file, or say that there is none of another name."""
        if self.path != f"/{self.server.file.name}":
            self.send_error(404)
            return
        content = self.server.file.read_bytes()
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", _SITE)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.server.fetched += 1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""


def offer(file: Path) -> None:
    """Print a link with which the site shows the file, and wait until it was fetched once.

    Raises:
        OSError: the port is taken.
    """
    with _Server(file) as server:
        address = f"http://127.0.0.1:{_PORT}/{file.name}"
        print(f"Open {_SITE}/#!/?url={address} in a browser on this machine.", flush=True)
        while not server.fetched:
            server.handle_request()
