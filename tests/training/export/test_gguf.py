"""GGUF export: llama.cpp generates the policy's tokens with the file, or nothing is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from rc1_lib.training.base_tokens import check_tokens
from rc1_lib.training.export import gguf_export, gguf_file
from rc1_lib.training.export.gguf_export import GGUFMismatchError, export_gguf
from rc1_lib.training.export.gguf_file import GGUFType, write_gguf
from rc1_lib.training.export.llama_cpp import PROBE_TEXTS, LlamaCpp
from rc1_lib.training.export.parity import MAX_LOGPROB_DIFFERENCE, gguf_parity
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.export.conftest import Exported

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.mark.parametrize("kind", list(GGUFType))
def test_llama_cpp_generates_the_policys_tokens(exported: Exported, tmp_path: Path, kind: GGUFType) -> None:
    run, policy = exported
    try:
        done = export_gguf(run, policy, tmp_path / "out" / kind, kind, 8)
    except GGUFMismatchError as fault:  # eight bits may round the likelier of two tokens away
        assert kind is GGUFType.Q8_0 and fault.found.logprob_difference <= MAX_LOGPROB_DIFFERENCE[kind]
        assert fault.found.tokens > 0 and not (tmp_path / "out" / kind).exists()
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


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with fewer keys than queries, and a tokenizer that splits like Qwen2's."""
    folder = tmp_path_factory.mktemp("llama")
    backend = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, whole])
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=marks)
    backend.train_from_iterator(PROBE_TEXTS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|im_end|>", unk_token="<|endoftext|>",
        bos_token="<|im_start|>",
    )  # fmt: skip
    shape = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
        initializer_range=0.05,
    )  # fmt: skip
    torch.manual_seed(3)
    LlamaForCausalLM(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("permuted", [True, False])
def test_llama_gives_the_same_tokens_in_llama_cpp_and_comes_back(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permuted: bool
) -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(llama), AutoModelForCausalLM.from_pretrained(llama)
    if not permuted:
        monkeypatch.setattr(gguf_file, "_neighbours", lambda weights, heads: weights)
    write_gguf(llama, tmp_path / "model.gguf", GGUFType.F32, tokenizer.eos_token_id)
    asked = [tokenizer.encode(text) for text in PROBE_TEXTS]
    found = gguf_parity(LlamaCpp(tmp_path / "model.gguf", 256, 1), GGUFType.F32, model, asked, 24)
    assert found.passed is permuted and found.tokens >= 24
    if permuted:
        command = [sys.executable, PROJECT_ROOT / "models/from_gguf.py", tmp_path / "model.gguf", tmp_path / "back"]
        subprocess.run(command, check=True)
        again = AutoModelForCausalLM.from_pretrained(tmp_path / "back", dtype=torch.float32)
        for name, value in model.state_dict().items():
            assert torch.equal(again.state_dict()[name], value.bfloat16().float()), name
        assert AutoTokenizer.from_pretrained(tmp_path / "back").encode(PROBE_TEXTS[0]) == asked[0]


def test_special_token_beyond_the_embeddings_is_left_out(llama: Path, tmp_path: Path) -> None:
    shutil.copytree(llama, tmp_path / "base")
    file = tmp_path / "base/tokenizer.json"
    body = json.loads(file.read_text())
    body["added_tokens"].append({**body["added_tokens"][0], "content": "<|unmet|>", "id": 1000})
    file.write_text(json.dumps(body))
    check_tokens(tmp_path / "base")
    write_gguf(tmp_path / "base", tmp_path / "model.gguf", GGUFType.F32, 2)
    assert b"<|unmet|>" not in (tmp_path / "model.gguf").read_bytes()
