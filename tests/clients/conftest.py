"""What the tests of real clients share: one server for a file, and another that wants a key.

Run by ctest (label clients), or by hand, once ./test.sh has built the program:

    $(tools/install_clients.sh --path main)/bin/python -m pytest tests/clients/test_openai.py \\
        --quire build/release/quire
"""

import pytest
from quire_server import QuireServer

NAME = "org/smol"  # with a slash: clients encode it in paths
KEY = "sk-the-key-of-the-tests"


def pytest_addoption(parser):
    parser.addoption("--quire", required=True, help="the program")


@pytest.fixture(scope="session")
def quire(request):
    return request.config.getoption("--quire")


@pytest.fixture(scope="session")
def server(quire):
    with QuireServer(quire, "--served-model-name", NAME, "--kv-memory", "256MiB", "--max-model-len",
                     2048) as running:
        yield running


@pytest.fixture(scope="session")
def keyed_server(quire):
    with QuireServer(
            quire, "--served-model-name", NAME, "--kv-memory", "64MiB", env={"QUIRE_API_KEY": KEY}) as running:
        yield running
