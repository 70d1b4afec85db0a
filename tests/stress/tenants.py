"""Two tenants with the same prompts: no shared token, no signal in the time to the first token; and one
that floods the cache leaves the other most of its hits.

Timing: AUC of "my time to the first token tells whether the other tenant has asked this prompt". The
same of one's own prompts is the control: it must be nearly 1, or the measurement sees nothing.
"""

import hashlib
import http.client
import json
import math
import os
import pathlib
import random
import tempfile
import time

import harness

KEYS = {"ann": "key-of-ann", "bob": "key-of-bob"}


class Client:
    """One tenant on one kept connection."""

    def __init__(self, server, name):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        self.headers = {"Authorization": f"Bearer {KEYS[name]}", "Content-Type": "application/json"}

    def ask(self, prompt):
        """(seconds, cached tokens) of a request for one token."""
        body = json.dumps({"model": "*", "prompt": prompt, "max_tokens": 1, "temperature": 0})
        start = time.perf_counter()
        self.connection.request("POST", "/v1/completions", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - start
        assert answer.status == 200, text
        return seconds, json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"]


def auc(lower, higher):
    """The chance that one of `lower` is below one of `higher`; ties count half."""
    merged = sorted([(value, 0) for value in lower] + [(value, 1) for value in higher])
    ranks, i = 0.0, 0
    while i < len(merged):
        j = i
        while j < len(merged) and merged[j][0] == merged[i][0]:
            j += 1
        ranks += sum(kind == 0 for _, kind in merged[i:j]) * (i + j + 1) / 2
        i = j
    n, m = len(lower), len(higher)
    return 1 - (ranks - n * (n + 1) / 2) / (n * m)


def check_timing(checks, server, pairs, prompt_len, seed):
    random_ = random.Random(seed)
    ann, bob = Client(server, "ann"), Client(server, "bob")

    def fresh():
        return [random_.randrange(100, 49000) for _ in range(prompt_len)]

    for _ in range(10):
        ann.ask(fresh()), bob.ask(fresh())
    times = {name: [] for name in ("other asked", "nobody asked", "own")}
    shared = 0
    for i in range(pairs):
        primed = fresh()
        ann.ask(primed)
        asks = [("other asked", primed), ("nobody asked", fresh())]
        random_.shuffle(asks)
        for name, prompt in asks:
            seconds, cached = bob.ask(prompt)
            times[name].append(seconds)
            shared += cached
        times["own"].append(ann.ask(primed)[0])
        if i % 500 == 499:
            print(f"{i + 1} of {pairs} pairs", flush=True)
    checks.check(shared == 0, f"tokens of the other tenant's cache: {shared}")
    # Four standard deviations of an AUC without any signal, where there are few pairs.
    noise = 4 * math.sqrt((2 * pairs + 1) / (12 * pairs * pairs))
    other = auc(times["other asked"], times["nobody asked"])
    own = auc(times["own"], times["nobody asked"])
    checks.check(abs(other - 0.5) <= max(0.02, noise), f"AUC of the other's prompts: {other:.4f}")
    checks.check(own >= 0.95, f"AUC of one's own prompts: {own:.4f}")
    return {name: harness.median(values) for name, values in times.items()}


def check_flood(checks, server, rounds, prompt_len, flood, seed):
    """Ann asks the same prompts in turn; then Bob asks `flood` new ones between each two of them."""
    random_ = random.Random(seed)
    ann, bob = Client(server, "ann"), Client(server, "bob")
    prompts = [[random_.randrange(100, 49000) for _ in range(prompt_len)] for _ in range(8)]

    def hits(num_flood):
        cached = 0
        for _ in range(rounds):
            for prompt in prompts:
                cached += ann.ask(prompt)[1]
                for _ in range(num_flood):
                    bob.ask([random_.randrange(100, 49000) for _ in range(prompt_len)])
        return cached

    hits(0)
    alone, flooded = hits(0), hits(flood)
    checks.check(alone > 0 and flooded >= 0.8 * alone,
                 f"cached tokens of a tenant: {alone} alone, {flooded} beside a flood")


def main():
    arguments = harness.parser(__doc__)
    arguments.add_argument("--pairs", type=int, default=10000)
    arguments.add_argument("--prompt-len", type=int, default=192)
    arguments.add_argument("--seed", type=int, default=1)
    flags = arguments.parse_args()
    pairs = 40 if flags.quick else flags.pairs
    checks = harness.Checks()
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys"
        keys.write_text("".join(f"{name} {name} user {hashlib.sha256(key.encode()).hexdigest()}\n"
                                for name, key in KEYS.items()))
        os.chmod(keys, 0o600)
        common = ("--served-model-name", "*", "--api-key-file", keys, "--log-level", "error")
        with harness.QuireServer(flags.quire, *common, "--kv-memory", "256MiB") as server:
            medians = check_timing(checks, server, pairs, flags.prompt_len, flags.seed)
            print("medians, ms: " + ", ".join(f"{name} {1e3 * value:.2f}" for name, value in medians.items()))
        # Room for twice Ann's prompts, at 22.5 KiB a token and f16.
        with harness.QuireServer(flags.quire, *common, "--kv-memory", "72MiB", "--max-model-len",
                                 1024) as server:
            check_flood(checks, server, 2 if flags.quick else 10, flags.prompt_len, 4, flags.seed)
    checks.exit()


if __name__ == "__main__":
    main()
