"""A real `quire serve` for tests, and the plainest of clients for it."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]
STORIES = os.environ.get("QUIRE_TEST_TEXT_MODEL") or str(
    SOURCE_DIR / "../shared/data/models/stories260K/stories260K-f32.gguf")
SMOL = str(pathlib.Path.home() / ".cache/quire/models/SmolLM2-135M-Instruct.Q4_1.gguf")
ONCE = "Once upon a time"
# What stories260K says after ONCE, greedy.
STORY = ", there was a little girl named Lily. She loved to play outside in the park."


class Answer:
    """Status, fields and body of one HTTP answer."""

    def __init__(self, response):
        self.status = response.status
        self.fields = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode("utf-8")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.json["error"]


class Server:
    """One process of `quire serve`, up to its end. Use as a context."""

    def __init__(self, quire, model, *flags, env=None, wait=True, port=None):
        self.log = tempfile.TemporaryFile()
        self.port = port
        if port is None:
            # An address that is free now; a server that finds it taken says so and fails the test.
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [quire, "serve", model, "--port", str(self.port), *map(str, flags)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**os.environ, **(env or {})})
        if wait:
            self.wait_until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stderr(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def wait_until_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended:\n{self.stderr()}")
            try:
                if self.get("/health/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the server is not ready after {seconds} s:\n{self.stderr()}")

    def stop(self, signal_number=signal.SIGTERM, seconds=40):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        return self.process.returncode

    def close(self):
        self.stop()
        self.log.close()

    def connect(self, seconds=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def ask(self, method, path, body=None, fields=None, seconds=60):
        """`body`: an object, sent as JSON, or bytes as they are."""
        connection = self.connect(seconds)
        try:
            fields = dict(fields or {})
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            if body is not None:
                fields.setdefault("Content-Type", "application/json")
            connection.request(method, path, body=body, headers=fields)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, fields=None):
        return self.ask("GET", path, fields=fields)

    def post(self, path, body, fields=None, seconds=60):
        return self.ask("POST", path, body, fields, seconds)

    def complete(self, prompt=ONCE, fields=None, **values):
        """Greedy, unless told otherwise."""
        return self.post("/v1/completions", {"prompt": prompt, "temperature": 0, **values}, fields)

    def stream(self, path, body, fields=None):
        return Stream(self, path, body, fields)

    def raw(self, data, seconds=10, shuts=False):
        """Sends bytes and returns all that comes until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            if shuts:
                connection.shutdown(socket.SHUT_WR)
            pieces = []
            try:
                while piece := connection.recv(65536):
                    pieces.append(piece)
            except (TimeoutError, ConnectionResetError):
                pass
            return b"".join(pieces)

    def metric(self, name, **labels):
        """The sum of a metric's samples that have these labels."""
        total, found = 0.0, False
        for line in self.get("/metrics").text.splitlines():
            match = re.fullmatch(r"([A-Za-z_:0-9]+)(\{.*\})? (\S+)( \d+)?", line)
            if not match or match.group(1) != name:
                continue
            if all(f'{key}="{value}"' in (match.group(2) or "") for key, value in labels.items()):
                total, found = total + float(match.group(3)), True
        if not found:
            raise AssertionError(f"no metric {name} {labels}")
        return total

    def held_bytes(self):
        return self.metric("quire_kv_bytes", state="held")

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024


class Stream:
    """A server-sent stream, event by event."""

    def __init__(self, server, path, body, fields=None):
        self.connection = server.connect()
        self.connection.request("POST", path, body=json.dumps({**body, "stream": True}),
                                headers={"Content-Type": "application/json", **(fields or {})})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.fields = {name.lower(): value for name, value in self.response.getheaders()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.response.close()
        self.connection.close()

    def lines(self):
        """Each event's text, comments too, without the blank line after it."""
        while line := self.response.readline():
            line = line.decode("ascii").rstrip("\n")
            if line:
                yield line

    def events(self):
        """The data of each event; [DONE] as the text that it is."""
        for line in self.lines():
            if line.startswith("data: "):
                data = line[len("data: "):]
                yield data if data == "[DONE]" else json.loads(data)

    def text(self, index=0):
        """The joined text of a completions stream, which must end with [DONE]."""
        events = list(self.events())
        assert events[-1] == "[DONE]", events[-1:]
        return joined_text(events, index)


def joined_text(events, index=0):
    return "".join(choice["text"] for event in events if event != "[DONE]"
                   for choice in event["choices"] if choice["index"] == index)


def in_threads(count, work):
    """work(i) in `count` threads at once; their results in order."""
    results = [None] * count

    def run(i):
        try:
            results[i] = work(i)
        except Exception as error:  # pylint: disable=broad-except
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def until(check, seconds=10, pause=0.02):
    """Waits until check() is true; whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(pause)
    return bool(check())


def quire_from_arguments():
    """The program: the first argument, which unittest must not see."""
    return sys.argv.pop(1)
