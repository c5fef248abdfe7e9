"""The list of artifacts: each is fully described, and becomes stale with any change of the code."""

from __future__ import annotations

import pytest

from rc1_lib.calibration import keyed_report
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import DERIVED, described
from rc1_lib.provenance import derived
from rc1_lib.provenance.derived import Artifact
from rc1_lib.run import Run
from rc1_lib.vouched import DATA, GIVEN, VOUCHED, bound
from rc1_lib.workspace.artifacts import FileState

OF_CALIBRATION = tuple(one for one in DERIVED if one.name in ("weights", "overclar_ablation"))
ALL = pytest.mark.parametrize("artifact", DERIVED, ids=lambda one: one.name)
BUILT = pytest.mark.parametrize("artifact", (*DATA, *OF_CALIBRATION), ids=lambda one: one.name)


def test_artifact_names_are_unique_and_described() -> None:
    everything = (*DERIVED, *GIVEN)
    assert len({one.name for one in everything}) == len(everything)
    assert all(described(one.name) is one for one in everything)
    assert {one.name for one in everything if one.vouched} == VOUCHED.keys()
    with pytest.raises(RC1Error, match=r"'nothing'.* shadow, takes, pool"):
        described("nothing")


@ALL
def test_builder_can_be_imported(artifact: Artifact) -> None:
    assert callable(artifact.build)


@BUILT
def test_inputs_of_an_artifact_have_the_described_paths(artifact: Artifact, built: Run) -> None:
    for one in artifact.made_from:
        if one.name in {other.name for other in DERIVED}:
            assert one.sha256(built) == described(one.name).sha256(built)


@BUILT
def test_built_artifact_is_fresh(artifact: Artifact, built: Run) -> None:
    assert artifact.state(built) is FileState.FRESH


@BUILT
def test_changed_code_makes_an_artifact_stale(artifact: Artifact, built: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (derived, keyed_report):
        monkeypatch.setattr(module, "code_sha256", lambda *_: "other code")
    assert artifact.state(built) in (FileState.STALE, FileState.MISSING)


def test_ticket_pins_exactly_the_files_that_training_reads(built: Run) -> None:
    assert list(bound(built)) == [
        "shadow", "takes", "pool", "metrics", "balanced", "weights", "judge_baseline", "config", "judge_spec",
        "templates", "reference_templates", "base",
    ]  # fmt: skip
