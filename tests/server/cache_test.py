"""The cache's own routes and `quire cache`, against a real server.

Usage: cache_test.py QUIRE [unittest arguments]
"""

import json
import os
import re
import subprocess
import threading
import time
import unittest

import harness
from harness import ONCE, SMOL, STORIES, Server

QUIRE = harness.quire_from_arguments()
SYSTEM = "Lily and Tom went to the park to play with a big red ball. " * 6


def number_after(text, before):
    found = re.search(re.escape(before) + r"([\d,]+)", text)
    return int(found.group(1).replace(",", ""))


class Cache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--threads", 1)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, f"exit code {code}:\n{cls.server.stderr()}"

    def setUp(self):
        self.server.post("/reset_prefix_cache", b"")

    def command(self, *arguments, code=0, env=None):
        address = f"http://127.0.0.1:{self.server.port}"
        done = subprocess.run([QUIRE, "cache", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "QUIRE_URL": address, **(env or {})})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_banner_metrics_and_cache_tell_the_same_bytes(self):
        banner = self.server.stderr()
        self.server.complete(max_tokens=40)
        cache = self.server.get("/quire/v1/cache").json
        self.assertEqual(number_after(banner, "pool     "), cache["budget_bytes"])
        self.assertEqual(number_after(banner, "CPU KV cache size: "), cache["pool_tokens"])
        self.assertEqual(self.server.metric("quire_kv_budget_bytes"), cache["budget_bytes"])
        for state in ("held", "cached", "pinned", "free"):
            self.assertEqual(self.server.metric("quire_kv_bytes", state=state),
                             cache[state + "_bytes"], state)
        self.assertEqual(self.server.metric("quire_kv_bytes"), cache["budget_bytes"])
        self.assertGreater(cache["cached_bytes"], 0)

    def test_a_pinned_prefix_is_used_and_can_be_dropped_by_its_text(self):
        made = json.loads(self.command("pin", "-p", SYSTEM, "--label", "system", "--json"))
        self.assertTrue(made["pinned"])
        self.assertGreater(made["computed_tokens"], 0)
        answer = self.server.complete(SYSTEM + ONCE, max_tokens=1)
        cached = answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]
        # Where the two texts meet, tokens may differ.
        self.assertGreaterEqual(cached, made["tokens"] - 16)
        listed = self.command("prefixes", "--sort", "hits").splitlines()
        self.assertEqual(listed[0].split("\t")[0], "id")
        row = next(line.split("\t") for line in listed if line.startswith(made["id"]))
        self.assertEqual((row[1], row[7], row[9]), (str(made["tokens"]), "pinned", "system"))
        self.command("drop", "-p", SYSTEM)
        self.assertNotIn(made["id"], self.command("prefixes"))
        self.assertIn("does not have", self.command("drop", "-p", SYSTEM, code=3))

    def test_a_ttl_is_told_and_ends(self):
        made = self.server.post("/quire/v1/prefixes", {"prompt": SYSTEM, "ttl_s": 1})
        self.assertEqual(made.status, 201)
        self.assertAlmostEqual(made.json["expires_at"], time.time() + 1, delta=2)
        end = time.monotonic() + 10
        while self.server.metric("quire_kv_bytes", state="pinned") > 0:
            self.assertLess(time.monotonic(), end, "it is still kept")
            time.sleep(0.1)

    def test_a_mark_keeps_every_prompt_of_the_call(self):
        prompts = [[3 + (i * k) % 400 for i in range(1, 180)] for k in (3, 7, 11, 13, 17)]
        for stream in (False, True):
            self.server.post("/reset_prefix_cache", b"")
            body = {"prompt": prompts, "max_tokens": 1, "temperature": 0, "stream": stream,
                    "prompt_cache_options": {"mode": "implicit", "ttl": "10m"}}
            answer = self.server.post("/v1/completions", body)
            self.assertEqual(answer.status, 200, answer.text)
            self.assertRegex(answer.text, r'"retained_until":\d+')
            kept = [prefix for prefix in self.server.get("/quire/v1/prefixes").json["prefixes"]
                    if prefix["retained_until"]]
            self.assertEqual([prefix["tokens"] for prefix in kept], [176] * len(prompts))
            for prefix in kept:
                self.server.ask("DELETE", f"/quire/v1/prefixes/{prefix['id']}")

    def test_match_computes_nothing(self):
        before = self.server.metric("vllm:prompt_tokens_total")
        match = self.server.post("/quire/v1/match", {"prompt": SYSTEM}).json
        self.assertEqual((match["matched_tokens"], match["stop"]), (0, "namespace"))
        self.assertEqual(self.server.metric("vllm:prompt_tokens_total"), before)
        self.assertNotIn("Lily", json.dumps(match))

    def test_events_tell_of_a_request_and_of_pages(self):
        connection = self.server.connect(20)
        connection.request("GET", "/quire/v1/events")
        stream = connection.getresponse()
        self.assertEqual(stream.getheader("content-type"), "text/event-stream")
        seen = []

        def read():
            while not {"request", "page"} <= {kind for kind, _ in seen}:
                line = stream.readline().decode().strip()
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    seen.append((kind, json.loads(line[6:])))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.server.complete(max_tokens=5, fields={"x-request-id": "watched"})
        reader.join(15)
        self.assertFalse(reader.is_alive(), seen)
        ended = [event for kind, event in seen
                 if kind == "request" and event["request_id"] == "watched"]
        self.assertIn("started", [event["action"] for event in ended])
        self.assertNotIn(ONCE, json.dumps(seen))
        connection.close()

    def test_a_live_request_is_listed_and_ended(self):
        answers = []

        def work():
            answers.append(self.server.complete(max_tokens=400, ignore_eos=True, n=8, seed=1,
                                                fields={"x-request-id": "long-one"}))

        worker = threading.Thread(target=work)
        worker.start()
        end = time.monotonic() + 10
        while not any(request["request_id"] == "long-one"
                      for request in self.server.get("/quire/v1/requests").json["requests"]):
            if not worker.is_alive() or time.monotonic() > end:
                break
        ended = self.server.ask("DELETE", "/quire/v1/requests/long-one")
        worker.join(30)
        if ended.status == 200:  # else it was faster than we
            self.assertNotEqual(answers[0].status, 200)
        self.assertEqual(self.server.ask("DELETE", "/quire/v1/requests/long-one").status, 404)

    def test_stat_and_top_print_what_happens(self):
        lines = self.command("stat", "--count", 2, "--interval", 0.1).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0].split("\t")[0], "running")
        self.assertEqual(len(lines[1].split("\t")), len(lines[0].split("\t")))
        self.assertIn("phase", self.command("top", "--count", 1))
        self.assertIn("budget_bytes", self.command("info"))

    def test_a_flag_is_stronger_than_the_environment(self):
        error = self.command("info", "--url", "http://127.0.0.1:1", code=1)
        self.assertIn("quire serve MODEL", error)
        self.assertIn("127.0.0.1:1", error)
        self.assertIn("--url", self.command("info", "--url", "ftp://x", code=3))


