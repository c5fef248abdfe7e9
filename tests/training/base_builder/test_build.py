"""Building the bundled base with a tiny recipe: a loadable folder, its record, and reproducible bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from rc1_lib.errors import ConfigError
from rc1_lib.extras.base_builder.build import architecture, build_base
from rc1_lib.extras.base_builder.recipe import Recipe, read_recipe
from rc1_lib.training.recorded_base import RECORD
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json
from rc1_lib.workspace.file_hashes import sha256_file

Built = tuple[Path, dict[str, Any]]


def tiny_recipe(**changed: Any) -> Recipe:
    tree = read_recipe(PROJECT_ROOT / "configs/base.yaml").model_dump(mode="json")
    small = {"rows": 45, "per_shard": 15, "workers": 1, "held_out": 9, "max_tokens": 500}
    tree["corpora"] = {name: corpus | small for name, corpus in tree["corpora"].items()}
    tree["model"] |= {"hidden_size": 16, "intermediate_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 8}
    short = {"batch_tokens": 1024, "warm_up": 2, "short_tokens": 300}
    counts = (5, 3)
    tree["training"] = [phase | short | {"steps": steps} for phase, steps in zip(tree["training"], counts, strict=True)]
    return Recipe.model_validate({**tree, "vocabulary": 2048, "threads": 1, **changed})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("base")
    return folder, build_base(tiny_recipe(), folder)


def test_record_lists_every_file_with_its_sha256(built: Built) -> None:
    folder, record = built
    assert record == read_json(folder / RECORD)
    assert record["files"].keys() == {path.name for path in folder.iterdir()} - {RECORD}
    assert all(sha256_file(folder / name) == digest for name, digest in record["files"].items())


def test_committed_model_has_the_config_of_its_recipe(tmp_path: Path) -> None:
    """Byte for byte: a key that only a reloaded model has would make builds differ from the committed model."""
    committed = PROJECT_ROOT / "models/embedded"
    tokenizer = AutoTokenizer.from_pretrained(committed)
    recipe = read_recipe(PROJECT_ROOT / "configs/base.yaml")
    architecture(recipe, tokenizer.eos_token_id, tokenizer.pad_token_id).save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_bytes() == (committed / "config.json").read_bytes()


def test_recipe_and_seed_decide_the_bytes(built: Built, tmp_path: Path) -> None:
    torch.manual_seed(99)
    again = build_base(tiny_recipe(), tmp_path / "again")
    assert again["files"] == built[1]["files"]
    other = build_base(tiny_recipe(seed=8), tmp_path / "other")
    assert other["files"]["model.safetensors"] != again["files"]["model.safetensors"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stranger: 1", "unknown key 'stranger'"),
        ("vocabulary: 7", "vocabulary: found '7', expected: .* 512"),
        ("model: {layers: -1}", r"model\.layers: found '-1', expected: "),
    ],
)
def test_invalid_recipe_is_rejected_with_file_and_key(tmp_path: Path, line: str, message: str) -> None:
    key = line.split(":")[0]
    text = (PROJECT_ROOT / "configs/base.yaml").read_text()
    kept = [each for each in text.splitlines() if not each.startswith(f"{key}:")]
    path = tmp_path / "base.yaml"
    path.write_text("\n".join([*kept, line]))
    with pytest.raises(ConfigError, match=rf"base\.yaml: .*{message}"):
        read_recipe(path)
