"""schemathesis: requests made from our published OpenAPI document, right ones and wrong ones.

None may be answered by 5xx, none may hang, and what is answered must be what the document says.
"""

import os
import pathlib
import subprocess
import sys

EXAMPLES = os.environ.get("QUIRE_SCHEMATHESIS_EXAMPLES", "12")


def test_no_request_of_the_document_breaks_the_server(server, tmp_path):
    document = server.json("GET", "/openapi.json")
    assert document["openapi"].startswith("3.") and "/v1/completions" in document["paths"]
    result = subprocess.run(
        [
            str(pathlib.Path(sys.executable).with_name("schemathesis")), "run", server.url + "/openapi.json",
            "--checks", "not_a_server_error,response_schema_conformance,content_type_conformance",
            "--max-examples", EXAMPLES, "--phases", "examples,coverage,fuzzing", "--seed", "1",
            "--request-timeout", "60", "--exclude-path", "/quire/v1/events", "--no-color",
            "--generation-database", "none"
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    # It still answers.
    assert server.json("POST", "/v1/completions", {"model": "org/smol", "prompt": "a", "max_tokens": 2})["choices"]
