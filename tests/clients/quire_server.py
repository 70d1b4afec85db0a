"""A real `quire serve` on a free loopback port, for the tests of clients and the stress commands."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

MODEL = pathlib.Path.home() / ".cache/quire/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class QuireServer:
    """Use as a context; leaving it sends SIGTERM and checks that the server drains and exits with 0."""

    def __init__(self, quire, *flags, env=None, model=MODEL, start_s=120):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.TemporaryFile("w+")
        self.start_s = start_s
        command = [str(quire), "serve", str(model), "--port", str(self.port), *map(str, flags)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **(env or {})})

    def __enter__(self):
        deadline = time.monotonic() + self.start_s
        while self.get("/health/ready")[0] != 200:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"the server did not become ready:\n{self.log_text()}")
            time.sleep(0.05)
        return self

    def __exit__(self, kind, *_):
        try:
            code = self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        if kind is None and code != 0:
            raise AssertionError(f"the server's exit code is {code}:\n{self.log_text()}")

    def stop(self, timeout_s=60):
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=timeout_s)

    def log_text(self):
        self.log.seek(0)
        return self.log.read()[-8000:]

    def request(self, method, path, body=None, headers=None, timeout_s=120):
        """(status, body as bytes); status 0 where nobody listens."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except (urllib.error.URLError, ConnectionError):
            return 0, b""

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def json(self, method, path, body=None, **kwargs):
        """The answer's JSON; raises unless it is a success."""
        status, text = self.request(method, path, body, **kwargs)
        if not 200 <= status < 300:
            raise AssertionError(f"{method} {path}: {status} {text[:500]!r}")
        return json.loads(text)

    def metrics(self):
        """Name with labels -> value."""
        values = {}
        for line in self.get("/metrics")[1].decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def resident_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def num_open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        """Thread name -> CPU seconds so far, those of one name added up."""
        ticks = os.sysconf("SC_CLK_TCK")
        seconds = {}
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            text = (task / "stat").read_text()
            name = text[text.index("(") + 1:text.rindex(")")]
            fields = text[text.rindex(")") + 2:].split()
            used = (int(fields[11]) + int(fields[12])) / ticks
            seconds[name] = seconds.get(name, 0) + used
        return seconds
