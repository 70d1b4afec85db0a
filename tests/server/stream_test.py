"""Streams, stop strings, and clients that go away: the streaming group of cases.

Usage: stream_test.py QUIRE [unittest arguments]
"""

import socket
import time
import unittest

import harness
from harness import ONCE, SMOL, STORIES, STORY, Server, joined_text, until

QUIRE = harness.quire_from_arguments()
PATH = "/v1/completions"


def ask(**values):
    return {"prompt": ONCE, "temperature": 0, **values}


class Streams(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = Server(QUIRE, STORIES, "--page-size", 16, "--threads", 2)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.stderr()

    def both_texts(self, **values):
        """(text, finish_reason) whole, which must be those of the stream."""
        choice = self.server.post(PATH, ask(**values)).json["choices"][0]
        with self.server.stream(PATH, ask(**values)) as stream:
            events = list(stream.events())
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(joined_text(events), choice["text"])
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], choice["finish_reason"])
        return choice["text"], choice["finish_reason"]

    def test_a_stream_is_the_whole_answer_in_pieces(self):
        self.assertEqual(self.both_texts(max_tokens=27), (STORY, "length"))

    def test_str_01_a_stop_string_over_tokens_is_never_shown(self):
        text, reason = self.both_texts(stop=["outside"], max_tokens=60)
        self.assertEqual(text, STORY[:STORY.index("outside")])
        self.assertEqual(reason, "stop")

    def test_str_02_what_waited_for_a_stop_string_comes_at_the_end(self):
        text, reason = self.both_texts(stop=["outside"], max_tokens=18)
        self.assertTrue(text.endswith("to play out"), text)
        self.assertEqual(reason, "length")

    def test_str_03_what_is_no_stop_string_is_sent(self):
        plain = self.server.post(PATH, ask(max_tokens=60)).json["choices"][0]["text"]
        text, _ = self.both_texts(stop=[" red balloon"], max_tokens=60)
        self.assertEqual(text, plain)

    def test_str_04_the_prompt_is_not_searched(self):
        self.assertEqual(self.both_texts(stop=["time,"], max_tokens=27)[0], STORY)

    def test_a_stop_string_may_be_a_control_tokens_text(self):
        values = ask(logit_bias={"2": 100}, ignore_eos=True, skip_special_tokens=False,
                     stop=["</s>"], max_tokens=50)
        answer = self.server.post(PATH, values).json
        self.assertEqual(answer["choices"][0]["text"], "")
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertLess(answer["usage"]["completion_tokens"], 5)

    def test_str_05_usage_comes_only_if_asked_for(self):
        with self.server.stream(PATH, ask(max_tokens=3)) as stream:
            self.assertFalse(any(event.get("usage") for event in stream.events()
                                 if event != "[DONE]"))
        with self.server.stream(PATH, ask(max_tokens=3, stream_options={
                "include_usage": True})) as stream:
            events = list(stream.events())
        self.assertEqual(events[-2]["choices"], [])
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 3)
        self.assertFalse(any(event.get("usage") for event in events[:-2]))

    def test_str_13_a_cut_character_is_the_same_in_both_modes(self):
        text, reason = self.both_texts(logit_bias={"243": 100}, max_tokens=3)
        self.assertEqual((text, reason), ("\ufffd" * 3, "length"))

    def test_str_14_log_probabilities_line_up_with_the_text(self):
        values = ask(stop=["outside"], max_tokens=60, logprobs=1)
        choice = self.server.post(PATH, values).json["choices"][0]
        self.assertEqual("".join(choice["logprobs"]["tokens"]), choice["text"])
        with self.server.stream(PATH, values) as stream:
            tokens = [token for event in stream.events() if event != "[DONE]"
                      for token in (event["choices"][0].get("logprobs") or {"tokens": []})["tokens"]]
        self.assertEqual(tokens, choice["logprobs"]["tokens"])

    def test_the_head_is_that_of_an_event_stream(self):
        with self.server.stream(PATH, ask(max_tokens=2)) as stream:
            self.assertTrue(stream.fields["content-type"].startswith("text/event-stream"))
            self.assertEqual(stream.fields["cache-control"], "no-cache")
            self.assertEqual(stream.fields["x-accel-buffering"], "no")
            list(stream.lines())

    def test_choices_of_a_stream_have_their_index(self):
        values = ask(n=3, temperature=1, seed=5, max_tokens=12)
        whole = self.server.post(PATH, values).json["choices"]
        with self.server.stream(PATH, values) as stream:
            events = list(stream.events())
        for choice in whole:
            self.assertEqual(joined_text(events, choice["index"]), choice["text"])

    def test_an_old_client_gets_a_raw_body(self):
        body = b'{"prompt":"Once upon a time","temperature":0,"max_tokens":3,"stream":true}'
        answer = self.server.raw(
            b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.assertNotIn(b"ransfer-", answer.split(b"\r\n\r\n")[0])
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer[-80:])


class Departures(unittest.TestCase):
    """Clients of a slower model that leave."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(QUIRE, SMOL, "--threads", 2, "--sse-keep-alive", "200ms",
                            "--kv-memory", "1GiB")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.stderr()

    def check_all_is_free(self):
        self.assertTrue(until(lambda: self.server.held_bytes() == 0, 5))

    def leave(self, body, after_s):
        """Sends a request and closes its connection after some seconds."""
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
            time.sleep(after_s)

    def long_prompt(self, seed):
        return str([(seed + 7 * i) % 40000 + 100 for i in range(8000)])

    def test_str_06_a_long_prompt_stops_when_its_client_leaves(self):
        before = self.server.metric("quire_kv_bytes", state="cached")
        for stream in ("true", "false"):
            self.leave(('{"prompt":%s,"max_tokens":5,"stream":%s}' % (
                self.long_prompt(len(stream)), stream)).encode(), 0.2)
            self.check_all_is_free()
        whole = 2 * 8000 / 64 * 64 * 30 * 2 * 3 * 64 * 2  # had both prompts been computed
        self.assertLess(self.server.metric("quire_kv_bytes", state="cached") - before, whole / 2)

    def test_str_07_a_whole_answer_stops_too(self):
        before = self.server.metric("vllm:generation_tokens_total")
        self.leave(b'{"prompt":"Once","max_tokens":4000,"ignore_eos":true}', 0.3)
        self.check_all_is_free()
        self.assertLess(self.server.metric("vllm:generation_tokens_total") - before, 2000)

    def test_str_11_a_silent_stream_is_kept_alive(self):
        body = {"prompt": [(11 * i) % 40000 + 100 for i in range(8000)], "max_tokens": 1}
        with self.server.stream(PATH, body) as stream:
            lines = list(stream.lines())
        self.assertIn(": keep-alive", lines)
        self.assertEqual(lines[-1], "data: [DONE]")

    def test_progress_is_told_if_asked_for(self):
        body = {"prompt": [(13 * i) % 40000 + 100 for i in range(8000)], "max_tokens": 1,
                "return_progress": True}
        with self.server.stream(PATH, body) as stream:
            progress = [event["prompt_progress"] for event in stream.events()
                        if event != "[DONE]" and "prompt_progress" in event]
        self.assertTrue(progress)
        done = [step["processed"] for step in progress]
        self.assertEqual(done, sorted(done))
        self.assertTrue(all(step["total"] == 8000 for step in progress))


if __name__ == "__main__":
    unittest.main(verbosity=2)
