"""The registry: every artifact is described whole, and goes out of date with any module that decides it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.evidence.registry import DATA, DERIVED, GIVEN, bound, described, read_code_ahead
from rc1_lib.pool.derived import POOL
from rc1_lib.provenance import code
from rc1_lib.provenance.derived import Artifact
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState
from tests.evidence import building
from tests.forks import Forks, this_interpreter
from tests.once import copy_of
from tests.shares import share
from tests.training.tiny_world import OVERRIDES, pool_rows, write_workspace

OF_CALIBRATION = tuple(one for one in DERIVED if one.name in ("weights", "overclar_ablation"))
ALL = pytest.mark.parametrize("artifact", DERIVED, ids=lambda one: one.name)
BUILT = pytest.mark.parametrize("artifact", (*DATA, *OF_CALIBRATION), ids=lambda one: one.name)


def names(artifact: Artifact) -> set[str]:
    """The files that the artifact's fingerprint covers."""
    return {path.relative_to(code.PROJECT_ROOT).as_posix() for path in code.covered(*artifact.code_roots)}


@pytest.fixture(scope="module")
def copied_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all the source that fingerprints are taken of; whoever changes a file of it puts it back."""
    root = tmp_path_factory.mktemp("source")
    for package in code.PACKAGES:
        shutil.copytree(PROJECT_ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def source(copied_source: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Fingerprints are taken of a copy of the source; `source("rc1_lib/text/tokens.py")` changes one byte of it."""
    monkeypatch.setattr(code, "PROJECT_ROOT", copied_source)
    code.forget()
    sizes: dict[Path, int] = {}

    def change(name: str) -> None:
        path = copied_source / name
        sizes.setdefault(path, path.stat().st_size)
        with path.open("ab") as file:  # a file that is emptied and written anew waits for the disk, each time
            file.write(b"\n")
        code.forget()

    yield change
    for path, size in sizes.items():
        os.truncate(path, size)
    code.forget()


def test_every_name_is_its_own_and_leads_to_its_description() -> None:
    everything = (*DERIVED, *GIVEN)
    assert len({one.name for one in everything}) == len(everything)
    assert all(described(one.name) is one for one in everything)
    with pytest.raises(RC1Error, match="'nothing' is nothing that RC1 reads, expected one of shadow, takes, pool"):
        described("nothing")


@ALL
def test_the_builder_is_there_and_its_code_is_covered(artifact: Artifact) -> None:
    assert callable(artifact.build)
    builder = artifact.builder.rpartition(".")[0].replace(".", "/")
    assert f"{builder}.py" in names(artifact)


@BUILT
def test_what_is_made_from_other_artifacts_reads_them_where_they_lie(artifact: Artifact, built: Run) -> None:
    for one in artifact.made_from:
        if one.name in {other.name for other in DERIVED}:
            assert one.sha256(built) == described(one.name).sha256(built)


@BUILT
def test_what_was_built_is_fresh(artifact: Artifact, built: Run) -> None:
    assert artifact.state(built) is FileState.FRESH


DEEP = {
    "shadow": ("rc1_lib/pool/teacher.py", "rc1_lib/sources/embedded/stories.py", "rc1_lib/config/run_config.py"),
    "takes": ("rc1_lib/pool/takes.py", "rc1_lib/pool/teacher.py", "rc1_lib/text/tokens.py"),
    "pool": ("rc1_lib/pool/dialogue.py", "rc1_lib/difficulty/features.py", "rc1_lib/text/ngrams.py"),
    "metrics": ("rc1_lib/difficulty/lexicon.py", "rc1_lib/text/tokens.py", "rc1_lib/rows/frame.py"),
    "balanced": ("rc1_lib/difficulty/buckets.py", "rc1_lib/rows/schema.py"),
    "weights": ("rc1_lib/text/tokens.py", "rc1_lib/reward/rules.py", "rc1_lib/scoring/rubric.py", "rc1_lib/checks.py"),
    "overclar_ablation": ("rc1_lib/text/tokens.py", "rc1_lib/reward/ablation.py", "rc1_lib/gates/overclar_ablation.py"),
}


@pytest.mark.parametrize(("name", "module"), [(name, module) for name, deep in DEEP.items() for module in deep])
def test_one_byte_of_a_module_that_decides_it_puts_it_out_of_date(
    built: Run, source: Callable[[str], None], name: str, module: str
) -> None:
    artifact = described(name)
    assert isinstance(artifact, Artifact) and module in names(artifact)
    assert artifact.state(built) is FileState.FRESH
    source(module)
    assert artifact.state(built) in (FileState.STALE, FileState.MISSING)


@BUILT
def test_one_byte_of_any_other_module_changes_nothing(
    artifact: Artifact, built: Run, source: Callable[[str], None]
) -> None:
    others = sorted({path.relative_to(code.PROJECT_ROOT).as_posix() for path in code.covered()} - names(artifact))
    assert "rc1_lib/cli/app.py" in others and "flows/train.py" in others
    for module in others:
        source(module)
    assert artifact.state(built) is FileState.FRESH


