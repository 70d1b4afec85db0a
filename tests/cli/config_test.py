"""`quire config`, the order of an option's sources, unknown and foreign flags. Run by ctest.

Usage: config_test.py QUIRE SOURCE_FOLDER [unittest arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

QUIRE = sys.argv[1]
MODEL = str(pathlib.Path(sys.argv[2]) / "tests/data/models/llama-gqa.gguf")


def run(*arguments, env=None):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("QUIRE_")}
    return subprocess.run([QUIRE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env={**environment, **(env or {})})


class Config(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text, mode=0o600):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def rows(self, *arguments, env=None):
        result = run("config", "show", "--json", *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["schema"], 1)
        return {row["name"]: (row["value"], row["origin"]) for row in report["options"]}

    def test_flag_beats_environment_beats_file_beats_default(self):
        path = self.write("quire.conf", "# mine\nport = 1\nkv-memory = 1GiB\nowned-by = me\n")
        rows = self.rows("--config", path, "--port", 3,
                         env={"QUIRE_PORT": "2", "QUIRE_KV_MEMORY": "2GiB"})
        self.assertEqual(rows["port"], ("3", "flag"))
        self.assertEqual(rows["kv-memory"], ("2GiB", "environment"))
        self.assertEqual(rows["owned-by"], ("me", f"{path}:4"))
        self.assertEqual(rows["host"], ("127.0.0.1", "default"))
        self.assertEqual(rows["no-auth"], ("false", "default"))
        text = run("config", "show", "--origin", "--config", path).stdout
        self.assertIn(f"port\t1\t{path}:2\n", text)

    def test_check_prints_each_problem_in_a_line(self):
        path = self.write("quire.conf", "prot = 1\nkv-memory = 8\ndrain = 30\n")
        result = run("config", "check", "--config", path, "--max-body", "1",
                     env={"QUIRE_KV_MEMROY": "1GiB"})
        self.assertEqual(result.returncode, 3)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 5, lines)
        for words in (f"{path}:1: there is no option prot: did you mean port?",
                      "--kv-memory: '8' is no size", "--drain: '30' is no time",
                      "--max-body: '1' is no size", "QUIRE_KV_MEMROY: did you mean QUIRE_KV_MEMORY?"):
            self.assertTrue(any(words in line for line in lines), (words, lines))
        good = run("config", "check", MODEL, "--port", 9000)
        self.assertEqual((good.returncode, good.stdout), (0, ""), good.stderr)

    def test_check_reads_the_key_file(self):
        line = "ann shop user " + "0" * 64 + "\n"
        for text, mode, words in ((line, 0o644, "chmod 600"), ("ann shop\n", 0o600, ":1: need NAME")):
            result = run("config", "check", "--api-key-file", self.write("keys", text, mode))
            self.assertEqual(result.returncode, 3)
            self.assertIn(words, result.stdout)
        good = run("config", "check", "--api-key-file", self.write("keys", line), "--host", "0.0.0.0")
        self.assertEqual(good.returncode, 0, good.stdout)
        # SEC: an address that others reach, and no key.
        result = run("config", "check", "--host", "0.0.0.0")
        self.assertEqual(result.returncode, 3)
        self.assertIn("--no-auth", result.stdout)

    def test_check_tells_of_values_and_files_at_once(self):
        key = self.write("keys", "ann shop\n", 0o600)
        pem = self.write("cert.pem", "no certificate\n")
        result = run("config", "check", "/no/such/model.gguf", "--drain", "30", "--kv-memory", "5",
                     "--kv", "int9", "--prefix-cache", "maybe", "--api-key-file", key,
                     "--ssl-certfile", "/no/such/cert.pem", "--ssl-keyfile", pem)
        self.assertEqual(result.returncode, 3)
        for words in ("--drain: '30'", "--kv-memory: '5'", "int9", "--prefix-cache maybe",
                      ":1: need NAME", "MODEL /no/such/model.gguf", "--ssl-certfile /no/such"):
            self.assertIn(words, result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), 7, result.stdout)
        result = run("config", "check", MODEL, "--ssl-certfile", pem, "--ssl-keyfile", pem)
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("cert.pem", result.stdout)

    # SEC-18
    def test_keys_are_never_shown(self):
        for flags, env in ((["--api-key", "marker-of-secret"], None),
                           ([], {"QUIRE_API_KEY": "marker-of-secret"})):
            for form in ([], ["--origin"], ["--json"]):
                result = run("config", "show", *form, *flags, env=env)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotIn("marker", result.stdout + result.stderr)
                self.assertIn("not shown", result.stdout)
        path = self.write("quire.conf", "api-key = marker-of-secret\n")
        result = run("config", "check", "--config", path)
        self.assertEqual(result.returncode, 3)
        self.assertNotIn("marker-of", result.stdout + result.stderr)


class Flags(unittest.TestCase):

    def test_an_unknown_flag_is_an_error_with_the_nearest_name(self):
        for arguments, words in ((("serve", MODEL, "--prot", "1"), "did you mean --port?"),
                                 (("run", MODEL, "--kv-memroy=1GiB"), "did you mean --kv-memory?"),
                                 (("bench", "throughput", MODEL, "--request", "1"), "--requests?"),
                                 (("config", "show", "--orign"), "did you mean --origin?"),
                                 (("srve", MODEL), "did you mean serve?"),
                                 (("run", MODEL, "--no-such-flag"), "unknown flag --no-such-flag")):
            result = run(*arguments)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertIn(words, result.stderr)

    def test_flags_of_other_servers_are_ours_or_errors(self):
        result = run("config", "show", "--max-num-seqs", 7, "-np", 7)
        self.assertEqual(result.returncode, 3, "given twice")
        result = run("config", "show", "--max-num-seqs", 7, "--shutdown-timeout", 30, "--ctx-size",
                     2048, "--alias", "a", "-ngl", 0)
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in ("max-seqs\t7", "drain\t30s", "max-model-len\t2048", "served-model-name\ta"):
            self.assertIn(line + "\n", result.stdout)
        for flags in (("--gpu-memory-utilization", "0.9"), ("-kvu",), ("-ctk", "q8_0"),
                      ("-ngl", "99"), ("--cache-reuse", "256"), ("--quantization", "awq")):
            result = run("serve", MODEL, *flags)
            self.assertEqual(result.returncode, 3, flags)
            self.assertIn(flags[0], result.stderr)

    def test_a_model_alone_means_run(self):
        result = run(MODEL, "--prompt-ids", "1", "-n", "2", "--temp", "0")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_serve_tells_all_problems_and_gives_3(self):
        result = run("serve", "--drain", "30", "--log-format", "xml")
        self.assertEqual(result.returncode, 3)
        for words in ("no model", "--drain", "--log-format"):
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1, exit=False)
    sys.exit(not program.result.wasSuccessful())
