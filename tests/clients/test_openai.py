"""openai-python, unchanged, against a real server."""

import math

import openai
import pytest
from conftest import KEY, NAME


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)


CHAT = [{"role": "user", "content": "Name three colours."}]


def check_usage(usage):
    assert usage.prompt_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 <= usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens


def test_chat_gives_the_same_text_at_once_and_as_a_stream(client):
    whole = client.chat.completions.create(model=NAME, messages=CHAT, temperature=0, max_tokens=24)
    assert whole.object == "chat.completion" and whole.model == NAME
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    check_usage(whole.usage)
    assert whole.usage.completion_tokens <= 24

    chunks = list(
        client.chat.completions.create(
            model=NAME,
            messages=CHAT,
            temperature=0,
            max_tokens=24,
            stream=True,
            stream_options={"include_usage": True}))
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(delta or "" for delta in deltas) == choice.message.content
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert finishes[-1] == choice.finish_reason and not any(finishes[:-1])
    assert not chunks[-1].choices
    check_usage(chunks[-1].usage)
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_completions_plain_and_stream(client):
    ask = dict(model=NAME, prompt="The sea is", temperature=0, max_tokens=16)
    whole = client.completions.create(**ask)
    assert whole.object == "text_completion" and whole.choices[0].text
    assert whole.usage.completion_tokens == 16 and whole.choices[0].finish_reason == "length"
    text = "".join(chunk.choices[0].text for chunk in client.completions.create(**ask, stream=True))
    assert text == whole.choices[0].text


def test_a_repeated_prompt_is_read_from_the_cache(client):
    prompt = "one two three four five six seven eight nine ten " * 20
    ask = dict(model=NAME, prompt=prompt, temperature=0, max_tokens=4)
    first = client.completions.create(**ask)
    second = client.completions.create(**ask)
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert second.usage.prompt_tokens_details.cached_tokens >= 64
    assert first.choices[0].text == second.choices[0].text


def test_n_choices_share_the_prompt_and_differ(client):
    answer = client.chat.completions.create(
        model=NAME, messages=CHAT, n=3, temperature=1.0, seed=7, max_tokens=12)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert answer.usage.completion_tokens <= 36

    texts = ["", "", ""]
    for chunk in client.chat.completions.create(
            model=NAME, messages=CHAT, n=3, temperature=1.0, seed=7, max_tokens=12, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == [choice.message.content for choice in answer.choices]


def test_chat_logprobs(client):
    answer = client.chat.completions.create(
        model=NAME, messages=CHAT, temperature=0, max_tokens=8, logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for entry in content:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob <= 0 and entry.logprob == entry.top_logprobs[0].logprob  # greedy
        assert sum(math.exp(top.logprob) for top in entry.top_logprobs) <= 1 + 1e-4
    text = b"".join(bytes(entry.bytes) for entry in content).decode(errors="replace")
    assert text.startswith(answer.choices[0].message.content)


def test_completions_logprobs_and_echo(client):
    answer = client.completions.create(
        model=NAME, prompt="The sea is", temperature=0, max_tokens=4, logprobs=2, echo=True)
    choice = answer.choices[0]
    logprobs = choice.logprobs
    assert choice.text.startswith("The sea is") and "".join(logprobs.tokens) == choice.text
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert len(logprobs.tokens) == answer.usage.total_tokens
    assert len(logprobs.text_offset) == len(logprobs.tokens) == len(logprobs.top_logprobs)


def test_seed_and_stop(client):
    ask = dict(model=NAME, messages=CHAT, temperature=1.0, seed=11, max_tokens=24)
    first, second = (client.chat.completions.create(**ask) for _ in range(2))
    text = first.choices[0].message.content
    assert text == second.choices[0].message.content
    stop = text[len(text) // 2:len(text) // 2 + 4]
    cut = client.chat.completions.create(**ask, stop=[stop])
    assert cut.choices[0].message.content == text[:text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_models_with_a_slash(client):
    assert NAME in [model.id for model in client.models.list()]
    model = client.models.retrieve(NAME)
    assert model.id == NAME and model.object == "model" and model.owned_by


def test_errors_have_their_types_and_codes(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=NAME, prompt="word " * 5000)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 2048 tokens" in caught.value.message

    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=NAME, messages=CHAT, temperature=9)
    assert caught.value.param == "temperature" and caught.value.type == "invalid_request_error"

    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no/such", messages=CHAT)
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such")


def test_what_comes_later_is_refused_and_not_dropped(client):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    for extra in ({"tools": [tool]}, {"response_format": {"type": "json_object"}}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model=NAME, messages=CHAT, **extra)
        assert caught.value.param in extra


def test_a_key_is_wanted_where_there_is_one(keyed_server):
    ask = dict(model=NAME, messages=CHAT, max_tokens=2)
    with pytest.raises(openai.AuthenticationError) as caught:
        openai.OpenAI(
            base_url=keyed_server.url + "/v1", api_key="wrong",
            max_retries=0).chat.completions.create(**ask)
    assert caught.value.code == "invalid_api_key"
    right = openai.OpenAI(base_url=keyed_server.url + "/v1", api_key=KEY, max_retries=0)
    assert right.chat.completions.create(**ask).choices


def test_a_closed_stream_is_no_harm(client, server):
    stream = client.completions.create(model=NAME, prompt="Once", max_tokens=1500, stream=True)
    next(iter(stream))
    stream.close()
    assert client.completions.create(model=NAME, prompt="Once", max_tokens=2).choices
    assert server.json("GET", "/quire/v1/requests").get("requests", []) == []


def test_async_client_many_at_once(server):
    import asyncio

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none") as client:

            async def ask(i):
                stream = await client.completions.create(
                    model=NAME, prompt=f"Number {i} is", temperature=0, max_tokens=12, stream=True)
                return "".join([chunk.choices[0].text async for chunk in stream])

            alone = [await ask(i) for i in range(8)]
            return alone, await asyncio.gather(*map(ask, range(8)))

    alone, together = asyncio.run(ask_all())
    assert alone == together
