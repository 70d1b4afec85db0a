"""The command `llm`, unchanged, against a real server that its extra-openai-models.yaml names."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import NAME


@pytest.fixture(scope="module")
def llm(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llm")
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: smol\n  model_name: {NAME}\n  api_base: {server.url}/v1\n"
        f"- model_id: smol-completion\n  model_name: {NAME}\n  api_base: {server.url}/v1\n  completion: true\n")

    def run(*arguments):
        result = subprocess.run(
            [str(pathlib.Path(sys.executable).with_name("llm")), *arguments],
            capture_output=True,
            text=True,
            timeout=240,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "none"})
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


OPTIONS = ("-o", "temperature", "0", "-o", "max_tokens", "16")


def test_a_prompt_streams_and_gives_the_same_at_once(llm):
    streamed = llm("-m", "smol", *OPTIONS, "What is a tide?")
    assert streamed.strip()
    assert llm("-m", "smol", "--no-stream", *OPTIONS, "What is a tide?") == streamed


def test_its_log_has_the_three_totals(llm):
    llm("-m", "smol", *OPTIONS, "-s", "Be brief.", "What is a wave?")
    entry = json.loads(llm("logs", "-n", "1", "--json"))[0]
    assert entry["input_tokens"] > 0 and 0 < entry["output_tokens"] <= 16


def test_a_conversation_goes_on(llm):
    llm("-m", "smol", *OPTIONS, "My name is Ada.")
    assert llm("-c", *OPTIONS, "What is my name?").strip()


def test_completion_models(llm):
    assert llm("-m", "smol-completion", *OPTIONS, "The sea is").strip()