@pytest.mark.parametrize("every", [100, pytest.param(1, marks=pytest.mark.long)])
@ALL
def test_one_byte_of_any_covered_file_makes_another_fingerprint(
    artifact: Artifact, every: int, source: Callable[[str], None]
) -> None:
    """Of the last file, and of every hundredth: all take the same way into the fingerprint. `long`: of every one."""
    covered = sorted(names(artifact))
    for module in {*covered[::every], covered[-1]}:
        before = artifact.code
        source(module)
        assert artifact.code != before, module


def test_code_that_was_read_ahead_is_not_read_again(built: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code.forget()
    read_code_ahead(built)

    def unreadable(*roots: str) -> list[Path]:
        raise AssertionError(f"{roots} are read again")

    monkeypatch.setattr(code, "covered", unreadable)
    assert [one.code for one in bound(built).values() if isinstance(one, Artifact)]
    code.forget()


def test_a_fault_in_code_that_is_read_ahead_is_left_to_whoever_needs_it(
    built: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(package: Path) -> None:
        raise RC1Error(f"{package}: is no source")

    code.forget()
    monkeypatch.setattr(code, "check_importable", refused)
    read_code_ahead(built)
    with pytest.raises(RC1Error, match="is no source"):
        assert POOL.code
    code.forget()


def test_a_ticket_binds_what_is_read_and_nothing_that_is_made_after_it(built: Run) -> None:
    assert list(bound(built)) == [
        "shadow", "takes", "pool", "metrics", "balanced", "weights", "judge_baseline", "config", "judge_spec",
        "templates", "reference_templates", "base",
    ]  # fmt: skip


LITTLE = (
    "pool.n=300", "judge.samples=1", "calibration.n=100", "calibration.boot=20", "gates.ablation.resamples=20",
    "gates.reward_hacking.prompts=3", "gates.reward_hacking.resamples=20", 
)  # fmt: skip
"""Every builder takes the same way through its modules, however many rows there are."""
BUILT_ALONE = ("pool", "metrics", "balanced", "weights", "reward_hacking", "overclar_ablation", "judge_baseline")
"""By builders that ask for a run and nothing else. Shadow set and takes are built with the pool."""
TRAINED_ALONE = {"reference": "warm_start", "checkpoint": "first_step", "ppo_eval": "evaluation"}
"""Artifact -> what in `building` makes it."""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Forks:
    """Where artifacts are built in processes of their own."""
    return this_interpreter(tmp_path_factory.mktemp("builders"))


@pytest.fixture(scope="module")
def first_step(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A workspace in which a run was brought to its first step, and what was loaded for that."""
    root = copy_of("tiny", partial(write_workspace, rows=pool_rows(30)), tmp_path_factory)
    return root, building.loaded(forks, "first_step", root, *_tiny("checkpoint"))


def _tiny(name: str) -> tuple[str, ...]:
    warm_start = ("training.warm_start.steps=1",) if name == "reference" else ()
    return (*OVERRIDES, *warm_start, "gates.evaluation.resamples=20")


def uncovered(artifact: Artifact, loaded: set[str]) -> set[str]:
    """What was loaded while it was built, and is not in its fingerprint: to be nothing."""
    assert f"{artifact.code_roots[0].replace('.', '/')}.py" in loaded
    return loaded - names(artifact)


def test_everything_that_is_derived_is_built_alone_by_one_of_the_tests_below() -> None:
    alone = [one for one in DERIVED if one.name in {*BUILT_ALONE, *TRAINED_ALONE}]
    assert {one.code_roots for one in alone} == {one.code_roots for one in DERIVED}
    assert building.OURS == code.PACKAGES


@pytest.mark.parametrize(
    "name", share(BUILT_ALONE, "metrics", "balanced", "weights", "reward_hacking", "judge_baseline")
)
def test_whatever_a_builder_really_imports_is_covered(fresh_copy: Callable[..., Run], forks: Forks, name: str) -> None:
    """What is imported by a name put together at run time would be seen here."""
    run, artifact = fresh_copy(*LITTLE), described(name)
    assert isinstance(artifact, Artifact)
    if name == "judge_baseline":  # it is never gone over
        artifact.path(run).unlink()
        run.workspace.checksum_path(run.config.judge.baseline.path).unlink()
    loaded = building.loaded(forks, "build", artifact.builder, run.workspace.root, *run.overrides)
    assert uncovered(artifact, loaded) == set()


@pytest.mark.parametrize("name", TRAINED_ALONE)
def test_whatever_training_really_imports_is_covered(
    first_step: tuple[Path, set[str]], forks: Forks, tmp_path: Path, name: str
) -> None:
    """Engines and strategies are imported by a name of the configuration: without these roots all three are red."""
    artifact, (trained, loaded) = described(name), first_step
    assert isinstance(artifact, Artifact)
    if name != "checkpoint":
        root = shutil.copytree(trained, tmp_path / "workspace", symlinks=True)
        loaded = building.loaded(forks, TRAINED_ALONE[name], root, *_tiny(name))
    assert uncovered(artifact, loaded) == set()
    named = {root.replace(".", "/") for root in artifact.reached_by_name}
    assert all(any(one.startswith(f"{root}/") for one in loaded) for root in named)
