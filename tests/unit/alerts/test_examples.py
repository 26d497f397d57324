"""The examples of docs/alerts.md verify what we sign, and refuse what we did not."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.alerts.signing import signed_headers

PAGE = (Path(__file__).parents[3] / "docs" / "alerts.md").read_text(encoding="utf-8")
NEW, OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a plain secret, 32 bytes of words"
BODY = '{"type":"incident.opened","data":{"summary":"Grüße"}}'
Verify = Callable[[str, dict[str, str], bytes], bool]


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def in_python() -> Verify:
    names: dict[str, Any] = {}
    exec(example("python"), names)
    verify: Verify = names["verify"]
    return verify


def in_javascript() -> Verify:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    code = example("javascript") + "const [s, h, b] = JSON.parse(process.argv[1]); console.log(verify(s, h, b));"

    def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
        done = subprocess.run(
            [node, "-e", code, json.dumps([secret, headers, body.decode()])], capture_output=True, text=True, check=True
        )
        return done.stdout.strip() == "true"

    return verify


@pytest.mark.parametrize("language", [in_python, in_javascript], ids=["python", "javascript"])
def test_an_example_takes_either_secret_while_it_is_rotated_and_nothing_forged_or_stale(language: Callable[[], Verify]) -> None:
    verify, now = language(), datetime.now(UTC)
    headers = signed_headers([NEW, OLD], message_id="msg_1", at=now, body=BODY)
    assert verify(NEW, headers, BODY.encode())
    assert verify(OLD, headers, BODY.encode())
    assert not verify("whsec_" + "A" * 32, headers, BODY.encode())
    assert not verify(NEW, headers, BODY.replace("opened", "resolved").encode())
    assert not verify(NEW, {**headers, "webhook-id": "msg_2"}, BODY.encode())
    stale = signed_headers([NEW], message_id="msg_1", at=now - timedelta(minutes=6), body=BODY)
    assert not verify(NEW, stale, BODY.encode())


def test_a_shell_comes_to_the_same_signature() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine")
    headers = signed_headers([NEW], message_id="msg_1", at=datetime.now(UTC), body=BODY)
    variables = {"secret": NEW, "id": "msg_1", "timestamp": headers["webhook-timestamp"], "body": BODY}
    done = subprocess.run(
        ["sh", "-c", example("sh")], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **variables}
    )
    assert f"v1,{done.stdout.strip()}" == headers["webhook-signature"]
