"""SIGTERM under load: streams end properly, within the drain time or cut with an error event."""

import asyncio
import json
import signal
import subprocess

import harness


async def read_all(port, tokens, begun):
    body = {"prompt": "Once", "max_tokens": tokens, "stream": True, "ignore_eos": True}
    async with harness.Stream(port, body) as stream:
        await stream.send()
        events = []
        async for data in stream.events():
            events.append(data)
            begun.set()
        return events


async def terminate(server, streams, tokens):
    """The streams' events, and the status of a request that came after the signal."""
    begun = [asyncio.Event() for _ in range(streams)]
    tasks = [asyncio.create_task(read_all(server.port, tokens, event)) for event in begun]
    for event in begun:
        await asyncio.wait_for(event.wait(), 120)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    status = server.request("POST", "/v1/completions", {"model": "*", "prompt": "a"})[0]
    return await asyncio.wait_for(asyncio.gather(*tasks), 300), status


def main():
    flags = harness.parser(__doc__).parse_args()
    streams = 8 if flags.quick else 32
    checks = harness.Checks()
    common = ("--served-model-name", "*", "--kv-memory", "512MiB", "--log-level", "error")

    server = harness.QuireServer(flags.quire, *common, "--drain", "300s").__enter__()
    answers, status = asyncio.run(terminate(server, streams, 60))
    checks.check(status in (0, 503), f"a new request is refused: {status}")
    for events in answers:
        last = [json.loads(event) for event in events[:-1] if b'"choices":[{' in event][-1]
        if events[-1] != b"[DONE]" or last["choices"][0]["finish_reason"] != "length":
            checks.check(False, f"a stream did not end by itself: {events[-2:]}")
    checks.check(len(answers) == streams, f"{streams} streams went on to their end")
    code = server.process.wait(timeout=60)
    checks.check(code == 0, f"exit code {code}")

    server = harness.QuireServer(flags.quire, *common, "--drain", "1s").__enter__()
    answers, _ = asyncio.run(terminate(server, streams, 4000))
    cut = sum(events[-1] == b"[DONE]" and b'"error"' in events[-2] for events in answers)
    checks.check(cut == streams, f"{cut} of {streams} were cut by an error event and [DONE]")
    try:
        code = server.process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        server.process.kill()
        code = None
    checks.check(code == 143, f"exit code {code}")
    checks.exit()


if __name__ == "__main__":
    main()
