"""guidellm, unchanged: a small benchmark of prompts from a local file.

In a virtual environment of its own: its newest release without PyTorch wants an older click than other
clients do.
"""

import json
import os
import pathlib
import subprocess
import sys

from conftest import NAME

NUM_REQUESTS = 12


def test_a_benchmark_of_a_local_file_has_no_errors(server, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(
        json.dumps({"prompt": f"Write a line about the number {i}.", "output_tokens_count": 16}) + "\n"
        for i in range(NUM_REQUESTS)))
    output = tmp_path / "benchmarks.json"
    result = subprocess.run(
        [
            str(pathlib.Path(sys.executable).with_name("guidellm")), "benchmark", "--target", server.url,
            "--model", NAME, "--rate-type", "concurrent", "--rate", "4", "--max-requests", str(NUM_REQUESTS),
            "--data", str(prompts), "--output-path", str(output), "--disable-progress"
        ],
        capture_output=True,
        text=True,
        timeout=400,
        env={
            **os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"),
            "GUIDELLM__MAX_WORKER_PROCESSES": "2"
        })
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    [benchmark] = json.loads(output.read_text())["benchmarks"]
    requests = benchmark["requests"]
    assert not requests["errored"], requests["errored"][:1]
    assert len(requests["successful"]) == NUM_REQUESTS
    for request in requests["successful"]:
        assert request["output_tokens"] == 16 and request["output"], request
        assert request["first_token_time"] < request["last_token_time"]
