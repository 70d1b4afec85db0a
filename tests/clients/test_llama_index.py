"""LlamaIndex's OpenAILike, unchanged, against a real server."""

import pytest
from conftest import NAME
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike


def make(server, is_chat_model):
    return OpenAILike(
        model=NAME,
        api_base=server.url + "/v1",
        api_key="none",
        is_chat_model=is_chat_model,
        context_window=2048,
        temperature=0,
        max_tokens=16,
        max_retries=0)


@pytest.mark.parametrize("is_chat_model", [False, True])
def test_complete_plain_and_stream(server, is_chat_model):
    llm = make(server, is_chat_model)
    whole = llm.complete("The sea is")
    assert whole.text
    pieces = list(llm.stream_complete("The sea is"))
    assert pieces[-1].text == whole.text
    assert "".join(piece.delta or "" for piece in pieces) == whole.text


def test_chat_plain_and_stream(server):
    llm = make(server, True)
    messages = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Hello?")]
    whole = llm.chat(messages)
    assert whole.message.content
    usage = whole.raw.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    pieces = list(llm.stream_chat(messages))
    assert pieces[-1].message.content == whole.message.content
