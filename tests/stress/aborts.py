"""Clients that go away in every phase of a request: afterwards no page is held and the server is whole."""

import asyncio
import json
import random

import harness

LONG = "All that is left of the old harbour is a wall of stones and a rusty crane. " * 40


async def abort_once(port, phase, random_):
    body = {"prompt": LONG[random_.randrange(200):] if phase.startswith("prefill") else "Once",
            "max_tokens": 400, "stream": phase != "whole", "n": random_.choice([1, 1, 3])}
    async with harness.Stream(port, body) as stream:
        sent = harness.head("/v1/completions", len(stream.body)) + stream.body
        if phase == "connected":
            return
        if phase == "head":
            sent = sent[:random_.randrange(1, 60)]
        elif phase == "body":
            sent = sent[:-random_.randrange(1, len(stream.body))]
        stream.writer.write(sent)
        await stream.writer.drain()
        if phase == "prefill":
            await asyncio.sleep(random_.random() * 0.1)
        elif phase == "whole":
            await asyncio.sleep(random_.random() * 0.3)
        elif phase == "half closed":
            stream.writer.write_eof()
            await asyncio.sleep(random_.random() * 0.2)
        elif phase == "decode":
            for _ in range(random_.randrange(3, 40)):
                await stream.reader.readline()
        elif phase == "reset":
            await stream.reader.readline()
            stream.writer.transport.abort()


PHASES = ("connected", "head", "body", "submitted", "prefill", "decode", "whole", "half closed", "reset")


async def run(server, count, seed):
    random_ = random.Random(seed)
    counts = dict.fromkeys(PHASES, 0)

    async def worker(numbers):
        for i in numbers:
            phase = PHASES[i % len(PHASES)]
            try:
                await asyncio.wait_for(abort_once(server.port, phase, random_), 60)
            except ConnectionError:
                pass  # the server was first
            counts[phase] += 1
            if i % 500 == 499:
                print(f"{sum(counts.values())} of {count}", flush=True)

    numbers = iter(range(count))
    await asyncio.gather(*(worker(numbers) for _ in range(24)))
    return counts, await harness.wait_idle(server)


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--count", type=int, default=10000)
    arguments.add_argument("--seed", type=int, default=1)
    flags = arguments.parse_args()
    count = 180 if flags.quick else flags.count
    checks = harness.Checks()
    ask = {"model": "*", "prompt": "The sea is", "max_tokens": 12, "temperature": 0}
    with harness.QuireServer(flags.quire, "--served-model-name", "*", "--kv-memory", "512MiB", "--log-level",
                             "error") as server:
        before = server.json("POST", "/v1/completions", ask)["choices"][0]["text"]
        files = server.num_open_files()
        counts, is_idle = asyncio.run(run(server, count, flags.seed))
        print(f"seed {flags.seed}: " + json.dumps(counts))
        checks.check(is_idle, "no request is left")
        harness.check_nothing_is_held(checks, server)
        checks.check(server.num_open_files() <= files + 4,
                     f"open files: {files} before, {server.num_open_files()} after")
        after = server.json("POST", "/v1/completions", ask)["choices"][0]["text"]
        checks.check(before == after, f"the same text as before: {after!r}")
    checks.exit()


if __name__ == "__main__":
    main()
