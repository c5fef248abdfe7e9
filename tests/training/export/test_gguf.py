"""GGUF export: llama.cpp generates the policy's tokens with the file, or nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.training.export import gguf_export
from rc1_lib.training.export.gguf_export import GGUFMismatchError, export_gguf
from rc1_lib.training.export.gguf_file import GGUFType, write_gguf
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.export.conftest import Exported


@pytest.mark.parametrize("kind", list(GGUFType))
def test_llama_cpp_generates_the_policys_tokens(exported: Exported, tmp_path: Path, kind: GGUFType) -> None:
    run, policy = exported
    try:
        done = export_gguf(run, policy, tmp_path / "out" / kind, kind, 8)
    except GGUFMismatchError as fault:  # eight bits may round the likelier of two tokens away
        assert kind is GGUFType.Q8_0 and fault.found.tokens > 0 and not (tmp_path / "out" / kind).exists()
        return
    assert done.found.passed and done.ids_only and done.found.tokens >= done.found.prompts == 8
    manifest = json.loads((done.file.parent / "gguf.json").read_text())
    assert (manifest["sha256"], manifest["token_ids_only"]) == (sha256_file(done.file), True)
    assert b"Token ids only" in done.file.read_bytes()


def test_file_of_the_base_without_the_adapter_is_detected_and_not_kept(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, policy = exported
    wrong = run.workspace.path("base")
    monkeypatch.setattr(gguf_export, "write_gguf", lambda _, *rest, **named: write_gguf(wrong, *rest, **named))
    with pytest.raises(GGUFMismatchError) as raised:
        export_gguf(run, policy, tmp_path / "out/f32", GGUFType.F32, 8)
    assert not raised.value.found.passed
    assert not list((tmp_path / "out").iterdir())


def test_changed_or_missing_export_is_rejected_with_the_file_name(exported: Exported, tmp_path: Path) -> None:
    run, policy = exported
    own = shutil.copytree(policy, tmp_path / "policy")
    (own / "merged/extra.safetensors").write_bytes(b"")
    with pytest.raises(RC1Error, match=r"merged/extra\.safetensors: .*rc1 ckpt export"):
        export_gguf(run, own, tmp_path / "out", GGUFType.F32, 1)
    with pytest.raises(RC1Error, match=r"export\.json: .*rc1 ckpt export"):
        export_gguf(run, tmp_path, tmp_path / "out", GGUFType.F32, 1)
    with pytest.raises(RC1Error, match=f"{own}: .*already.*--to"):
        export_gguf(run, policy, own, GGUFType.F32, 1)
