"""schemathesis: requests made from our published OpenAPI document, right ones and wrong ones.

None may be answered by 5xx, none may hang, and what is answered must be what the document says. Many
ask for 128 choices, so the model is the smallest there is and its context short.
"""

import os
import pathlib
import subprocess
import sys

import pytest
from quire_server import MODEL, QuireServer

EXAMPLES = os.environ.get("QUIRE_SCHEMATHESIS_EXAMPLES", "10")
DATA = pathlib.Path(os.environ.get("QUIRE_SHARED_DATA") or pathlib.Path(__file__).parents[3] / "shared/data")
STORIES = DATA / "models/stories260K/stories260K-f32.gguf"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


@pytest.fixture
def small_server(quire, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text(TEMPLATE)
    model, length = (STORIES, 64) if STORIES.exists() else (MODEL, 32)
    with QuireServer(quire, "--kv-memory", "64MiB", "--page-size", 16, "--max-model-len", length,
                     "--chat-template", template, "--log-level", "error", model=model) as running:
        yield running


def test_no_request_of_the_document_breaks_the_server(small_server, tmp_path):
    document = small_server.json("GET", "/openapi.json")
    assert document["openapi"].startswith("3.") and "/v1/completions" in document["paths"]
    result = subprocess.run(
        [
            str(pathlib.Path(sys.executable).with_name("schemathesis")), "run",
            small_server.url + "/openapi.json", "--checks",
            "not_a_server_error,response_schema_conformance,content_type_conformance", "--max-examples",
            EXAMPLES, "--phases", "fuzzing", "--seed", "1", "--request-timeout", "60", "--exclude-path",
            "/quire/v1/events", "--no-color", "--generation-database", "none"
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    # It still answers.
    model = small_server.json("GET", "/v1/models")["data"][0]["id"]
    assert small_server.json("POST", "/v1/completions", {"model": model, "prompt": "a", "max_tokens": 2})["choices"]
