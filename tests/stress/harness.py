"""What the stress commands share: arguments, and a bare client that may misbehave.

Each command starts a server of its own on a free loopback port, prints what it found and exits with
0 if it is as it should be, else 1. --quick is the short form that ctest runs. Only the standard library.
"""

import argparse
import asyncio
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from quire_server import QuireServer  # noqa: E402, F401: the commands take it from here


def parser(text):
    arguments = argparse.ArgumentParser(description=text)
    arguments.add_argument("quire", help="the program")
    arguments.add_argument("--quick", action="store_true", help="the short form")
    return arguments


class Checks:
    """Prints each finding; what failed decides the exit code."""

    def __init__(self):
        self.failed = 0

    def check(self, holds, text):
        self.failed += not holds
        print(("ok      " if holds else "FAILED  ") + text, flush=True)

    def exit(self):
        sys.exit(1 if self.failed else 0)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def median(values):
    return percentile(values, 0.5)


def head(path, length, key=None):
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"{authorization}Content-Length: {length}\r\n\r\n").encode()


class Stream:
    """A request on a connection of its own, read event by event."""

    def __init__(self, port, body, path="/v1/completions", key=None):
        self.port, self.path, self.key = port, path, key
        self.body = json.dumps({"model": "*", **body}).encode()
        self.status = 0

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def send(self):
        self.writer.write(head(self.path, len(self.body), self.key) + self.body)
        await self.writer.drain()
        self.status = int((await self.reader.readline()).split()[1])
        while (await self.reader.readline()).strip():
            pass

    async def events(self):
        """The data of each event; nothing more after [DONE]."""
        while line := await self.reader.readline():
            if line.startswith(b"data: "):
                yield line[6:].strip()
                if line.startswith(b"data: [DONE]"):
                    return


async def wait_idle(server, timeout_s=60):
    """Until no request is left; whether that came in time."""
    for _ in range(int(timeout_s * 20)):
        if not server.json("GET", "/quire/v1/requests")["requests"]:
            return True
        await asyncio.sleep(0.05)
    return False


def check_nothing_is_held(checks, server):
    cache = server.json("GET", "/quire/v1/cache")
    checks.check(cache["held_bytes"] == 0 and cache["held_slots"] == 0,
                 f"pages held: {cache['held_bytes']} bytes, {cache['held_slots']} slots")
    failures = server.metrics().get("quire_invariant_failures_total", 0)
    checks.check(failures == 0, f"invariant failures: {failures:.0f}")
