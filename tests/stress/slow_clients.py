"""Readers that stall and senders that dawdle do not slow a client that behaves.

The base is a run in which as many clients read the same streams as fast as they come: the engine's
work is the same, so what differs is what stalled clients cost.
"""

import asyncio
import json
import resource
import socket
import time

import harness


async def good_gaps(port, tokens):
    """Seconds between the events of one stream."""
    body = {"prompt": "Tell me of the sea.", "max_tokens": tokens, "stream": True, "ignore_eos": True}
    times = []
    async with harness.Stream(port, body) as stream:
        await stream.send()
        async for _ in stream.events():
            times.append(time.perf_counter())
    return [later - earlier for earlier, later in zip(times, times[1:])]


def neighbour_body(tokens):
    # With logprobs an event has 2 KB and more: a stalled stream soon fills the socket's buffers.
    return {"prompt": "Once", "max_tokens": tokens, "stream": True, "ignore_eos": True, "logprobs": 20}


async def read(port, tokens):
    async with harness.Stream(port, neighbour_body(tokens)) as stream:
        await stream.send()
        async for _ in stream.events():
            pass


def stalled_socket(port, tokens):
    body = json.dumps({"model": "*", **neighbour_body(tokens)}).encode()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(harness.head("/v1/completions", len(body)) + body)
    return connection


async def dawdle(port, stop):
    """Sends a head byte by byte, over and over, until the server cuts it or `stop`."""
    while not stop.is_set():
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for byte in harness.head("/v1/completions", 100):
                if stop.is_set() or writer.is_closing() or reader.at_eof():
                    break
                writer.write(bytes([byte]))
                await asyncio.sleep(0.5)
            writer.close()
        except ConnectionError:
            await asyncio.sleep(0.5)


async def with_readers(server, flags):
    tasks = [asyncio.create_task(read(server.port, flags.tokens)) for _ in range(flags.stalled)]
    await asyncio.sleep(flags.settle)
    gaps = await good_gaps(server.port, flags.good_tokens)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await harness.wait_idle(server, 120)
    return gaps


def bytes_beside_kv(server):
    """Resident memory but for the KV pages: they are what the sequences asked for."""
    metrics = server.metrics()
    committed = sum(value for name, value in metrics.items() if name.startswith("quire_kv_committed_bytes"))
    return server.resident_bytes() - int(committed)


async def with_stalled(server, flags):
    before = bytes_beside_kv(server)
    stop = asyncio.Event()
    senders = [asyncio.create_task(dawdle(server.port, stop)) for _ in range(flags.senders)]
    stalled = [stalled_socket(server.port, flags.tokens) for _ in range(flags.stalled)]
    await asyncio.sleep(flags.settle)
    gaps = await good_gaps(server.port, flags.good_tokens)
    grown = bytes_beside_kv(server) - before
    for connection in stalled:
        connection.close()
    stop.set()
    await asyncio.gather(*senders)
    await harness.wait_idle(server, 120)
    return gaps, grown


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--stalled", type=int, default=256)
    arguments.add_argument("--senders", type=int, default=1000)
    arguments.add_argument("--tokens", type=int, default=300, help="of a neighbour's answer")
    arguments.add_argument("--good-tokens", type=int, default=200)
    arguments.add_argument("--settle", type=float, default=20, help="seconds before the measurement")
    flags = arguments.parse_args()
    if flags.quick:
        flags.stalled, flags.senders, flags.tokens, flags.good_tokens, flags.settle = 16, 50, 100, 30, 3
    files = 4 * (flags.stalled + flags.senders) + 200
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))
    checks = harness.Checks()
    with harness.QuireServer(flags.quire, "--served-model-name", "*", "--kv-memory", "4GiB", "--max-seqs",
                             flags.stalled + 8, "--max-connections", 4096, "--max-connections-per-address",
                             4096, "--log-level", "error") as server:
        base = asyncio.run(with_readers(server, flags))
        gaps, grown = asyncio.run(with_stalled(server, flags))
        # A short run has no 99th percentile, and its machine is shared: its median shows a standstill.
        share, allowed = (0.5, 3) if flags.quick else (0.99, 1.1)
        before, beside = (1e3 * harness.percentile(each, share) for each in (base, gaps))
        checks.check(beside <= allowed * before,
                     f"p{100 * share:.0f} gap of a good client: {before:.1f} ms beside readers, {beside:.1f} "
                     f"beside {flags.stalled} stalled and {flags.senders} slow ({beside / before:.2f} times)")
        # 64 KiB each, and what the sequences' own state takes.
        limit = (flags.stalled + flags.senders) * (64 << 10) + (32 << 20)
        checks.check(grown <= limit, f"memory beside KV grown by {grown >> 10} KiB, allowed {limit >> 10}")
        harness.check_nothing_is_held(checks, server)
    checks.exit()


if __name__ == "__main__":
    main()
