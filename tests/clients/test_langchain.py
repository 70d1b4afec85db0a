"""LangChain's ChatOpenAI, unchanged, against a real server."""

import pytest
from conftest import NAME
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI


def make(server, **kwargs):
    return ChatOpenAI(
        model=NAME,
        base_url=server.url + "/v1",
        api_key="none",
        temperature=0,
        max_tokens=16,
        max_retries=0,
        **kwargs)


MESSAGES = [SystemMessage("You answer in short sentences. " * 20), HumanMessage("What is a tide?")]


def test_invoke_tells_usage_and_what_was_cached(server):
    chat = make(server)
    first, second = chat.invoke(MESSAGES), chat.invoke(MESSAGES)
    assert first.content and first.content == second.content
    usage = second.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 64 <= usage["input_token_details"]["cache_read"] < usage["input_tokens"]
    assert first.response_metadata["finish_reason"] in ("stop", "length")


def test_stream_adds_up_to_the_same(server):
    chat = make(server, stream_usage=True)
    whole = None
    for chunk in chat.stream(MESSAGES):
        whole = chunk if whole is None else whole + chunk
    plain = chat.invoke(MESSAGES)
    assert whole.content == plain.content
    assert whole.usage_metadata["output_tokens"] == plain.usage_metadata["output_tokens"]
    assert whole.usage_metadata["input_token_details"]["cache_read"] >= 64


def test_batch(server):
    answers = make(server).batch([f"What is {word}?" for word in ("rain", "snow", "hail")])
    assert len(answers) == 3 and all(answer.content for answer in answers)


def test_logprobs_and_n(server):
    answer = make(server, logprobs=True, top_logprobs=2).invoke("Say yes.")
    assert len(answer.response_metadata["logprobs"]["content"][0]["top_logprobs"]) == 2
    many = ChatOpenAI(
        model=NAME, base_url=server.url + "/v1", api_key="none", n=2, temperature=1, seed=3, max_tokens=8)
    assert len(many.generate([[HumanMessage("Say something.")]]).generations[0]) == 2


def test_a_prompt_that_is_too_long_is_known_as_such(server):
    from langchain_core.exceptions import ContextOverflowError

    with pytest.raises(ContextOverflowError):
        make(server).invoke("word " * 5000)
