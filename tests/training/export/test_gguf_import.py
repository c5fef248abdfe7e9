"""A GGUF file as a base, and a Llama as a GGUF file: both generate the same tokens, or nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rc1_lib.errors import RC1Error
from rc1_lib.training.device import Precision
from rc1_lib.training.export import gguf_file
from rc1_lib.training.export.gguf_export import pre_tokenizer_of
from rc1_lib.training.export.gguf_file import GGUFType, write_gguf
from rc1_lib.training.export.gguf_import import RECORD, import_gguf
from rc1_lib.training.export.llama_cpp import PROBE_TEXTS, LlamaCpp
from rc1_lib.training.export.parity import gguf_parity
from tests.training.export.test_gguf import QWEN2

END = 2
"""The token that ends a turn."""
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


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
    backend.train_from_iterator(
        PROBE_TEXTS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=marks)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|im_end|>", unk_token="<|endoftext|>",
        bos_token="<|im_start|>", chat_template=TEMPLATE,
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
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def test_llama_survives_export_and_import(llama: Path, tmp_path: Path) -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(llama), AutoModelForCausalLM.from_pretrained(llama)
    pre_tokenizer = pre_tokenizer_of(tokenizer, model.config.vocab_size)
    assert pre_tokenizer == "qwen2"
    file = tmp_path / "model.gguf"
    write_gguf(llama, file, GGUFType.F32, END, pre_tokenizer=pre_tokenizer)
    found = gguf_parity(
        LlamaCpp(file, 256, 1), GGUFType.F32, model, tokenizer,
        [tokenizer.encode(text) for text in PROBE_TEXTS], PROBE_TEXTS, 24,
    )  # fmt: skip
    assert found.tokens_passed and found.texts_passed and found.tokens >= 24
    done = import_gguf(file, tmp_path / "back", Precision.FP32)
    assert done.same_tokens == 1.0 and done.tokens > 0
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "back")
    ids = torch.tensor([tokenizer.encode(PROBE_TEXTS[0])])
    with torch.no_grad():
        torch.testing.assert_close(again(ids).logits, model(ids).logits)
    record = json.loads((tmp_path / "back" / RECORD).read_text())
    assert (record["file"], record["precision"]) == ("model.gguf", "fp32")


def test_file_with_another_pre_tokenizer_is_rejected(llama: Path, tmp_path: Path) -> None:
    write_gguf(llama, tmp_path / "model.gguf", GGUFType.F32, END, pre_tokenizer="tekken")
    with pytest.raises(RC1Error, match=r"model\.gguf: llama\.cpp .*\[\d.*\], .*\[\d.*\]"):
        import_gguf(tmp_path / "model.gguf", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_unpermuted_weights_are_detected(llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_file, "_neighbours", lambda weights, heads: weights)
    write_gguf(llama, tmp_path / "model.gguf", GGUFType.F32, END)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(llama), AutoTokenizer.from_pretrained(llama)
    found = gguf_parity(
        LlamaCpp(tmp_path / "model.gguf", 256, 1), GGUFType.F32, model, tokenizer,
        [tokenizer.encode(text) for text in PROBE_TEXTS], (), 24,
    )  # fmt: skip
    assert not found.tokens_passed


def test_missing_or_truncated_file_or_existing_target_is_rejected(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(RC1Error, match=r"none\.gguf: .*\(\.gguf\)"):
        import_gguf(tmp_path / "none.gguf", tmp_path / "back")
    write_gguf(llama, tmp_path / "whole.gguf", GGUFType.F32, END)
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "whole.gguf").read_bytes()[:3000])
    with pytest.raises(RC1Error, match=r"cut\.gguf: transformers .*GGUF"):
        import_gguf(tmp_path / "cut.gguf", tmp_path / "back")
    with pytest.raises(RC1Error, match=f"{llama}: .*already.*--to"):
        import_gguf(tmp_path / "whole.gguf", llama)
