"""`quire plan` as a user meets it. Run by ctest.

Usage: plan_test.py QUIRE SOURCE_DIR [unittest arguments]
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

QUIRE = sys.argv[1]
SOURCE_DIR = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE_DIR / "tests/data/models/llama-gqa.gguf")
CONFIGS = SOURCE_DIR / "tests/data/configs"
LLAMA_70B = str(CONFIGS / "llama-3-70b.json")
SHAPE = "layers=80,kv_heads=8,head_dim=128"


def run(*arguments):
    return subprocess.run([QUIRE, "plan", *map(str, arguments)], capture_output=True, text=True,
                          timeout=100)


class Plan(unittest.TestCase):

    def plan(self, *arguments, code=None):
        result = run(*arguments, "--json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout)
        plan = json.loads(result.stdout)
        self.assertEqual(plan["schema"], 1)
        self.assertEqual(plan["verdict"]["fits"], result.returncode == 0)
        return plan

    def test_the_example_of_the_help_answers_the_question(self):
        shown = run("--help")
        self.assertEqual(shown.returncode, 0)
        example = re.search(r"quire plan MODEL\.gguf .*", shown.stdout).group(0)
        self.assertEqual(example, "quire plan MODEL.gguf --memory 64GiB --users 20 --ctx 16k")
        words = shlex.split(example.replace("MODEL.gguf", shlex.quote(MODEL)))[2:]
        result = run(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("FITS: 20 users of 16,000 tokens", result.stdout)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.assertNotIn("\033", result.stdout)

    def test_exit_codes(self):
        self.assertEqual(run(MODEL, "--memory", "1GiB", "--ctx", 128).returncode, 0)
        self.assertEqual(run(MODEL, "--memory", "1GiB", "--ctx", "10M").returncode, 1)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"model_type": "newarch", "num_hidden_layers": 2}')
            file.flush()
            unknown = run(file.name, "--memory", "1GiB")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("newarch", unknown.stderr)
        self.assertEqual(unknown.stdout, "")

    def test_bad_input_is_one_clear_error(self):
        for arguments, words in (
                ([], "--shape"),
                ([MODEL, "--shape", SHAPE], "--shape"),
                (["/no/such.gguf"], "/no/such.gguf"),
                ([MODEL, "--memory", "64"], "--memory"),
                ([MODEL, "--kv-memory", "8"], "--kv-memory"),
                ([MODEL, "--memory", "-1GiB"], "--memory"),
                ([MODEL, "--memory", "1GiB", "--gpus", "H100"], "memory and gpus"),
                ([MODEL, "--gpus", "8xH101"], "8xH101"),
                ([MODEL, "--users", "0"], "--users"),
                ([MODEL, "--users", "many"], "--users"),
                ([MODEL, "--ctx", "1e99"], "--ctx"),
                ([MODEL, "--kv", "q8"], "--kv"),
                ([MODEL, "--page-size", "17"], "17"),
                ([MODEL, "--cache-share", "2"], "cache share"),
                ([MODEL, "--ttft", "5"], "--ttft"),
                ([MODEL, "--ctx", "100", "--shared-prefix", "100"], "shared prefix"),
                ([MODEL, "--weights-dtype", "q9"], "q9"),
                ([MODEL, "--chart", "/no/such/folder/x.svg"], "/no/such/folder"),
                (["--shape", SHAPE, "--verify"], "--verify"),
                (["--shape", "layers=80", "--memory", "1GiB"], "kv_heads"),
                ([MODEL, "--no-such-flag"], "--no-such-flag")):
            result = run(*arguments)
            self.assertEqual(result.returncode, 3, (arguments, result.stdout))
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)

    # 640 GB, half of it for the cache; 80 layers x 8 heads x 256 x 2 B x 32,000 = 10,485,760,000 B.
    def test_golden_users(self):
        for shape, codec, users in (
                ("layers=80,kv_heads=64,head_dim=128", "f16", 3),
                (SHAPE, "f16", 30), (SHAPE, "fp8_e4m3:noscale", 61), (SHAPE, "int8", 60)):
            plan = self.plan("--shape", shape, "--memory", "640GB", "--cache-share", "0.5",
                             "--ctx", "32k", "--kv", codec)
            self.assertEqual(plan["answers"]["users_at_context"], users, codec)
            self.assertEqual(plan["memory"]["kv_budget"]["bytes"], 320_000_000_000)
        plan = self.plan(LLAMA_70B, "--gpus", "8xH100", "--cache-share", "0.5", "--ctx", "32k")
        self.assertEqual(plan["answers"]["users_at_context"], 30)
        self.assertEqual(plan["kv"]["conversation"]["counted_bytes"], 10_485_760_000)
        self.assertEqual(plan["roofline"]["mark"], "estimated")

    # PLN-09
    def test_units_are_never_mixed(self):
        for text, size in (("8GiB", 8 << 30), ("8GB", 8_000_000_000), ("1.5G", 3 << 29),
                           ("640GB", 640_000_000_000)):
            self.assertEqual(self.plan(MODEL, "--memory", text)["memory"]["total"]["bytes"], size)

    # PLN-11
    def test_a_shared_prefix_is_counted_once(self):
        arguments = (MODEL, "--memory", "1GiB", "--users", 32, "--ctx", 1088, "--page-size", 16)
        shared = self.plan(*arguments, "--shared-prefix", 1024)
        page = shared["kv"]["groups"][0]["counted_page_bytes"]
        self.assertEqual(shared["kv"]["all_users"]["counted_bytes"], 192 * page)
        self.assertEqual(self.plan(*arguments)["kv"]["all_users"]["counted_bytes"], 2176 * page)

    def test_each_question_is_the_inverse_of_another(self):
        plan = self.plan(LLAMA_70B, "--gpus", "8xH100", "--users", 300, "--ctx", "8k")
        answers = plan["answers"]
        users, context = answers["users_at_context"], answers["context_at_users"]
        for arguments, code in (((users, 8000), 0), ((users + 1, 8000), 1), ((300, context), 0),
                                ((300, context + 1), 1)):
            self.plan(LLAMA_70B, "--gpus", "8xH100", "--users", arguments[0], "--ctx", arguments[1],
                      code=code)

    def test_planned_codecs_are_marked(self):
        plan = self.plan(MODEL, "--memory", "1GiB")
        runs = {codec["codec"]: codec["runs"] for codec in plan["codecs"]}
        self.assertEqual({name for name in runs if runs[name]}, {"f32", "f16", "kivi4"})
        self.assertIn("planned", run(MODEL, "--memory", "1GiB").stdout)

    def test_explain_has_the_numbers(self):
        text = run("--shape", SHAPE, "--memory", "640GB", "--ctx", "32k", "--explain").stdout
        self.assertIn("80 x 8 x (128 + 128) x 2 = 327,680 B", text)

    def test_a_chart_is_an_svg_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.svg"
            result = run(LLAMA_70B, "--gpus", "8xH100", "--users", 20, "--ctx", "32k", "--chart", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            root = xml.etree.ElementTree.parse(path).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        self.assertIn("prefers-color-scheme", xml.etree.ElementTree.tostring(root, "unicode"))

    # PLN-14 in part: a plan reads the header alone.
    def test_a_plan_takes_no_time(self):
        run(LLAMA_70B, "--memory", "640GB")
        seconds = []
        for _ in range(5):
            start = time.monotonic()
            run(LLAMA_70B, "--memory", "640GB")
            seconds.append(time.monotonic() - start)
        # 100 ms is what is promised; machines that run tests have other things to do.
        self.assertLess(min(seconds), 0.1)

    # PLN-14
    def test_a_large_file_is_not_read(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(pathlib.Path(MODEL).read_bytes())
            file.truncate(5 << 30)  # sparse
            file.flush()
            process = subprocess.Popen([QUIRE, "plan", file.name, "--memory", "64GiB"],
                                       stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(usage.ru_maxrss, 50 << 10)  # KiB
        self.assertLess(usage.ru_utime + usage.ru_stime, 0.1)

    def test_measured_rates_are_of_this_machine(self):
        plan = self.plan("--shape", SHAPE + ",params=70B", "--memory", "640GB", "--measure")
        self.assertEqual(plan["roofline"]["rates_mark"], "measured")
        self.assertGreater(plan["roofline"]["bytes_per_second"], 1e8)
        self.assertGreater(plan["roofline"]["flops"], 1e8)

    def test_verify_finds_no_difference(self):
        for arguments in ([], ["--page-size", "16", "--users", "3", "--ctx", "100"],
                          ["--kv", "kivi4", "--ctx", "257"]):
            result = run(MODEL, "--verify", "--json", *arguments)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = json.loads(result.stdout)["lines"]
            codecs = {line["codec"] for line in lines} - {"all"}
            self.assertEqual(codecs, {"kivi4"} if "kivi4" in arguments else {"f32", "f16", "kivi4"})
            for line in lines:
                self.assertTrue(line["ok"], line)
                if line["what"] != "process peak":
                    self.assertEqual(line["planned_bytes"], line["real_bytes"], line)
        self.assertEqual(run(MODEL, "--verify", "--kv", "tile4").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
