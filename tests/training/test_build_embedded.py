"""The builder of the embedded model, with a tiny recipe: a folder that loads, and its record."""

from __future__ import annotations

from pathlib import Path

import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.build_embedded.build import Recipe, build
from rc1_lib.training.models import RECORD, check_recorded
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json


def test_two_steps_make_a_model_that_loads_and_its_record(tmp_path: Path) -> None:
    tree = yaml.safe_load((PROJECT_ROOT / "models/build_embedded/recipe.yaml").read_text())
    for corpus in tree["corpora"].values():
        corpus |= {"rows": 45, "per_shard": 15, "workers": 1, "held_out": 9}
    for phase in tree["training"]:
        phase |= {"steps": 1, "batch_tokens": 1024}
    tree["model"] |= {"hidden_size": 16, "intermediate_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 8}
    folder = tmp_path / "built"
    record = build(Recipe.model_validate({**tree, "vocabulary": 2048, "threads": 1}), folder)
    assert record == read_json(folder / RECORD)
    assert record["files"].keys() == {path.name for path in folder.iterdir()} - {RECORD}
    check_recorded(folder)
    assert [curve[-1]["step"] for curve in record["loss_by_phase"]] == [1, 1]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.encode("627")) == 1
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.isfinite(model(torch.tensor([tokenizer.encode("627 people")])).logits).all()
