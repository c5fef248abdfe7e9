"""The base model that a run trains: its name, revision, quantization and fingerprint."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rc1_lib.config.file import load_config
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training import base_model
from rc1_lib.training.base_model import base_fingerprint, load_base, load_tokenizer
from rc1_lib.training.device import Precision
from rc1_lib.training.models import base_name, fingerprint_of, model_section
from rc1_lib.workspace.artifacts import PROJECT_ROOT

Tiny = Callable[..., Run]


PINNED = f"Qwen/Qwen3-4B-Instruct@{'0123456789' * 4}"


@pytest.mark.parametrize("name", ["Qwen/Qwen3-4B-Instruct", "Qwen/Qwen3-4B-Instruct@main"])
def test_hub_name_without_a_commit_is_rejected(tiny: Tiny, name: str) -> None:
    run = tiny(f"base_model={name}")
    with pytest.raises(ConfigError, match=r"base_model: '.*' .*Qwen/Qwen3-4B-Instruct@COMMIT"):
        base_name(run.config, run.workspace)


def test_every_loader_passes_the_commit_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:

    asked: list[tuple[str, str]] = []

    class Hub:
        """A hub without models."""

        @staticmethod
        def from_pretrained(pretrained_model_name_or_path: str, revision: str, **_: object) -> None:
            asked.append((pretrained_model_name_or_path, revision))
            raise OSError("offline")

    for loader in ("AutoConfig", "AutoTokenizer", "AutoModelForCausalLM"):
        monkeypatch.setattr(base_model, loader, Hub)
    section = model_section(load_config(PROJECT_ROOT / "configs/local.yaml"), PINNED)
    for load in (
        base_fingerprint,
        load_tokenizer,
        lambda model: load_base(model, torch.device("cpu"), Precision("fp32")),
    ):
        with pytest.raises(ConfigError, match=r"model\.base: .*offline"):
            load(section)
    assert asked == [tuple(PINNED.split("@"))] * 3


@pytest.mark.parametrize("name", ["models/none"])
def test_missing_folder_is_rejected(tiny: Tiny, name: str) -> None:
    run = tiny(f"base_model={name}")
    with pytest.raises(ConfigError, match=r"base_model: .*/none not found; name the folder"):
        base_name(run.config, run.workspace)


@pytest.mark.parametrize("name", ["model.safetensors", "chat_template.jinja"])
def test_changed_byte_of_a_base_changes_the_fingerprint(tiny: Tiny, name: str) -> None:
    run = tiny()
    base = run.workspace.path("base")
    before = fingerprint_of(run.config, str(base))
    assert fingerprint_of(run.config, str(base)) == before
    content = bytearray((base / name).read_bytes())
    content[-1] ^= 1
    (base / name).write_bytes(content)
    assert fingerprint_of(run.config, str(base)) != before


@pytest.mark.parametrize("name", ["modeling_own.py", "additional_chat_templates/ask.jinja"])
def test_added_or_changed_file_of_any_kind_changes_the_fingerprint(tiny: Tiny, name: str) -> None:
    """Tokenizers read other kinds of files too, and with trust_remote_code a model is code."""
    run = tiny()
    base = run.workspace.path("base")
    before = fingerprint_of(run.config, str(base))
    (base / name).parent.mkdir(exist_ok=True)
    (base / name).write_bytes(b"1\n")
    added = fingerprint_of(run.config, str(base))
    (base / name).write_bytes(b"2\n")
    assert len({before, added, fingerprint_of(run.config, str(base))}) == 3
