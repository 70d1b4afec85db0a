"""The program as a user meets it: exit codes, streams, JSON, Ctrl-C. Run by ctest.

Usage: cli_test.py QUIRE SOURCE_DIR [unittest arguments]
"""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

QUIRE = sys.argv[1]
SOURCE_DIR = pathlib.Path(sys.argv[2])
MODEL = str(SOURCE_DIR / "tests/data/models/llama-gqa.gguf")  # ids only: it has no tokenizer
TEXT_MODEL = os.environ.get("QUIRE_TEST_TEXT_MODEL") or str(
    SOURCE_DIR / "../shared/data/models/stories260K/stories260K-f32.gguf")
CHAT_MODEL = pathlib.Path.home() / ".cache/quire/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def run(*arguments, stdin="", env=None):
    return subprocess.run(
        [QUIRE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(env or {})})


def needs(path):
    return unittest.skipUnless(pathlib.Path(path).exists(), f"{pathlib.Path(path).name} is absent")


class ExitCodes(unittest.TestCase):

    def check(self, result, code, words):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_help_and_version_are_no_errors(self):
        for arguments in (["--help"], ["--version"], ["run", "--help"], ["bench", "--help"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0, arguments)
            self.assertTrue(result.stdout)

    def test_wrong_words_give_3(self):
        self.check(run("run", MODEL, "--no-such-flag"), 3, "--no-such-flag")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--temp", "-1"), 3, "temperature")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--repeat-penalty", "0"), 3,
                   "repetition_penalty")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--stop", ""), 3, "stop string 0")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--min-tokens", "9", "-n", "8"), 3,
                   "max_tokens")
        self.check(run("run", MODEL, "--prompt-ids", "1 x"), 3, "no token id")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--kv", "q8"), 3, "q8")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--kv-memory", "lots"), 3, "--kv-memory")
        self.check(run("run", MODEL, "--prompt-ids", "1", "--page-size", "17"), 3, "17")
        self.check(run("run", MODEL, "--prompt-ids", "999999"), 3, "999999")

    def test_a_missing_file_gives_3_and_names_it(self):
        self.check(run("run", "/no/such.gguf", "-p", "x"), 3, "/no/such.gguf")
        self.check(run("inspect", "/no/such.gguf"), 3, "/no/such.gguf")

    def test_a_damaged_file_gives_3_and_names_it(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            data = pathlib.Path(MODEL).read_bytes()
            file.write(data[:len(data) // 2])
            file.flush()
            self.check(run("run", file.name, "--prompt-ids", "1"), 3, file.name)

    def test_a_model_without_a_tokenizer_says_so(self):
        self.check(run("run", MODEL, "--raw", "-p", "hello"), 3, "no tokenizer")
        self.check(run("tokenize", MODEL, "-p", "hello"), 3, "no tokenizer")

    def test_unknown_instruction_sets_are_errors(self):
        self.check(run("run", MODEL, "--prompt-ids", "1", env={"QUIRE_CPU": "sse9"}), 3, "sse9")

    def test_what_can_never_fit_is_refused_with_the_numbers(self):
        self.check(run("run", MODEL, "--prompt-ids", "1", "--kv-memory", "4KiB"), 3, "--kv-memory")
        ids = " ".join(["1"] * 200)
        result = run("run", MODEL, "--prompt-ids", ids, "--kv-memory", "80KiB")
        self.check(result, 3, "need 4 KV pages, 131,072 bytes; the budget has 2 pages, 81,920 bytes")


class Run(unittest.TestCase):

    def test_json_has_ids_timings_and_memory(self):
        result = run("run", MODEL, "--prompt-ids", "1, 2 3", "-n", "8", "--temp", "0", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["prompt_ids"], [1, 2, 3])
        self.assertEqual(len(answer["ids"]), 8)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertGreater(answer["timings"]["prompt_seconds"], 0)
        self.assertGreater(answer["memory"]["kv_cached_bytes"], 0)

    def test_the_same_seed_gives_the_same_ids(self):
        answers = [
            json.loads(run("run", MODEL, "--prompt-ids", "7 9", "-n", "20", "--seed", seed,
                           "--json", "-t", threads).stdout)["ids"]
            for seed, threads in ((5, 1), (5, 2), (6, 1))
        ]
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[0], answers[2])

    def test_every_instruction_set_gives_the_same_ids(self):
        ids = set()
        for name in ("portable", "avx2", "avx512"):
            result = run("run", MODEL, "--prompt-ids", "3 1 4", "-n", "12", "--temp", "0", "--json",
                         env={"QUIRE_CPU": name})
            if result.returncode == 2:
                continue  # this machine lacks it
            ids.add(tuple(json.loads(result.stdout)["ids"]))
        self.assertEqual(len(ids), 1)

    @needs(TEXT_MODEL)
    def test_a_stop_string_ends_the_answer_before_it(self):
        arguments = ("run", "--temp", "0", "--raw", "-p", "Once", "-n", "40")
        whole = run(*arguments, TEXT_MODEL).stdout.rstrip("\n")
        stop = whole[10:14]
        cut = run(*arguments, "--stop", "#", "--stop", stop, TEXT_MODEL).stdout
        self.assertEqual(cut, whole[:whole.index(stop)] + "\n")

    @needs(TEXT_MODEL)
    def test_text_goes_to_stdout_and_the_summary_to_stderr(self):
        for arguments, stdin in ((["-p", "Once upon a time"], ""), ([], "Once upon a time")):
            result = run("run", TEXT_MODEL, "--raw", "--temp", "0", "-n", "16", *arguments,
                         stdin=stdin)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(result.stdout.startswith(", there was a little girl"), result.stdout)
            self.assertIn("tokens/s", result.stderr)
            self.assertNotIn("\033", result.stdout + result.stderr)

    @needs(TEXT_MODEL)
    def test_chat_without_a_template_says_what_to_give(self):
        result = run("run", TEXT_MODEL, "-p", "hello")
        self.assertEqual(result.returncode, 3)
        self.assertIn("--chat-template", result.stderr)

    def test_a_closed_pipe_is_no_crash(self):
        process = subprocess.Popen(
            [QUIRE, "run", MODEL, "--prompt-ids", "1", "-n", "50"], stdout=subprocess.PIPE)
        process.stdout.close()
        self.assertIn(process.wait(timeout=60), (0, 1))

    def test_ctrl_c_stops_the_answer(self):
        process = subprocess.Popen(
            [QUIRE, "run", MODEL, "--prompt-ids", "1", "--context", "1000000", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(output)["finish_reason"], "cancelled")


@needs(CHAT_MODEL)
class Memory(unittest.TestCase):

    def test_peak_is_weights_and_pages_in_use_and_little_more(self):
        for text in ("What is the sea?", "word " * 3000):
            result = run("run", CHAT_MODEL, "-p", text, "-n", "4", "--json", "--kv-memory", "8GiB")
            self.assertEqual(result.returncode, 0, result.stderr)
            memory = json.loads(result.stdout)["memory"]
            used = memory["weight_bytes"] + memory["kv_held_bytes"]
            self.assertLess(memory["peak_resident_bytes"], 1.15 * used + (150 << 20))


@needs(CHAT_MODEL)
class Chat(unittest.TestCase):

    def setUp(self):
        self.unread = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(QUIRE, [QUIRE, "run", str(CHAT_MODEL), "--temp", "0", "--ignore-end"])

    def tearDown(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.terminal)

    def more(self, seconds=60):
        if not select.select([self.terminal], [], [], seconds)[0]:
            self.fail(f"no output for {seconds} s after: {self.unread}")
        try:
            self.unread += os.read(self.terminal, 4096).decode(errors="replace")
        except OSError:
            self.fail("ended early: " + self.unread)

    def read_until(self, words):
        while words not in self.unread:
            self.more()
        text, self.unread = self.unread.split(words, 1)
        return text

    def ask_and_interrupt(self, words):
        """Stops the answer as soon as some of it is there; returns its summary."""
        self.read_until("> ")
        os.write(self.terminal, words.encode() + b"\n")
        self.read_until(words)
        while len(self.unread) < 20:
            self.more()
        os.write(self.terminal, b"\x03")
        return self.read_until("tokens/s | KV")

    def test_history_is_used_and_ctrl_c_stops_only_the_answer(self):
        self.ask_and_interrupt("What is the sea?")
        summary = self.ask_and_interrupt("And what is a mountain?")
        cached = int(summary.split(" cached")[0].rsplit("(", 1)[1])
        self.assertGreater(cached, 30)  # the first turn was not computed again
        self.read_until("> ")
        os.write(self.terminal, b"/exit\n")
        self.assertEqual(os.waitpid(self.pid, 0)[1], 0)


class OtherCommands(unittest.TestCase):

    def test_inspect_prints_shapes_and_json(self):
        text = run("inspect", MODEL)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("architecture      llama", text.stdout)
        report = json.loads(run("inspect", MODEL, "--tensors", "--json").stdout)
        self.assertEqual(report["shape"]["num_kv_heads"], 2)
        self.assertEqual(report["kv_bytes_per_token"]["f16"], 4 * 2 * (16 + 16) * 2)
        self.assertEqual(len(report["tensors"]), report["num_tensors"])

    def test_bench_prints_a_table_and_a_json_list(self):
        flags = ("-p", "8,16", "-n", "4", "-d", "0,32", "-t", "1,2", "-r", "1")
        rows = json.loads(run("bench", MODEL, *flags, "--json").stdout)
        self.assertEqual(len(rows), 2 * 2 * 3)
        for key in ("n_prompt", "n_gen", "n_depth", "threads", "tokens_per_second"):
            self.assertIn(key, rows[0])
        self.assertIn("tokens/s", run("bench", MODEL, *flags).stdout)

    def test_bench_shows_what_the_cache_saves(self):
        rows = json.loads(
            run("bench", MODEL, "--no-kv-cache", "-d", "2000", "-r", "2", "--json").stdout)
        self.assertEqual([row["kv_cache"] for row in rows], [True, False])
        self.assertGreater(rows[0]["tokens_per_second"], 2 * rows[1]["tokens_per_second"])

    def bench(self, *flags):
        result = run("bench", "throughput", MODEL, "-t", "1", "--kv-memory", "64MiB", "--json", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["schema"], 1)
        return report

    def test_throughput_counts_what_prompts_share(self):
        report = self.bench("--requests", 6, "--shared-prefix", 128, "--prompt-len", "20-40",
                            "--output-len", "4-8", "--groups", 2, "-r", 2)
        self.assertEqual(len(report["runs"]), 2)
        for row in report["runs"]:
            own = row["total_input_tokens"] - 6 * 128
            self.assertEqual(row["computed_prompt_tokens"], 2 * 128 + own)
            self.assertAlmostEqual(row["hit_rate"], 4 * 128 / row["total_input_tokens"])
            self.assertEqual(row["completed"], 6)
            for name in ("ttft", "tpot", "itl", "e2el"):
                for key in ("mean", "median", "p95", "p99", "max"):
                    self.assertGreater(row[f"{key}_{name}_ms"], 0)
            for key in ("output_throughput", "total_token_throughput", "schedule_share", "steps"):
                self.assertGreater(row[key], 0)
            self.assertLessEqual(row["slots"]["mean_used_share"], 1)
        self.assertEqual(*(row["total_output_tokens"] for row in report["runs"]))

    def test_throughput_of_distinct_prompts_hits_nothing_and_a_kept_cache_all(self):
        flags = ("--requests", 4, "--shared-prefix", 64, "--prompt-len", 10, "--output-len", 2)
        self.assertEqual(self.bench(*flags, "--distinct")["runs"][0]["hit_rate"], 0)
        runs = self.bench(*flags, "-r", 2, "--keep-cache")["runs"]
        self.assertLessEqual(runs[1]["computed_prompt_tokens"], 4 * 10)  # whole pages at least

    def test_throughput_by_rate_and_trace(self):
        row = self.bench("--requests", 5, "--rate", 50, "--prompt-len", 8, "--output-len", 3)["runs"][0]
        self.assertEqual(row["total_output_tokens"], 15)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for ids in ([1, 2], [1, 3], [1, 2, 4]):
                json.dump({"timestamp": 100 * len(ids), "input_length": 512 * len(ids),
                           "output_length": 30, "hash_ids": ids}, file)
                file.write("\n")
            file.flush()
            report = self.bench("--trace", file.name, "--trace-scale", 0.125)
            self.assertEqual(report["runs"][0]["total_input_tokens"], 64 * 7)
            self.assertEqual(report["runs"][0]["total_output_tokens"], 12)
            self.assertEqual(report["skipped"], 0)

    def test_throughput_has_two_more_measurements(self):
        report = self.bench("--batched", "1,3", "--shared-prefix", 64, "--prompt-len", 0,
                            "--output-len", 5)
        self.assertEqual([row["sequences"] for row in report["rows"]], [1, 3])
        for row in report["rows"]:
            self.assertEqual(row["decode_steps"], 5)
            self.assertEqual(row["computed_prompt_tokens"], 64)
            self.assertGreater(row["decode_throughput"], 0)
        report = self.bench("--long-prompt", 200, "--decoding", 3, "--prompt-len", 8,
                            "--token-budget", 16)
        for key in ("ttft_alone_ms", "ttft_beside_ms", "late_gap_ms", "max_gap_meanwhile_ms",
                    "median_gap_before_ms"):
            self.assertGreater(report["runs"][0][key], 0)

    def test_throughput_prints_a_table(self):
        text = run("bench", "throughput", MODEL, "--requests", 2, "--output-len", 3).stdout
        for words in ("time to first token", "p99", "tokens/s", "hit rate", "KV slots used / held"):
            self.assertIn(words, text)

    def test_throughput_says_what_to_change(self):
        for flags, words in ((("--output-len", 0), "--output-len"),
                             (("--prompt-len", "9-3"), "--prompt-len"),
                             (("--prompt-len", "0"), "--shared-prefix"),
                             (("--prompt-len", "9999999"), "lower --prompt-len"),
                             (("--trace", "/no/such.jsonl"), "/no/such.jsonl"),
                             (("--batched", "2", "--prefix-cache", "off"), "--prefix-cache on"),
                             (("--batched", "9", "--max-seqs", "8"), "--max-seqs"),
                             (("--batched", "2", "--long-prompt", "9"), "--long-prompt")):
            result = run("bench", "throughput", MODEL, *flags)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_verify_tells_each_check(self):
        result = run("verify", MODEL, "--page-size", 16, "-t", 2)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("FAILED", result.stdout)
        report = json.loads(run("verify", MODEL, "--kv", "f32", "--page-size", 16, "--json").stdout)
        self.assertEqual((report["schema"], report["ok"], report["failed"]), (1, True, 0))
        names = {check["name"] for check in report["checks"]}
        self.assertLessEqual({"accounting", "preempted by a full memory", "prompt cached whole",
                              "together, without cascade", "chunks of 7"}, names)
        result = run("verify", MODEL, "--kv", "q9")
        self.assertEqual(result.returncode, 3)
        self.assertIn("q9", result.stderr)

    def test_bench_eviction_counts_hits_of_a_trace(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for ids in ([1, 2, 3], [4], [1, 2, 3]):
                file.write(json.dumps({"timestamp": 0, "hash_ids": ids}) + "\n")
            file.flush()
            command = ("bench", "eviction", "--trace", file.name, "--memory-tokens", "1.5k")
            rows = json.loads(run(*command, "--flood", "2", "--json").stdout)
            self.assertEqual([row["num_pages"] for row in rows], [2] * 4)
            rows = json.loads(run(*command, "--page-size", "500", "--json").stdout)
            self.assertEqual([(row["policy"], row["hits"], row["pages"]) for row in rows],
                             [("plain_lru", 0, 7), ("lru", 2, 7), ("reuse", 2, 7), ("best", 3, 7)])
            self.assertIn("42.86 %", run(*command, "--page-size", "500").stdout)
            file.write('{"hash_ids": [-1]}\n')
            file.flush()
            wrong = run(*command)
            self.assertEqual((wrong.returncode, wrong.stdout), (3, ""))
            self.assertIn(":4: \"hash_ids\" has -1, which is no id below 2^63", wrong.stderr)
        self.assertEqual(run(*command, "--memory-tokens", "2x").returncode, 3)

    @needs(TEXT_MODEL)
    def test_tokenize_goes_there_and_back(self):
        ids = run("tokenize", TEXT_MODEL, "-p", "Once upon a time").stdout.strip()
        self.assertEqual(ids, "1 403 407 261 378")
        self.assertEqual(run("tokenize", TEXT_MODEL, "-d", ids).stdout, "Once upon a time\n")
        self.assertEqual(run("tokenize", TEXT_MODEL, "--count", stdin="Once").stdout, "2\n")


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1, exit=False)
    for test, reason in program.result.skipped:
        print(f"skipped: {test}: {reason}")
    # 77 tells ctest that something was skipped.
    sys.exit(1 if not program.result.wasSuccessful() else 77 if program.result.skipped else 0)
