"""Keys, tenants, foreign pages, odd requests: the security group of cases.

Usage: security_test.py QUIRE [unittest arguments]
"""

import hashlib
import os
import pathlib
import re
import signal
import socket
import tempfile
import time
import unittest

import harness
from harness import ONCE, SMOL, STORIES, Server, until

QUIRE = harness.quire_from_arguments()
KEYS = {"alice": ("shop", "user"), "bob": ("bank", "user"), "ops": ("shop", "user,admin,priority")}


def bearer(name):
    return {"Authorization": f"Bearer key-of-{name}"}


class WithKeys(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name, "keys")
        lines = [f"{name} {tenant} {rights} {hashlib.sha256(f'key-of-{name}'.encode()).hexdigest()}"
                 for name, (tenant, rights) in KEYS.items()]
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--api-key-file", path)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        text = cls.server.stderr()
        cls.folder.cleanup()
        assert code == 0, text
        # SEC-18, SEC-19
        assert "key-of-" not in text and ONCE not in text, text

    def test_a_key_is_wanted_on_all_but_a_few_paths(self):
        for path in ("/health", "/health/live", "/health/ready", "/ping", "/version", "/metrics"):
            self.assertEqual(self.server.get(path).status, 200, path)
        for path in ("/v1/models", "/tokenizer_info", "/quire/v1/cache", "/openapi.json", "/load",
                     "/v1/models/x", "/nothing"):
            for fields in ({}, {"Authorization": "Bearer key-of-nobody"},
                           {"Authorization": "Basic key-of-alice"}):
                answer = self.server.get(path, fields)
                self.assertEqual(answer.status, 401, path)
                self.assertEqual(answer.error["code"], "invalid_api_key")
                self.assertEqual(answer.fields["www-authenticate"], "Bearer")
        self.assertEqual(self.server.get("/v1/models", bearer("alice")).status, 200)

    def test_sec_03_the_tenant_is_the_keys(self):
        prompt = [(3 * i) % 400 + 3 for i in range(80)]

        def cached(name, **values):
            answer = self.server.complete(prompt, fields=bearer(name), max_tokens=1, **values)
            return answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]

        self.assertEqual(cached("alice", cache_salt="s"), 0)
        self.assertEqual(cached("bob", cache_salt="s"), 0)
        self.assertEqual(cached("bob", cache_salt="s", user="alice"), 79)
        self.assertEqual(cached("alice", cache_salt="s"), 79)
        self.assertEqual(cached("ops", cache_salt="s"), 79)  # of the same tenant
        self.assertEqual(cached("alice"), 0)

    def test_sec_05_odd_paths_give_no_data(self):
        for path in ("//v1/models", "/v1/../metrics", "/V1/models", "/v1/models%2f",
                     "/v1/models;x", "/v1/%2e%2e/metrics", "/quire//v1/cache"):
            answer = self.server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                                     "Connection: close\r\n\r\n".encode())
            self.assertRegex(answer.split(b"\r\n")[0], rb"^HTTP/1.1 (400|401|404) ", path)
        answer = self.server.raw(b"GET http://localhost/v1/models HTTP/1.1\r\nHost: localhost\r\n"
                                 b"Connection: close\r\n\r\n")
        self.assertRegex(answer.split(b"\r\n")[0], rb"^HTTP/1.1 (400|401|404) ")

    def test_sec_06_a_foreign_host_is_refused(self):
        answer = self.server.get("/version", {"Host": "evil.example:8080"})
        self.assertEqual((answer.status, answer.error["code"]), (403, "host_not_allowed"))
        answer = self.server.get("/version", {"Origin": "http://evil.example"})
        self.assertNotIn("access-control-allow-origin", answer.fields)

    def test_sec_11_names_open_no_files(self):
        for body in ({"model": "../../etc/passwd"}, {"grammar_file": "../../x", "grammar": "x"}):
            answer = self.server.complete(fields=bearer("alice"), max_tokens=1, **body)
            self.assertIn(answer.status, (400, 404), answer.text)

    def test_a_priority_below_0_is_a_right(self):
        self.assertEqual(self.server.complete(fields=bearer("alice"), priority=-1,
                                              max_tokens=1).status, 403)
        self.assertEqual(self.server.complete(fields=bearer("ops"), priority=-1,
                                              max_tokens=1).status, 200)

    def test_a_tenant_sees_its_own(self):
        self.server.complete([5] * 64, fields=bearer("bob"), max_tokens=1)
        tenants = self.server.get("/quire/v1/cache", bearer("alice")).text
        self.assertNotIn("bank", tenants)
        self.assertIn("bank", self.server.get("/quire/v1/cache", bearer("ops")).text)
        self.assertEqual(self.server.ask("DELETE", "/quire/v1/tenants/bank/cache",
                                         fields=bearer("alice")).status, 403)
        self.assertEqual(self.server.post("/reset_prefix_cache", b"",
                                          bearer("alice")).status, 403)


