"""The release as a flow: a passed run is packed and verified, a failed one is rejected after its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import State
from prefect.artifacts import Artifact

from flows.release import release
from rc1_lib.provenance.signatures import read_public
from rc1_lib.release import verifier
from rc1_lib.run import Run
from tests.release.conftest import own, releasable
from tests.release.test_commands import keys

__all__ = ["own", "releasable"]


def start(run: Run, **parameters: Any) -> State[Any]:
    state: State[Any] = release(
        overrides=list(run.overrides), workspace=str(run.workspace.root), **parameters, return_state=True
    )
    return state


def test_passed_run_is_released_and_a_failed_one_is_rejected_after_its_report(own: Run, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    state = start(own, sign=private)
    assert (state.name, state.is_completed()) == ("Released", True), state.message
    (archive,) = own.workspace.path("reports/release").glob("*.tar")
    found = verifier.verify(archive, read_public(Path(public), "the key"))
    assert not found.problems and found.signature_checked
    assert found.sha256 in str(state.message)
    card = Artifact.get("rc1-release")
    assert card is not None and found.sha256 in str(card.data)

    archive.unlink()
    page = own.workspace.path("reports/release/report.html")
    page.unlink()
    pool = own.workspace.path(own.config.pool.path)
    pool.write_bytes(pool.read_bytes().replace(b"a", b"b", 1))
    state = start(own, sign=private)
    assert state.name == "Refused" and state.is_failed()
    assert own.config.pool.path in str(state.message)
    assert page.is_file() and not archive.exists()


def test_missing_signing_key_is_rejected_before_anything_is_written(own: Run, tmp_path: Path) -> None:
    state = start(own, sign=str(tmp_path / "nothing.pem"))
    assert state.name == "Refused" and "nothing.pem" in str(state.message)
    assert not own.workspace.path("reports/release").exists()
