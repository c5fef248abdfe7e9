"""The warm start trains once from its inputs, and again if these or its files differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from rc1_lib.errors import ConfigError
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.training import warm_start
from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.models import base_name, model_section
from rc1_lib.training.rows import select_rows
from rc1_lib.training.run_paths import SFT_UNFINISHED
from rc1_lib.training.warm_start import RECORD, Reference, reference_of
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.tiny_world import tiny_run

Tiny = Callable[..., Run]
Inputs = tuple[ChatFormat, list[MeasuredRow]]
FEW = ("training.warm_start.steps=3", "training.warm_start.batch_size=2", "training.warm_start.lr=0.005")


@pytest.fixture(scope="module")
def inputs(tiny_workspace: Path) -> Inputs:
    """The chat format and the training rows."""
    run = tiny_run(tiny_workspace)
    form = ChatFormat(load_tokenizer(model_section(run.config, base_name(run.config, run.workspace))))
    return form, list(select_rows(run, form).train)


@pytest.fixture(scope="module")
def warm(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory, inputs: Inputs) -> tuple[Path, Reference]:
    """A workspace with a warm start, and its reference. Never write into it: use `made`."""
    root = tmp_path_factory.mktemp("warm") / "workspace"
    shutil.copytree(tiny_workspace, root)
    torch.set_num_threads(1)
    return root, reference(tiny_run(root, *FEW), inputs)


@pytest.fixture
def made(warm: tuple[Path, Reference], tmp_path: Path) -> Run:
    """A run in a copy of that workspace."""
    shutil.copytree(warm[0], tmp_path / "made")
    return tiny_run(tmp_path / "made", *FEW)


def reference(run: Run, inputs: Inputs) -> Reference:
    form, rows = inputs
    return reference_of(run, rows, form)


def folder_of(run: Run) -> Path:
    return REFERENCE.path(run)


def record_inode(run: Run) -> int:
    return (folder_of(run) / RECORD).stat().st_ino


def test_saved_warm_start_has_a_lower_loss_on_assistant_turns(tiny: Tiny, inputs: Inputs) -> None:
    run = tiny("training.warm_start.steps=8", "training.warm_start.batch_size=4", "training.warm_start.lr=0.005")
    form, rows = inputs[0], inputs[1][:4]

    @torch.no_grad()
    def loss(folder: str) -> float:
        model = AutoModelForCausalLM.from_pretrained(folder)
        total = 0.0
        for row in rows:
            ids, own = form.dialogue_ids(row["messages"])
            labels = [token if mine else -100 for token, mine in zip(ids, own, strict=True)]
            total += float(model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss)
        return total / len(rows)

    found = reference(run, (form, rows))
    curve = read_json(folder_of(run) / RECORD)["loss"]
    assert len(curve) == 8 and sum(curve[-3:]) < sum(curve[:3])
    assert loss(found.base) < loss(str(run.workspace.path("base"))) - 0.1


@pytest.mark.parametrize("change", ["training.warm_start.lr=0.004", "seeds=[7,8,9]"])
def test_changed_setting_repeats_the_warm_start(
    made: Run, warm: tuple[Path, Reference], inputs: Inputs, change: str
) -> None:
    before = record_inode(made)
    assert reference(tiny_run(made.workspace.root, *FEW, change), inputs).sha256 != warm[1].sha256
    assert record_inode(made) != before


def test_changed_rows_or_base_repeat_the_warm_start(made: Run, warm: tuple[Path, Reference], inputs: Inputs) -> None:
    form, rows = inputs
    fewer = reference(made, (form, rows[1:])).sha256
    settings = made.workspace.path("base") / "generation_config.json"
    settings.write_text(settings.read_text() + "\n")
    assert len({warm[1].sha256, fewer, reference(made, inputs).sha256}) == 3


def test_base_that_differs_from_its_record_is_rejected(made: Run, inputs: Inputs) -> None:
    base = made.workspace.path("base")
    files = {path.name: sha256_file(path) for path in base.iterdir()}
    (base / "base.json").write_text(json.dumps({"files": files}))
    reference(made, inputs)
    settings = base / "generation_config.json"
    settings.write_text(settings.read_text() + "\n")
    with pytest.raises(ConfigError, match=r"generation_config\.json: .*SHA-256 .*base\.json"):
        reference(made, inputs)
    settings.unlink()
    with pytest.raises(ConfigError, match=r"generation_config\.json: .*base\.json"):
        reference(made, inputs)
    (base / "base.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"base\.json: .*restore the folder"):
        reference(made, inputs)


def test_stopped_warm_start_goes_on_to_the_same_bytes(
    tiny: Tiny, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = (*FEW, "training.warm_start.micro_tokens=300")
    whole = reference(tiny(*few), inputs).sha256
    learned = list[int]()
    monkeypatch.setattr(warm_start, "SAVED_EVERY_S", 0.0)

    def stopped(stage: str, done: int, total: int, note: str = "") -> None:
        learned.append(done)
        if learned == [1, 2]:
            raise KeyboardInterrupt

    monkeypatch.setattr(warm_start, "report_progress", stopped)
    run = tiny(*few, name="stopped")
    with pytest.raises(KeyboardInterrupt):
        reference(run, inputs)
    assert not folder_of(run).exists()
    assert reference(run, inputs).sha256 == whole
    assert learned == [1, 2, 1, 2, 3]  # from the checkpoint of step 1
    left = run.workspace.path(SFT_UNFINISHED)
    assert not left.exists()
    left.mkdir()  # as after a kill between the last file and the clean-up
    assert reference(run, inputs).sha256 == whole and not left.exists()


@pytest.mark.parametrize("change", ["settings", "bytes"])
def test_unfinished_warm_start_counts_only_as_it_was_written(
    tiny: Tiny, inputs: Inputs, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(warm_start, "SAVED_EVERY_S", 0.0)
    monkeypatch.setattr(warm_start, "_forget", lambda run: None)
    run = tiny(*FEW)
    whole = reference(run, inputs).sha256
    shutil.rmtree(folder_of(run))
    weights = run.workspace.path(SFT_UNFINISHED) / "latest" / "model.safetensors"
    if change == "settings":
        other = ("training.warm_start.lr=0.004",)
        found = reference(tiny_run(run.workspace.root, *FEW, *other), inputs)
        assert found.sha256 == reference(tiny(*FEW, *other, name="other"), inputs).sha256
    else:
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        with pytest.raises(CheckpointError, match=rf"model\.safetensors.*remove \S*{SFT_UNFINISHED}"):
            reference(run, inputs)
        shutil.rmtree(run.workspace.path(SFT_UNFINISHED))
        assert reference(run, inputs).sha256 == whole


@pytest.mark.parametrize("damage", ["altered", "foreign", "broken record"])
def test_damaged_warm_start_is_repeated(made: Run, warm: tuple[Path, Reference], inputs: Inputs, damage: str) -> None:
    folder, record = folder_of(made), folder_of(made) / RECORD
    match damage:
        case "altered":
            content = bytearray((folder / "model.safetensors").read_bytes())
            content[-1] ^= 1
            (folder / "model.safetensors").write_bytes(content)
        case "foreign":
            # transformers would take this for an adapter on top of the weights.
            (folder / "adapter_config.json").write_text("{}")
        case "broken record":
            record.write_bytes(record.read_bytes()[:-40])
    assert reference(made, inputs).sha256 == warm[1].sha256
    assert "files" in read_json(record)
