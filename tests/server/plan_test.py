"""POST /quire/v1/plan against a real server: the document of `quire plan --json`.

Usage: plan_test.py QUIRE [unittest arguments]
"""

import json
import subprocess
import unittest

import harness
from harness import STORIES, Server

QUIRE = harness.quire_from_arguments()


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--threads", 1, "--kv-memory", "64MiB")

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, f"exit code {code}:\n{cls.server.stderr()}"

    def plan(self, **fields):
        answer = self.server.post("/quire/v1/plan", fields)
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    # PLN-05: banner, /quire/v1/cache and plan tell one capacity.
    def test_the_served_model_is_planned_as_it_runs(self):
        plan = self.plan()
        cache = self.server.get("/quire/v1/cache").json
        self.assertEqual(plan["memory"]["kv_budget"]["bytes"], cache["budget_bytes"])
        self.assertEqual(plan["kv"]["page_size"], cache["page_size"])
        self.assertEqual(plan["request"]["ctx"], cache["context_len"])
        self.assertEqual(plan["kv"]["groups"][0]["counted_page_bytes"],
                         cache["groups"][0]["page_bytes"])
        # PLN-13: 512 tokens are 32 pages, counted 12,288 B each: 170.67 of them in 64 MiB.
        self.assertEqual(plan["answers"]["users_at_context"], 170)
        self.assertEqual(int(cache["concurrency_at_full_context"]), 170)

    def test_the_command_gives_the_same_document(self):
        fields = {"users": 7, "ctx": 300, "shared_prefix": 50, "kv": "tile4", "page_size": 32,
                  "memory_bytes": 1 << 30, "gpus": None}
        plan = self.plan(**fields)
        command = subprocess.run(
            [QUIRE, "plan", STORIES, "--users", "7", "--ctx", "300", "--shared-prefix", "50",
             "--kv", "tile4", "--page-size", "32", "--memory", "1GiB", "--json"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(command.returncode, 0, command.stderr)
        self.assertEqual(plan, json.loads(command.stdout))

    def test_another_model_is_a_shape(self):
        plan = self.plan(shape="layers=80,kv_heads=8,head_dim=128", memory_bytes=640_000_000_000,
                         cache_share=0.5, ctx=32_000)
        self.assertEqual(plan["answers"]["users_at_context"], 30)

    def test_wrong_fields_are_named(self):
        for fields, param in (({"user": 1}, "user"), ({"users": 0}, "users"),
                              ({"config": {"model_type": "newarch"}}, "config"),
                              ({"kv": "q8"}, "kv")):
            answer = self.server.post("/quire/v1/plan", fields)
            self.assertEqual(answer.status, 400, answer.text)
            self.assertEqual(answer.error["param"], param)
        self.assertEqual(self.server.post("/quire/v1/plan", b"{").status, 400)
        self.assertEqual(self.server.get("/quire/v1/plan").status, 405)


if __name__ == "__main__":
    unittest.main()