class LongStep(unittest.TestCase):
    """One step computes a long prompt: what asks the engine waits, nothing else does."""

    def test_a_look_at_the_engine_keeps_no_other_request(self):
        with Server(QUIRE, SMOL, "--threads", 1, "--token-budget", 4096) as server:
            long_one = threading.Thread(target=server.complete, args=(list(range(1000, 4000)),),
                                        kwargs={"max_tokens": 1})
            long_one.start()
            time.sleep(0.3)  # the step has begun
            ends = {}

            def ask(name, method, path, body=None):
                answer = server.ask(method, path, body)
                ends[name] = time.monotonic()
                self.assertLess(answer.status, 500, answer.text)

            looks = [("GET", "/quire/v1/requests"), ("GET", "/quire/v1/prefixes"),
                     ("POST", "/quire/v1/match", {"prompt": ONCE}), ("GET", "/quire/v1/cache"),
                     ("DELETE", "/quire/v1/prefixes/0000000000000001"),
                     ("PATCH", "/quire/v1/prefixes/0000000000000001", {"pin": True})]
            askers = [threading.Thread(target=ask, args=(str(i), *look))
                      for i, look in enumerate(looks)]
            for asker in askers:
                asker.start()
            time.sleep(0.1)
            start = time.monotonic()
            ask("tokens", "POST", "/tokenize", {"prompt": ONCE})
            for thread in (*askers, long_one):
                thread.join(60)
            self.assertGreater(min(ends[str(i)] for i in range(len(looks))) - start, 0.5,
                               "the step was too short to tell anything")
            self.assertLess(ends["tokens"] - start, 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
