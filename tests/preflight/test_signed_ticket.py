"""With a signing key, write access to the workspace is not enough to issue or revive a ticket."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.preconditions import check_can_issue
from rc1_lib.preflight.ticket import TICKET, revoke_ticket, verify_ticket
from rc1_lib.preflight.ticket_key import REVOKED, check_can_sign
from rc1_lib.provenance.signatures import key_id, read_public
from rc1_lib.run import TICKET_KEY, Run, open_run
from rc1_lib.workspace.artifacts import read_json

_A_SECOND = 1.1
"""Tickets record whole seconds."""


def error_of(run: Run) -> str:
    with pytest.raises(TicketError) as caught:
        verify_ticket(run)
    return str(caught.value)


def revocation_list(key: Path) -> Path:
    public = read_public(key.with_suffix(".pub"), TICKET_KEY)
    assert public is not None
    return key.with_name(f"{key_id(public)[:16]}.revoked.jsonl")


def test_signed_ticket_is_valid_with_private_or_public_key(
    passed: Run, signing_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue_ticket(passed)
    assert verify_ticket(passed)["envelope"]["signatures"]
    monkeypatch.setenv(TICKET_KEY, str(signing_key.with_suffix(".pub")))
    assert verify_ticket(passed)
    with pytest.raises(ConfigError, match=r"^RC1_TICKET_KEY: .*public"):
        check_can_issue(passed)
    monkeypatch.delenv(TICKET_KEY)
    assert verify_ticket(passed), "without a key no signature is required"
    assert str(signing_key) not in passed.workspace.path(TICKET).read_text()


def test_ticket_without_signature_or_with_another_key_is_invalid(
    ticketed: Run, signing_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "it is not signed, but RC1_TICKET_KEY requires a signature" in error_of(ticketed)
    issue_ticket(ticketed)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = signing_key.with_name("other.pem")
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    other.write_bytes(Ed25519PrivateKey.generate().private_bytes(*form))
    monkeypatch.setenv(TICKET_KEY, str(other))
    assert "its signature is not valid for RC1_TICKET_KEY" in error_of(ticketed)


def test_unusable_key_is_rejected_without_repeating_its_path(
    ticketed: Run, signing_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = ticketed.workspace.path("keys/hidden.pem")
    inside.parent.mkdir()
    inside.write_bytes(signing_key.read_bytes())
    linked = signing_key.with_name("linked.pem")
    linked.symlink_to(inside)
    signing_key.with_name("words.pem").write_text("words")
    for path, error in (
        (inside, "is in the workspace"),
        (linked, "is in the workspace"),
        (signing_key.with_name("words.pem"), "is not a private key in PEM"),
        (signing_key.with_name("none.pem"), "cannot be read"),
        (Path("~nobody-here/none.pem"), "begins with ~ and the name of nobody"),
    ):
        monkeypatch.setenv(TICKET_KEY, str(path))
        for act in (issue_ticket, verify_ticket, check_can_issue):
            with pytest.raises(RC1Error, match=f"RC1_TICKET_KEY: {error}") as caught:
                act(ticketed)
            assert str(path) not in str(caught.value)


def test_empty_key_is_an_error_and_not_an_unsigned_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TICKET_KEY, "")
    with pytest.raises(ConfigError, match=r"^RC1_TICKET_KEY: is set but empty; .*unset it"):
        check_can_sign(open_run(profile="local", workspace=tmp_path))


def test_revoked_ticket_stays_revoked_after_it_is_deleted_and_restored(passed: Run, signing_key: Path) -> None:
    place = passed.workspace.path(TICKET)
    issue_ticket(passed)
    issued = place.read_bytes()
    assert revoke_ticket(passed, "the pool was found to leak")
    place.unlink()
    place.write_bytes(issued)
    assert "it was revoked for good at" in (error := error_of(passed)) and "the pool was found to leak" in error
    time.sleep(_A_SECOND)
    issue_ticket(passed)
    assert verify_ticket(passed), "a ticket issued later is valid"


def test_revocation_with_the_private_key_reaches_whoever_trains_with_the_public_one(
    passed: Run, signing_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = passed.workspace.path(TICKET)
    issue_ticket(passed)
    issued = place.read_bytes()
    revoke_ticket(passed, "the pool was found to leak")
    place.write_bytes(issued)
    passed.workspace.path(REVOKED).unlink()
    monkeypatch.setenv(TICKET_KEY, str(signing_key.with_suffix(".pub")))
    assert "it was revoked for good at" in error_of(passed)


def test_unreadable_revocation_list_is_an_error(passed: Run, signing_key: Path) -> None:
    issue_ticket(passed)
    revocation_list(signing_key).write_text('{"time": "2026')
    with pytest.raises(RC1Error, match=r"revoked tickets .*RC1_TICKET_KEY"):
        verify_ticket(passed)
    revocation_list(signing_key).unlink()
    revocation_list(signing_key).mkdir()
    with pytest.raises(TicketError, match=r"\(Is a directory\)"):
        revoke_ticket(passed, "a failed nightly run")
    assert read_json(passed.workspace.path(TICKET))["revoked"]["reason"] == "a failed nightly run", (
        "the note in the ticket is still written"
    )


def test_revocation_after_a_torn_line_is_a_line_of_its_own(ticketed: Run) -> None:
    issue_ticket(ticketed)
    torn = ticketed.workspace.path(REVOKED)
    torn.write_bytes(b'{"time": "2026-11-')
    revoke_ticket(ticketed, "drift")
    assert [line[:9] for line in torn.read_bytes().splitlines()] == [b'{"time": ', b'{"time":"']
    assert torn.read_bytes().endswith(b"\n")