class Pages(unittest.TestCase):

    def test_sec_06_only_pages_of_allowed_origins_get_answers(self):
        server = Server(QUIRE, STORIES, "--page-size", 16, "--cors-origins", "https://chat.example")
        try:
            for origin, is_allowed in (("https://chat.example", True), ("http://evil.example", False)):
                asked = {"Origin": origin, "Access-Control-Request-Method": "POST",
                         "Access-Control-Request-Headers": "authorization, content-type"}
                answer = server.ask("OPTIONS", "/v1/chat/completions", fields=asked)
                self.assertEqual(answer.status == 204, is_allowed)
                for answer in (answer, server.get("/v1/models", {"Origin": origin}),
                               server.get("/nothing", {"Origin": origin})):
                    self.assertEqual(answer.fields.get("access-control-allow-origin"),
                                     origin if is_allowed else None)
        finally:
            server.stop()


class OpenServer(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write("{% for m in messages %}{{ m.content }}{% endfor %}")
            template.flush()
            cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--chat-template", template.name)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.stderr()

    def test_sec_01_numbers_out_of_range_reach_nobody(self):
        for name in ("n", "best_of", "max_tokens", "min_tokens", "top_k", "logprobs",
                     "prompt_logprobs", "priority"):
            for value in (-2**31 - 1, 2**63, -2**63):
                answer = self.server.complete(**{name: value})
                self.assertEqual(answer.status, 400, (name, value, answer.text))
                self.assertEqual(answer.error["param"], name)

    def test_sec_07_a_huge_body_is_not_read(self):
        before = self.server.resident_bytes()
        head = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n")
        answer = self.server.raw(head + b"Content-Length: 2147483648\r\n\r\n")
        self.assertIn(b" 413 ", answer.split(b"\r\n")[0])
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            chunk = b"100000\r\n" + b"\n" * (1 << 20) + b"\r\n"
            try:
                for _ in range(64):
                    connection.sendall(chunk)
            except OSError:
                pass
            answer = b""
            try:
                answer = connection.recv(1000)
            except OSError:
                pass
        self.assertTrue(answer == b"" or b" 413 " in answer.split(b"\r\n")[0], answer)
        self.assertTrue(until(lambda: self.server.resident_bytes() - before < 40 << 20, 5))

    def test_sec_08_odd_json_is_refused_quickly(self):
        bodies = {
            "deep": b'{"prompt":' + b"[" * 100000 + b"]" * 100000 + b"}",
            "twice": b'{"prompt":"a","prompt":"b"}',
            "long number": b'{"prompt":"a","max_tokens":' + b"1" * 100000 + b"}",
        }
        for name, body in bodies.items():
            start = time.monotonic()
            self.assertEqual(self.server.post("/v1/completions", body).status, 400, name)
            self.assertLess(time.monotonic() - start, 1, name)

    def test_sec_10_requests_with_two_lengths_are_refused(self):
        for fields in (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                       b"Content-Length: 2\r\nContent-Length: 3\r\n",
                       b"Content-Length: 2, 3\r\n", b"Content-Length: +2\r\n",
                       b"Transfer-Encoding: chunked, identity\r\n",
                       b"Transfer-Encoding : chunked\r\n"):
            answer = self.server.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                     b"Content-Type: application/json\r\n" + fields + b"\r\n{}")
            self.assertRegex(answer.split(b"\r\n")[0], rb"^HTTP/1.1 (400|501) ", fields)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, fields)

    def test_sec_09_slow_clients_hold_up_nobody(self):
        slow = []
        try:
            for _ in range(200):
                connection = socket.create_connection(("127.0.0.1", self.server.port))
                connection.sendall(b"POST /v1/comp")
                slow.append(connection)
            start = time.monotonic()
            self.assertEqual(self.server.complete(max_tokens=4).status, 200)
            self.assertLess(time.monotonic() - start, 2)
        finally:
            for connection in slow:
                connection.close()

    def test_sec_12_errors_name_no_path_and_nobody_else(self):
        for answer in (self.server.complete(model="x"), self.server.post("/v1/completions", b"{"),
                       self.server.complete(temperature="hot"), self.server.get("/none")):
            self.assertNotIn(str(pathlib.Path(STORIES).parent), answer.text)
            self.assertIsNone(re.search(r"0x[0-9a-f]{6,}", answer.text))

    def test_sec_13_no_address_is_fetched(self):
        answer = self.server.post("/v1/chat/completions", {"messages": [{
            "role": "user", "content": [{"type": "image_url",
                                         "image_url": {"url": "http://127.0.0.1:9/x"}}]}]})
        self.assertEqual(answer.status, 400)


