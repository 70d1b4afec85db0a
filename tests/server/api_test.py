"""The API as a client meets it: the API group of cases, against a real server.

Usage: api_test.py QUIRE [unittest arguments]
"""

import json
import re
import signal
import socket
import threading
import time
import unittest

import harness
from harness import ONCE, SMOL, STORIES, STORY, Server, in_threads, until

QUIRE = harness.quire_from_arguments()


class WithStories(unittest.TestCase):
    """One server of the small model for all tests of a class."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--threads", 2, *cls.flags)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, f"exit code {code}:\n{cls.server.stderr()}"

    def check_refused(self, answer, param, code=None, status=400):
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(set(answer.error), {"message", "type", "param", "code"})
        self.assertEqual(answer.error["param"], param, answer.text)
        if code:
            self.assertEqual(answer.error["code"], code)


class Completions(WithStories):

    def test_golden_a(self):
        answer = self.server.complete(max_tokens=27)
        self.assertEqual(answer.json["choices"][0]["text"], STORY)
        self.assertEqual(answer.json["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer.json["usage"]["completion_tokens"], 27)

    def test_api_02_an_empty_prompt_with_nothing_to_make_stops_nobody(self):
        self.assertEqual(self.server.complete("", max_tokens=0).json["choices"][0]["text"], "")
        self.assertEqual(self.server.complete(max_tokens=27).json["choices"][0]["text"], STORY)

    def test_api_03_an_empty_prompt_runs_from_bos_an_empty_list_is_refused(self):
        text = self.server.complete("", max_tokens=9).json["choices"][0]["text"].lstrip()
        self.assertTrue(text.startswith("Once upon a time, there was"), text)
        self.check_refused(self.server.complete([]), "prompt")

    def test_api_04_counts_are_whole_and_not_negative(self):
        for value in (-2, 1.5, "16"):
            self.check_refused(self.server.complete(max_tokens=value), "max_tokens")
        huge = self.server.post("/v1/completions", b'{"prompt":"a","max_tokens":1e400}')
        self.assertEqual(huge.status, 400)
        answer = self.server.post("/v1/completions", b'{"prompt":"a","max_tokens":16.0}')
        self.assertEqual(answer.json["usage"]["completion_tokens"], 16)

    def test_api_05_a_prompt_over_the_context_is_refused_with_both_numbers(self):
        answer = self.server.complete([403] * 600)
        self.check_refused(answer, "prompt", "context_length_exceeded")
        self.assertIn("maximum context length is 512 tokens", answer.error["message"])
        self.assertIn("600", answer.error["message"])

    def test_api_06_what_cannot_be_has_a_number(self):
        for extra in ({"top_k": 1}, {"logit_bias": {"432": -100}}):
            answer = self.server.complete(max_tokens=3, logprobs=5, **extra)
            self.assertEqual(answer.status, 200, answer.text)
            for value in answer.json["choices"][0]["logprobs"]["token_logprobs"]:
                self.assertTrue(-9999.0 <= value <= 0)

    def test_api_08_choices_differ_and_come_again(self):
        texts = [[choice["text"] for choice in self.server.complete(
            n=4, seed=1, temperature=1, max_tokens=20).json["choices"]] for _ in range(2)]
        self.assertEqual(len(set(texts[0])), 4)
        self.assertEqual(texts[0], texts[1])

    def test_api_09_huge_counts_are_refused_at_once(self):
        before = self.server.resident_bytes()
        start = time.monotonic()
        self.check_refused(self.server.complete(n=1000000000), "n")
        self.check_refused(self.server.complete(best_of=1000000), "best_of")
        self.assertLess(time.monotonic() - start, 1)
        self.assertLess(self.server.resident_bytes() - before, 4 << 20)

    def test_api_10_logprobs_have_a_limit(self):
        for value in (-1, 511, 512, 10**9):
            self.check_refused(self.server.complete([403] * 500, echo=True, logprobs=value),
                               "logprobs")

    def test_api_11_usage_adds_up(self):
        for values in ({"stop": ["outside"], "max_tokens": 60}, {"n": 3, "max_tokens": 7},
                       {"max_tokens": 7}, {"max_tokens": 0}):
            usage = self.server.complete(**values).json["usage"]
            self.assertEqual(usage["prompt_tokens"] + usage["completion_tokens"],
                             usage["total_tokens"])
            self.assertLessEqual(usage["prompt_tokens_details"]["cached_tokens"],
                                 usage["prompt_tokens"] - 1)
            if "n" in values:
                self.assertEqual(usage["completion_tokens"], 21)

    def test_api_12_lone_surrogates_are_refused(self):
        for text in (rb'{"prompt":"\ud83d"}', rb'{"prompt":"\udc49x"}'):
            answer = self.server.post("/v1/completions", text)
            self.assertEqual(answer.status, 400)
            self.assertIn("byte", answer.error["message"])
        self.assertEqual(self.server.complete(max_tokens=1).status, 200)

    def test_min_tokens_above_the_room_is_refused_by_its_name(self):
        for values in ({"max_tokens": 1000}, {"max_tokens": 600}):
            self.check_refused(self.server.complete(min_tokens=509, **values), "min_tokens")
        self.assertEqual(self.server.complete(min_tokens=508, max_tokens=600).status, 200)
        self.check_refused(self.server.complete([[403], [403] * 300], min_tokens=300,
                                                max_tokens=400), "min_tokens")

    def test_api_20_scoring_by_echo(self):
        answer = self.server.complete(echo=True, logprobs=1, max_tokens=0).json["choices"][0]
        self.assertEqual(answer["text"], ONCE)
        self.assertEqual(answer["finish_reason"], "length")
        logprobs = answer["logprobs"]
        self.assertEqual(len(logprobs["tokens"]), 5)
        self.assertIsNone(logprobs["token_logprobs"][0])
        for value in logprobs["token_logprobs"][1:]:
            self.assertTrue(-100 < value <= 0, value)

    def test_a_prefix_is_cached_and_changes_nothing(self):
        prompt = [(7 * i) % 400 + 3 for i in range(100)]
        first, second = (self.server.complete(prompt, max_tokens=8, logprobs=5).json
                         for _ in range(2))
        self.assertEqual(first["choices"][0]["logprobs"], second["choices"][0]["logprobs"])
        self.assertEqual(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertGreaterEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 96)

    def test_several_prompts_give_choices_in_their_order(self):
        answer = self.server.complete([ONCE, "The"], n=2, max_tokens=6).json
        texts = [choice["text"] for choice in answer["choices"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.assertTrue(STORY.startswith(texts[0]))

    def test_unknown_fields_are_named(self):
        answer = self.server.complete(max_tokens=1, n_discard=-5)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.fields["x-quire-ignored"], "n_discard")
        self.assertTrue(until(lambda: "ignored: n_discard" in self.server.stderr()))

    def test_chat_without_a_template_is_refused(self):
        answer = self.server.post("/v1/chat/completions",
                                  {"messages": [{"role": "user", "content": "Hi"}]})
        self.assertEqual((answer.status, answer.error["code"]), (404, "model_not_supported"))
        self.assertIn("template", answer.error["message"])


class Routes(WithStories):

    def test_api_15_continue_is_answered(self):
        body = json.dumps({"prompt": ONCE, "max_tokens": 1, "user": "x" * (2 << 20)}).encode()
        head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                f"Expect: 100-continue\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as connection:
            start = time.monotonic()
            connection.sendall(head)
            first = connection.recv(100)
            self.assertLess(time.monotonic() - start, 1)
            self.assertTrue(first.startswith(b"HTTP/1.1 100"), first)
            connection.sendall(body)
            self.assertTrue(connection.recv(1000).startswith(b"HTTP/1.1 "))

    def test_api_21_what_routers_look_for(self):
        model = self.server.get("/v1/models").json["data"][0]
        self.assertEqual(model["owned_by"], "quire")
        self.assertEqual(model["max_model_len"], 512)
        self.assertIn("root", model)
        self.assertIn("version", self.server.get("/version").json)
        self.assertEqual(self.server.get("/health").json["status"], "ok")

    def test_api_22_errors_are_alike_on_all_routes(self):
        answers = {
            404: self.server.get("/v1/nothing"),
            405: self.server.get("/v1/completions"),
            400: self.server.post("/v1/completions", b"{"),
            413: self.server.ask("POST", "/v1/completions", None, {
                "Content-Type": "application/json", "Content-Length": str(1 << 40)}),
            415: self.server.ask("POST", "/v1/completions", b"{}", {"Content-Type": "text/plain"}),
        }
        for status, answer in answers.items():
            self.assertEqual(answer.status, status, answer.text)
            self.assertEqual(set(answer.error), {"message", "type", "param", "code"})
            self.assertIn("x-request-id", answer.fields)
        self.assertEqual(answers[405].fields["allow"], "POST")

    def test_head_is_get_without_the_body(self):
        for path in ("/health", "/version", "/v1/models", "/tokenizer_info", "/openapi.json",
                     "/quire/v1/requests"):
            head, whole = self.server.ask("HEAD", path), self.server.get(path)
            self.assertEqual((head.status, head.text), (200, ""), path)
            self.assertEqual(head.fields["content-length"], whole.fields["content-length"], path)
            self.assertEqual(head.fields["content-type"], whole.fields["content-type"], path)
        self.assertEqual(self.server.ask("HEAD", "/quire/v1/events").status, 200)  # and ends
        self.assertEqual(self.server.ask("HEAD", "/metrics").status, 200)
        self.assertEqual(self.server.ask("HEAD", "/v1/completions").status, 405)
        self.assertEqual(self.server.ask("HEAD", "/v1/nothing").status, 404)

    def test_the_log_has_the_code_of_each_refusal(self):
        expected = {
            "unknown_url": self.server.get("/v1/nothing", {"x-request-id": "r-1"}),
            "method_not_allowed": self.server.get("/v1/completions", {"x-request-id": "r-2"}),
            "host_not_allowed": self.server.get("/health", {"x-request-id": "r-3",
                                                            "Host": "evil.example"}),
            "prefix_not_found": self.server.ask("DELETE", "/quire/v1/prefixes/0", None,
                                                {"x-request-id": "r-4"}),
            "model_not_supported": self.server.post("/v1/embeddings", {"input": "Hi"},
                                                    {"x-request-id": "r-5"}),
            "unsupported_media_type": self.server.ask("POST", "/tokenize", b"{}", {
                "x-request-id": "r-6", "Content-Type": "text/plain"}),
            "invalid_json": self.server.post("/tokenize", b"{", {"x-request-id": "r-7"}),
            "request_too_large": self.server.ask("POST", "/v1/completions", None, {
                "x-request-id": "r-8", "Content-Type": "application/json",
                "Content-Length": str(1 << 40)}),
        }

        def line_of(request):
            return next((line for line in self.server.stderr().splitlines()
                         if f"id={request} " in line), "")

        for number, (code, answer) in enumerate(expected.items(), 1):
            self.assertEqual(answer.error["code"], code)
            self.assertTrue(until(lambda n=number: line_of(f"r-{n}")), code)
            self.assertIn(f"code={code}", line_of(f"r-{number}"))
            self.assertIn(f"status={answer.status} ", line_of(f"r-{number}"))

    def test_api_24_embeddings_are_refused_with_the_reason(self):
        answer = self.server.post("/v1/embeddings", {"input": "Hi"})
        self.check_refused(answer, "model", "model_not_supported", 404)
        self.assertIn("stories260K", answer.error["message"])

    def test_request_ids_come_back(self):
        answer = self.server.get("/version", {"X-Request-Id": "abc-1.2_3"})
        self.assertEqual(answer.fields["x-request-id"], "abc-1.2_3")
        odd = self.server.get("/version", {"X-Request-Id": "a b"})
        self.assertRegex(odd.fields["x-request-id"], r"^[A-Za-z0-9._-]{8,}$")

    def test_a_model_that_is_not_served_is_not_found(self):
        self.check_refused(self.server.complete(model="gpt-4"), "model", "model_not_found", 404)
        self.check_refused(self.server.get("/v1/models/gpt-4"), "model", "model_not_found", 404)

    def test_tokens_there_and_back(self):
        tokens = self.server.post("/tokenize", {"prompt": ONCE}).json
        self.assertEqual(tokens["tokens"], [1, 403, 407, 261, 378])
        self.assertEqual(tokens["count"], 5)
        text = self.server.post("/detokenize", {"tokens": tokens["tokens"]}).json
        self.assertEqual(text["prompt"].removeprefix("<s>").strip(), ONCE)
        self.assertIn("eos_token", self.server.get("/tokenizer_info").json)


class Queue(WithStories):
    flags = ("--max-queue", 4, "--max-seqs", 1)

    def test_api_23_what_the_queue_cannot_take_is_refused_at_once(self):
        def ask(_):
            start = time.monotonic()
            answer = self.server.complete(max_tokens=100, ignore_eos=True)
            return answer, time.monotonic() - start

        answers = in_threads(10, ask)
        refused = [answer for answer, _ in answers if answer.status == 503]
        self.assertEqual(len(refused) + sum(a.status == 200 for a, _ in answers), 10)
        self.assertTrue(1 <= len(refused) <= 6, len(refused))
        for answer in refused:
            self.assertEqual(answer.error["code"], "queue_full")
            self.assertTrue(1 <= int(answer.fields["retry-after"]) <= 120)


class Timeouts(unittest.TestCase):

    def test_prefixes_and_looks_end_at_the_time_limits_too(self):
        tokens = list(range(1000, 4000))
        with Server(QUIRE, SMOL, "--threads", 1, "--token-budget", 4096,
                    "--request-timeout", "500ms") as server:
            asker = threading.Thread(target=server.complete, args=(tokens,),
                                     kwargs={"max_tokens": 1})
            asker.start()
            time.sleep(0.3)  # a long step has begun
            for answer in in_threads(2, lambda i: server.post(
                    *[("/quire/v1/match", {"prompt": ONCE}),
                      ("/quire/v1/prefixes", {"token_ids": tokens[:128]})][i])):
                self.assertEqual((answer.status, answer.error["code"]), (503, "request_timeout"))
            asker.join()
            self.assertTrue(until(lambda: server.held_bytes() == 0, 30))
        with Server(QUIRE, SMOL, "--threads", 1, "--token-budget", 4096,
                    "--queue-timeout", "500ms") as server:
            asker = threading.Thread(target=server.complete, args=(tokens,),
                                     kwargs={"max_tokens": 1})
            asker.start()
            time.sleep(0.3)
            answer = server.post("/quire/v1/prefixes", {"token_ids": tokens[:128]})
            self.assertEqual((answer.status, answer.error["code"]), (503, "queue_timeout"))
            asker.join()


class Lifetime(unittest.TestCase):

    def test_api_13_not_ready_until_loaded_and_after_sigterm(self):
        with Server(QUIRE, SMOL, wait=False) as server:
            seen = set()

            def is_ready():
                try:
                    answer = server.get("/health/ready")
                    # Whatever comes while it loads is answered.
                    for path in ("/version", "/health/progress", "/health/live"):
                        self.assertEqual(server.get(path).status, 200, path)
                    self.assertIn(server.get("/metrics").status, (200, 503))
                    self.assertIn(server.complete(max_tokens=0).status, (200, 503))
                except OSError:
                    return False
                seen.add(answer.status)
                return answer.status == 200

            self.assertTrue(until(is_ready, 60, 0.001))
            self.assertIn(503, seen)
            with server.stream("/v1/completions", {"prompt": ONCE, "max_tokens": 60,
                                                   "ignore_eos": True}) as stream:
                events = stream.events()
                next(events)
                server.process.send_signal(signal.SIGTERM)
                self.assertTrue(until(lambda: server.get("/health/ready").status == 503, 1))
                self.assertEqual(server.get("/health/live").status, 200)
                refused = server.complete(max_tokens=1)
                self.assertEqual((refused.status, refused.error["code"]), (503, "draining"))
                rest = list(events)
            self.assertEqual(rest[-1], "[DONE]")
            self.assertEqual(rest[-2]["choices"][0]["finish_reason"], "length")
            self.assertEqual(server.process.wait(10), 0)

    def test_api_14_an_idle_server_ends_at_once(self):
        with Server(QUIRE, STORIES) as server:
            start = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - start, 1)

    def ask_for_much_and_read_little(self, server, connection):
        """A whole answer that no socket buffer holds; returns what was read of it."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", server.port))
        body = json.dumps({"prompt": ONCE, "max_tokens": 500, "n": 40, "logprobs": 20,
                           "ignore_eos": True, "seed": 1}).encode()
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                           b"Content-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return connection.recv(4096)

    def test_a_slow_reader_of_a_whole_answer_gets_the_time_of_the_drain(self):
        with Server(QUIRE, STORIES, "--threads", 1) as server, socket.socket() as connection:
            got = self.ask_for_much_and_read_little(server, connection)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(3)  # all is computed; the rest waits for the reader
            self.assertIsNone(server.process.poll())
            length = int(re.search(rb"content-length: (\d+)", got).group(1))
            length += got.index(b"\r\n\r\n") + 4
            self.assertGreater(length, 6 << 20)
            while len(got) < length and (piece := connection.recv(1 << 16)):
                got += piece
            self.assertEqual(len(got), length)
            self.assertEqual(server.process.wait(10), 0)

    def test_a_reader_that_is_too_slow_is_cut_at_the_end_of_the_drain(self):
        with Server(QUIRE, STORIES, "--threads", 1, "--drain", "1s") as server, \
                socket.socket() as connection:
            self.ask_for_much_and_read_little(server, connection)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(10), 128 + signal.SIGTERM)

    def test_a_prefix_that_is_computed_is_work_and_watching_events_is_none(self):
        with Server(QUIRE, SMOL, "--threads", 1) as server:
            watcher = server.connect()
            watcher.request("GET", "/quire/v1/events")
            events = watcher.getresponse()
            answers = []
            asker = threading.Thread(target=lambda: answers.append(server.post(
                "/quire/v1/prefixes", {"token_ids": list(range(1000, 4072))})))
            asker.start()
            self.assertTrue(until(lambda: server.get("/load").json["server_load"] == 1, 10))
            server.process.send_signal(signal.SIGTERM)
            events.read()  # to its end
            asker.join(30)
            self.assertEqual(answers[0].status, 201, answers[0].text)
            self.assertEqual(answers[0].json["tokens"], 3072)
            self.assertEqual(server.process.wait(10), 0)
            watcher.close()

    def test_api_14_a_second_signal_ends_streams_with_an_error(self):
        with Server(QUIRE, SMOL) as server:
            with server.stream("/v1/completions", {"prompt": ONCE, "max_tokens": 4000,
                                                   "ignore_eos": True}) as stream:
                events = stream.events()
                next(events)
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.1)
                server.process.send_signal(signal.SIGTERM)
                rest = list(events)
            self.assertEqual(rest[-1], "[DONE]")
            self.assertEqual(rest[-2]["error"]["code"], "draining")
            self.assertEqual(server.process.wait(5), 128 + signal.SIGTERM)

    def test_an_address_that_is_taken_is_told(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            server = Server(QUIRE, STORIES, port=taken.getsockname()[1], wait=False)
            self.assertEqual(server.process.wait(20), 3, server.stderr())
            self.assertIn("--port", server.stderr())
            self.assertIn(str(server.port), server.stderr())

    def test_a_look_at_the_configuration_works_beside_a_server(self):
        with Server(QUIRE, STORIES) as server:
            looked = Server(QUIRE, STORIES, "--check", port=server.port, wait=False)
            self.assertEqual(looked.process.wait(20), 0, looked.stderr())
            self.assertIn(f"http://127.0.0.1:{server.port}", looked.stderr())


if __name__ == "__main__":
    unittest.main(verbosity=2)
