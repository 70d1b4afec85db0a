"""What HTTP costs at 64 streams: CPU of its threads beside the workers', and what it adds to the time to
the first token. Worth something on an idle machine only.
"""

import asyncio
import json
import time

import harness


async def stream(port, prompt, tokens):
    """(seconds to the first event, the engine's own by the last chunk's timings)"""
    body = {"prompt": prompt, "max_tokens": tokens, "stream": True, "ignore_eos": True,
            "stream_options": {"include_usage": True}}
    async with harness.Stream(port, body) as client:
        start = time.perf_counter()
        await client.send()
        first, last = None, {}
        async for data in client.events():
            first = first or time.perf_counter() - start
            if b'"timings"' in data:
                last = json.loads(data)
        return first, (last["quire"]["queue_ms"] + last["timings"]["prompt_ms"]) / 1e3


async def run(server, streams, tokens):
    prompts = [f"{i}: " + "the tide comes in and goes out again, " * 8 for i in range(streams)]
    await stream(server.port, "warm up", 4)
    before, start = server.cpu_seconds(), time.perf_counter()
    times = await asyncio.gather(*(stream(server.port, prompt, tokens) for prompt in prompts))
    seconds, after = time.perf_counter() - start, server.cpu_seconds()
    return times, {name: used - before.get(name, 0) for name, used in after.items()}, seconds


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--streams", type=int, default=64)
    arguments.add_argument("--tokens", type=int, default=256)
    flags = arguments.parse_args()
    if flags.quick:
        flags.streams, flags.tokens = 16, 32
    checks = harness.Checks()
    with harness.QuireServer(flags.quire, "--served-model-name", "*", "--kv-memory", "2GiB", "--max-seqs",
                             flags.streams, "--log-level", "error") as server:
        times, used, seconds = asyncio.run(run(server, flags.streams, flags.tokens))
    print(f"{flags.streams} streams of {flags.tokens} tokens in {seconds:.1f} s; CPU seconds by thread: " +
          ", ".join(f"{name} {value:.2f}" for name, value in sorted(used.items())))
    http = used.get("quire-http", 0) + used.get("quire-helper", 0)
    workers = sum(used.values()) - http
    checks.check("quire-http" in used, "the HTTP thread has its name")
    share = http / workers
    # Ticks are 10 ms: a short run can't show 3 %.
    checks.check(share <= (0.2 if flags.quick else 0.03), f"HTTP threads: {100 * share:.2f} % of the workers' CPU")
    client, own = (harness.median([each[i] for each in times]) for i in (0, 1))
    added = client - own
    print(f"time to the first token, p50: {1e3 * client:.1f} ms, the engine's own {1e3 * own:.1f} ms")
    if not flags.quick:
        checks.check(added <= max(0.03 * own, 0.002), f"HTTP adds {1e3 * added:.1f} ms")
    checks.exit()


if __name__ == "__main__":
    main()
