"""A memory limit around the server and no --kv-memory: the budget comes from the limit, and no load gets
the server killed (PLN-07). Needs root on a machine where control groups may be made."""

import asyncio
import os
import pathlib
import sys

import harness

ROOT = pathlib.Path("/sys/fs/cgroup")


class MemoryGroup:
    """A control group with a memory limit, of version 1 or 2; inside it this program and its children."""

    def __init__(self, limit_bytes):
        self.is_old = (ROOT / "memory").is_dir()
        mount = ROOT / "memory" if self.is_old else ROOT
        lines = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
        name = "memory" if self.is_old else ""
        self.before = mount / next(path for _, kind, path in lines if kind == name).lstrip("/")
        if not self.before.is_dir():  # a path of the host, seen from inside a container
            self.before = mount
        self.path = mount / f"quire-container-test-{os.getpid()}"
        try:
            if not self.is_old:
                (ROOT / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
            limit = "memory.limit_in_bytes" if self.is_old else "memory.max"
            (self.path / limit).write_text(str(limit_bytes))
        except OSError as error:
            sys.exit(f"container: no control group can be made here: {error}")

    def __enter__(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_):
        (self.before / "cgroup.procs").write_text(str(os.getpid()))
        self.path.rmdir()

    def num_killed(self):
        text = (self.path / ("memory.oom_control" if self.is_old else "memory.events")).read_text()
        return int(dict(line.split() for line in text.splitlines())["oom_kill"])

    def peak_bytes(self):
        name = "memory.max_usage_in_bytes" if self.is_old else "memory.peak"
        return int((self.path / name).read_text())


async def ask(port, first):
    body = {"prompt": [first] * 600, "max_tokens": 16, "ignore_eos": True, "stream": True}
    async with harness.Stream(port, body) as stream:
        await stream.send()
        events = [event async for event in stream.events()]
        return events[-1:] == [b"[DONE]"] and not any(b'"error"' in event for event in events)


async def load(port, clients, rounds):
    """How many answers were whole."""
    whole = 0
    for turn in range(rounds):
        whole += sum(await asyncio.gather(
            *(ask(port, 100 + turn * clients + client) for client in range(clients))))
    return whole


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--mib", type=int, default=512, help="of the container")
    flags = arguments.parse_args()
    clients, rounds = (4, 2) if flags.quick else (32, 10)
    checks = harness.Checks()
    limit = flags.mib << 20
    with MemoryGroup(limit) as group:
        with harness.QuireServer(flags.quire, "--served-model-name", "*", "--log-level", "warning") as server:
            cache = server.json("GET", "/quire/v1/cache")
            checks.check("control group" in cache["budget_source"], f"budget: {cache['budget_source']}")
            checks.check(0 < cache["budget_bytes"] < limit, f"budget: {cache['budget_bytes']} of {limit} bytes")
            whole = asyncio.run(load(server.port, clients, rounds))
            checks.check(whole == clients * rounds, f"{whole} of {clients * rounds} answers are whole")
            harness.check_nothing_is_held(checks, server)
        # With the files' pages, which the system takes back when the limit is near.
        print(f"most memory taken: {group.peak_bytes()} of {limit} bytes")
        checks.check(group.num_killed() == 0, f"processes killed: {group.num_killed()}")
    checks.exit()


if __name__ == "__main__":
    main()
