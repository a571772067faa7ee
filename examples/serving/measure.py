"""Measure how many images the server of digits reads in a second, and whether it keeps accepted jobs when killed.

python examples/serving/measure.py digits.gdx [--seconds 3]
"""

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent


class Server:
    """The server, in another process."""

    def __init__(self, model, journal, port, *options):
        command = [
            sys.executable,
            str(HERE / "server.py"),
            str(model),
            "--journal",
            str(journal),
            "--port",
            str(port),
            *options,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.told = self.process.stdout.readline().strip()
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for _ in range(200):
            try:
                self.connection.connect()
                return
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body))
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)


def throughput(server, images, seconds):
    """Print how many images are read in a second by the size of requests, over one connection."""
    for batch in (1, 4, 16, 64):
        body = {"images": images[:batch]}
        server.ask("POST", "/digits", body)
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            server.ask("POST", "/digits", body)
            count += 1
        print(f"batch {batch:3}: {count * batch / (time.perf_counter() - start):9.0f} images per second")


def kill_and_restart(model, journal, images, port, jobs=40):
    """Kill a server that has accepted jobs; return the answers that the next server gives to them."""
    server = Server(model, journal, port, "--hold")
    accepted = [server.ask("POST", "/jobs", {"images": [images[k]]})[1]["job"] for k in range(jobs)]
    answered = sum([server.ask("GET", f"/jobs/{job}")[0] == 200 for job in accepted])
    server.kill()
    server = Server(model, journal, port)
    deadline, found = time.monotonic() + 20, {}
    while len(found) < jobs and time.monotonic() < deadline:
        for job in accepted:
            status, answer = server.ask("GET", f"/jobs/{job}")
            if status == 200:
                found[job] = answer["digits"][0]
    server.stop()
    print(f"killed: {len(accepted)} jobs accepted, {answered} answered before, {len(found)} after the restart")
    return [found.get(job) for job in accepted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--port", type=int, default=8765)
    options = parser.parse_args()
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).tolist()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.model, Path(folder) / "jobs.sqlite", options.port)
        print(server.told)
        status, answer = server.ask("POST", "/digits", {"images": images[:200]})
        right = sum(d == want for d, want in zip(answer["digits"], labels[:200], strict=True))
        print(
            f"answers: {status}, {right} of 200 digits right; refused: "
            f"{server.ask('POST', '/digits', {'images': [[1]]})}"
        )
        throughput(server, images, options.seconds)
        server.stop()
        digits = kill_and_restart(options.model, Path(folder) / "killed.sqlite", images, options.port + 1)
        right = sum(d == want for d, want in zip(digits, labels, strict=False))
        print(f"of those {right} of {len(digits)} are right")


if __name__ == "__main__":
    main()
