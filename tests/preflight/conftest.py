"""Workspaces whose rounds passed, and workspaces with a ticket."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.run import TICKET_KEY, Run, open_run
from tests.conftest import Verdicts, copied_pool
from tests.once import copied


@pytest.fixture(scope="session")
def both_passed(built: Run, verdicts: Verdicts, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace whose two rounds passed. Read-only: to write, take `passed`."""
    root = copied_pool(built, tmp_path_factory.mktemp("both_passed") / "workspace")
    run = open_run(profile="local", workspace=root, overrides=built.overrides)
    for number, found in verdicts.items():
        write_round(run, number, found)
    return run


@pytest.fixture(scope="session")
def issued(both_passed: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with a valid ticket. Read-only: to write, take `ticketed`."""
    run = copied(both_passed, tmp_path_factory.mktemp("issued") / "workspace")
    issue_ticket(run)
    return run


@pytest.fixture
def passed(both_passed: Run, tmp_path: Path) -> Run:
    """A copy of a workspace whose two rounds passed, without a ticket."""
    return copied(both_passed, tmp_path / "workspace")


@pytest.fixture
def ticketed(issued: Run, tmp_path: Path) -> Run:
    """A copy of a workspace with a valid ticket."""
    return copied(issued, tmp_path / "workspace")


@pytest.fixture
def signing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private key outside the workspace that tickets must be signed with."""
    path = tmp_path / "keys of the issuer" / "ticket.pem"
    path.parent.mkdir()
    private = Ed25519PrivateKey.generate()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
    monkeypatch.setenv(TICKET_KEY, str(path))
    return path
