"""Mixed load with aborts for a long time: resident memory and open files stay flat, and all pages are
free after it.
"""

import asyncio
import random
import time

import harness


async def worker(server, deadline, seed, counts):
    random_ = random.Random(seed)
    shared = "You are a helpful assistant who knows the sea and its tides. " * 12
    while time.monotonic() < deadline:
        kind = random_.choice(["stream", "abort", "choices", "logprobs", "chat", "refused"])
        body = {"prompt": random_.choice([shared, ""]) + f"Question {random_.randrange(10**6)}:",
                "max_tokens": random_.randrange(1, 80), "stream": True, "seed": random_.randrange(1000)}
        path = "/v1/completions"
        if kind == "choices":
            body["n"] = random_.randrange(2, 5)
        elif kind == "logprobs":
            body["logprobs"] = 5
        elif kind == "chat":
            path = "/v1/chat/completions"
            body["messages"] = [{"role": "user", "content": body.pop("prompt")}]
        elif kind == "refused":
            body["temperature"] = -1
        async with harness.Stream(server.port, body, path) as stream:
            await stream.send()
            if stream.status == 200:
                num_events = 0
                async for _ in stream.events():
                    num_events += 1
                    if kind == "abort" and num_events > random_.randrange(1, 20):
                        break
            counts[kind] = counts.get(kind, 0) + 1
            assert (stream.status == 200) == (kind != "refused") or stream.status in (429, 503), stream.status


async def run(server, seconds):
    """(time, resident bytes, open files) all along, and how many requests of each kind there were."""
    samples, counts, start = [], {}, time.monotonic()
    tasks = [asyncio.create_task(worker(server, start + seconds, seed, counts)) for seed in range(12)]
    every = min(10.0, seconds / 20)
    while time.monotonic() < start + seconds:
        await asyncio.sleep(every)
        samples.append((time.monotonic() - start, server.resident_bytes(), server.num_open_files()))
        if len(samples) % 30 == 0:
            print(f"{samples[-1][0]:.0f} s: {samples[-1][1] >> 20} MiB, {samples[-1][2]} files", flush=True)
    await asyncio.gather(*tasks)
    return samples, counts


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--minutes", type=float, default=30)
    arguments.add_argument("--kv-memory", default="512MiB", help="must be full after a quarter of the time")
    flags = arguments.parse_args()
    seconds = 20 if flags.quick else 60 * flags.minutes
    checks = harness.Checks()
    with harness.QuireServer(flags.quire, "--served-model-name", "*", "--kv-memory", flags.kv_memory, "--log-level",
                             "error") as server:
        samples, counts = asyncio.run(run(server, seconds))
        print(f"requests: {counts}")
        # Warm-up: the first half, in which the cache fills.
        half, last = samples[len(samples) // 4:len(samples) // 2], samples[-len(samples) // 4:]
        before, after = (max(sample[1] for sample in part) for part in (half, last))
        if not flags.quick:  # a short run is all warm-up
            checks.check(after <= 1.01 * before + (4 << 20),
                         f"resident: {before >> 20} MiB after warm-up, {after >> 20} MiB at the end")
        files = max(sample[2] for sample in samples)
        checks.check(asyncio.run(harness.wait_idle(server)), "no request is left")
        checks.check(files <= 12 + 40, f"at most {files} open files with 12 clients")
        harness.check_nothing_is_held(checks, server)
    checks.exit()


if __name__ == "__main__":
    main()
