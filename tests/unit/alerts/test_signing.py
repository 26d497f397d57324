"""Signatures are those of the public specification, and every secret of a rotation is enough."""

from datetime import UTC, datetime, timedelta

from app.alerts.signing import key_of, signed_headers, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_specifications_own_example_is_met() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = signed_headers([SECRET], message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=at, body='{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_during_a_rotation_either_secret_verifies() -> None:
    headers = signed_headers([SECRET, "a plain one"], message_id="m", at=datetime.now(UTC), body="{}")
    assert verify(SECRET, headers=headers, body="{}")
    assert verify("a plain one", headers=headers, body="{}")
    assert not verify("another", headers=headers, body="{}")
    assert not verify(SECRET, headers=headers, body="{ }")


def test_an_old_message_is_refused() -> None:
    headers = signed_headers([SECRET], message_id="m", at=datetime.now(UTC) - timedelta(minutes=6), body="{}")
    assert not verify(SECRET, headers=headers, body="{}")


def test_a_secret_that_is_no_base64_is_used_as_it_is() -> None:
    assert key_of("whsec_not base64!") == b"whsec_not base64!"
