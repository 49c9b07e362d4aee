"""An agent may import boto3 when the session is open already: `tracefork record` runs it so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

from .conftest import exchanges

LATE = """
import sys
import tracefork_core as tracefork
with tracefork.record(sys.argv[1]):
    assert "botocore" not in sys.modules
    {imports}
    client = boto3.client(
        "bedrock-runtime", "us-east-1", endpoint_url=sys.argv[2],
        aws_access_key_id="a", aws_secret_access_key="b",
    )
    client.converse(modelId="m.x", messages=[{{"role": "user", "content": [{{"text": "Hi"}}]}}])
"""


@pytest.mark.parametrize("imports", ["import boto3", "import botocore.client, boto3"])
def test_a_client_that_is_imported_late_is_recorded(
    imports: str, server: ProviderServer, tape: Path
) -> None:
    """The modules of botocore import one another, so most are incomplete when the first is done."""
    code = LATE.format(imports=imports)
    ended = subprocess.run(
        [sys.executable, "-c", code, tape, server.url],
        env=os.environ | {"AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len(exchanges(tape)) == 1