class Kept(unittest.TestCase):

    def test_what_clients_keep_leaves_half_of_the_memory_to_requests(self):
        with Server(QUIRE, STORIES, "--page-size", 16, "--kv-memory", "2MiB") as server:
            for i in range(15):
                prompt = [1] + [(i * 37 + 7 * k) % 400 + 3 for k in range(200)]
                self.assertEqual(server.complete(prompt, max_tokens=2,
                                                 prompt_cache_retention="24h").status, 200)
            self.assertTrue(0 < server.metric("quire_kv_bytes", state="pinned") <= 1 << 20)
            answer = server.complete(max_tokens=300, ignore_eos=True)
            self.assertEqual(answer.json["usage"]["completion_tokens"], 300)
            self.assertEqual(server.stop(), 0)


class Prompts(unittest.TestCase):

    def test_sec_19_prompts_are_logged_only_if_asked_for(self):
        for flags, is_logged in (((), False), (("--log-prompts",), True)):
            with Server(QUIRE, STORIES, *flags) as server:
                self.assertEqual(server.complete("marker in a prompt", max_tokens=1).status, 200)
                server.stop()
                self.assertEqual("marker in a prompt" in server.stderr(), is_logged)
                self.assertEqual("--log-prompts" in server.stderr(), is_logged)


class Reload(unittest.TestCase):

    def test_a_hangup_while_it_loads_is_heeded_when_it_has_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "keys")
            path.touch(mode=0o600)

            def write(name):
                digest = hashlib.sha256(f"key-of-{name}".encode()).hexdigest()
                path.write_text(f"{name} shop user {digest}\n", encoding="utf-8")

            write("alice")
            with Server(QUIRE, SMOL, "--api-key-file", path, wait=False) as server:
                def status(url, fields=None):
                    try:
                        return server.get(url, fields).status
                    except OSError:
                        return 0

                self.assertTrue(until(lambda: status("/health/live") == 200, 20, 0.001))
                if status("/health") != 503:
                    self.skipTest("it has loaded too fast")
                write("bob")
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(until(lambda: status("/v1/models", bearer("bob")) == 200, 60))
                self.assertEqual(status("/v1/models", bearer("alice")), 401)
                self.assertEqual(server.stop(), 0)


class Starts(unittest.TestCase):

    def refused(self, *flags, env=None):
        server = Server(QUIRE, STORIES, *flags, env=env, wait=False)
        self.assertEqual(server.process.wait(20), 3, server.stderr())
        return server.stderr()

    def test_an_open_address_wants_keys(self):
        self.assertIn("--no-auth", self.refused("--host", "0.0.0.0"))

    def test_a_key_file_that_others_can_read_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "keys")
            path.write_text(f"a b user {'0' * 64}\n", encoding="utf-8")
            path.chmod(0o644)
            self.assertIn("chmod 600", self.refused("--api-key-file", path))

    def test_sec_18_a_key_on_the_command_line_is_warned_of_and_shown_nowhere(self):
        with Server(QUIRE, STORIES, "--api-key", "sesame") as server:
            fields = {"Authorization": "Bearer sesame"}
            self.assertEqual(server.get("/v1/models", fields).status, 200)
            self.assertNotIn("sesame", server.get("/metrics").text)
            server.stop()
            self.assertNotIn("sesame", server.stderr())
            self.assertIn("--api-key", server.stderr())

    def test_a_unix_socket_is_its_owners(self):
        with tempfile.TemporaryDirectory() as folder:
            name = pathlib.Path(folder, "quire.sock")
            with Server(QUIRE, STORIES, "--uds", name, wait=False) as server:
                self.assertTrue(until(name.is_socket, 20), server.stderr())
                self.assertEqual(os.stat(name).st_mode & 0o777, 0o600)

                def ask(path):
                    with socket.socket(socket.AF_UNIX) as connection:
                        connection.connect(str(name))
                        connection.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path)
                        return connection.recv(10000)

                self.assertIn(b'"version"', ask(b"/version"))
                self.assertTrue(until(lambda: b" 200 " in ask(b"/health/ready"), 20))
                self.assertEqual(server.stop(), 0)
            self.assertFalse(name.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
