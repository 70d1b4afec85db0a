"""lm-eval's local-completions, unchanged: local tasks on local data, the server's own tokenizer.

Its scores come from echo with logprobs over lists of ids. Each is compared with one that we add up by
decoding the same tokens one by one, where each is the only one allowed: the two ways must agree, or the
log-probabilities stand beside the wrong tokens.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import NAME

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def samples(server, tmp_path_factory):
    """Task name -> its logged samples."""
    folder = tmp_path_factory.mktemp("lm_eval")
    result = subprocess.run(
        [
            sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args",
            f"model={NAME},base_url={server.url}/v1/completions,num_concurrent=2,max_length=2048",
            "--tasks", "quire_choices,quire_generate", "--include_path",
            str(HERE / "lm_eval_tasks"), "--output_path", str(folder), "--log_samples"
        ],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=400,
        env={
            **os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf"),
            "OPENAI_API_KEY": "none"
        })
    assert result.returncode == 0, result.stderr[-4000:]
    assert "Using remote tokenizer" in result.stderr + result.stdout
    found = {}
    for task in ("quire_choices", "quire_generate"):
        [path] = folder.rglob(f"samples_{task}_*.jsonl")
        found[task] = [json.loads(line) for line in path.read_text().splitlines()]
    return found


def tokens_of(server, text):
    return server.json("POST", "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]


def score(server, context, continuation):
    """Sum of the log-probabilities of the continuation's tokens, and whether each was the likeliest."""
    whole = tokens_of(server, context + continuation)
    begin = len(tokens_of(server, context))
    total, is_greedy = 0.0, True
    for i in range(begin, len(whole)):
        answer = server.json(
            "POST", "/v1/completions", {
                "model": NAME,
                "prompt": whole[:i],
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": 1,
                "allowed_token_ids": [whole[i]],
                "ignore_eos": True
            })
        logprobs = answer["choices"][0]["logprobs"]
        total += logprobs["token_logprobs"][0]
        is_greedy = is_greedy and logprobs["token_logprobs"][0] == max(logprobs["top_logprobs"][0].values())
    return total, is_greedy


def test_scores_stand_beside_the_right_tokens(server, samples):
    checked = 0
    for sample in samples["quire_choices"]:
        arguments = sample["arguments"]
        for i, [[logprob, is_greedy]] in enumerate(sample["resps"]):
            pair = arguments[f"gen_args_{i}"]
            expected, expected_greedy = score(server, pair["arg_0"], pair["arg_1"])
            # The same bits by either way; sums may be rounded in another order.
            assert float(logprob) == pytest.approx(expected, rel=1e-9), pair
            assert str(is_greedy) == str(expected_greedy), pair
            checked += 1
    assert checked == 9


def test_it_prefers_what_is_true(samples):
    # Chance would be under half.
    assert sum(sample["acc"] for sample in samples["quire_choices"]) >= 3


def test_generations_are_the_server_s_own(server, samples):
    for sample in samples["quire_generate"]:
        answer = server.json(
            "POST", "/v1/completions", {
                "model": NAME,
                "prompt": tokens_of(server, sample["doc"]["prompt"]),
                "max_tokens": 8,
                "temperature": 0,
                "stop": ["\n"]
            })
        assert sample["resps"][0][0] == answer["choices"][0]["text"]
