"""Write a merged model as one GGUF file for llama.cpp: weights, tokenizer and chat template.

Keys and names are those of llama.cpp's own converter for the architectures `qwen3` and `llama`
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Vectors (norms) stay in fp32.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from transformers import AutoConfig

from rc1_lib.errors import RC1Error

if TYPE_CHECKING:
    from gguf import GGUFWriter

_ARCHITECTURES = ("qwen3", "llama")
PRE_TOKENIZERS = ("qwen2", "smollm", "llama-bpe", "gpt-2", "tekken", "gpt-4o")
"""Pre-tokenizers of llama.cpp. It has them by name; a file cannot bring its own."""
_BLOCK = 32
"""Weights per scale in Q8_0. Rows whose length is not a multiple stay in fp16."""


class GGUFType(StrEnum):
    """How matrices are stored."""

    F32 = "f32"
    F16 = "f16"
    Q8_0 = "q8_0"


def context_of_file(path: Path) -> int:
    """Read the context length of the model in a GGUF file.

    Raises:
        RC1Error: if the file does not have it.
    """
    from gguf import GGUFReader

    reader = GGUFReader(path)
    fields = (reader.get_field(f"{name}.context_length") for name in _ARCHITECTURES)
    field = next((one for one in fields if one is not None), None)
    if field is None:
        raise RC1Error(f"{path}: has no context length; write it again with rc1 ckpt export --gguf")
    return int(field.contents())


def write_gguf(
    model: Path,
    target: Path,
    kind: GGUFType,
    end_id: int,
    description: str = "",
    pre_tokenizer: str = PRE_TOKENIZERS[0],
) -> None:
    """Write a folder that `AutoModelForCausalLM` loads as one GGUF file.

    Args:
        model: the folder: configuration, safetensors, tokenizer.
        kind: how matrices are stored.
        end_id: token that ends a turn; config.json may have several, or none.
        description: for people who inspect the file.
        pre_tokenizer: one of `PRE_TOKENIZERS`.

    Raises:
        RC1Error: if the model is neither a Qwen3 nor a Llama, or its tokenizer is not a byte-level BPE.
    """
    from gguf import GGUFWriter

    config = AutoConfig.from_pretrained(model)
    _check(model, config)
    writer = GGUFWriter(target, config.model_type)
    try:
        _say_shape(writer, config, kind)
        if description:
            writer.add_description(description)
        _say_tokenizer(writer, model, config, pre_tokenizer, end_id)
        _add_weights(writer, model, config, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _check(model: Path, config: Any) -> None:
    if config.model_type not in _ARCHITECTURES:
        raise RC1Error(f"{model}: found a model of type '{config.model_type}', expected {' or '.join(_ARCHITECTURES)}")
    if getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False):
        raise RC1Error(f"{model}: its layers have biases, which RC1 cannot write to GGUF")
    window = getattr(config, "use_sliding_window", False)
    if config.rope_parameters.get("rope_type", "default") != "default" or window:
        raise RC1Error(f"{model}: scales its positions or has a sliding window, which RC1 cannot write to GGUF")


def _say_shape(writer: GGUFWriter, config: Any, kind: GGUFType) -> None:
    import gguf

    stored = {
        GGUFType.F32: gguf.LlamaFileType.ALL_F32,
        GGUFType.F16: gguf.LlamaFileType.MOSTLY_F16,
        GGUFType.Q8_0: gguf.LlamaFileType.MOSTLY_Q8_0,
    }
    writer.add_file_type(stored[kind])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if config.model_type == "llama":
        writer.add_rope_dimension_count(config.head_dim)
        writer.add_vocab_size(config.vocab_size)


def _say_tokenizer(writer: GGUFWriter, model: Path, config: Any, pre_tokenizer: str, end_id: int) -> None:
    """Write the tokenizer. Ids without a token are named `[PADi]`, as in llama.cpp's converter."""
    from gguf import TokenType

    body = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    if body["model"]["type"] != "BPE" or "ByteLevel" not in json.dumps(body["pre_tokenizer"]):
        raise RC1Error(
            f"{model / 'tokenizer.json'}: expected a byte-level BPE, the only kind that RC1 can write to GGUF"
        )
    names = [f"[PAD{number}]" for number in range(config.vocab_size)]
    kinds = [TokenType.UNUSED] * config.vocab_size
    found = [(name, number, TokenType.NORMAL) for name, number in body["model"]["vocab"].items()]
    for added in body["added_tokens"]:
        found.append((added["content"], added["id"], TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED))
    for name, number, token in found:
        if number < config.vocab_size:  # others are never met: see `base_tokens`
            names[number], kinds[number] = name, token
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_tokenizer)
    writer.add_token_list(names)
    writer.add_token_types(kinds)
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in body["model"]["merges"]])
    writer.add_add_bos_token(False)
    writer.add_eos_token_id(end_id)
    if config.pad_token_id is not None:
        writer.add_pad_token_id(config.pad_token_id)
    template = model / "chat_template.jinja"
    if template.is_file():
        writer.add_chat_template(template.read_text(encoding="utf-8"))


def _add_weights(writer: GGUFWriter, model: Path, config: Any, kind: GGUFType) -> None:
    import gguf

    architecture = {"qwen3": gguf.MODEL_ARCH.QWEN3, "llama": gguf.MODEL_ARCH.LLAMA}[config.model_type]
    names = gguf.get_tensor_name_map(architecture, int(config.num_hidden_layers))
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weights in _weights(model):
        called = names.get_name(name, try_suffixes=(".weight",))
        if called is None:
            raise RC1Error(f"{model}: has the tensor '{name}', which is unknown in {config.model_type}")
        if config.model_type == "llama" and (count := heads.get(name.split(".")[-2])):
            weights = _neighbours(weights, count)
        stored = _stored(weights, kind)
        writer.add_tensor(called, gguf.quants.quantize(weights, stored), raw_dtype=stored)


def _neighbours(weights_OI: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Permute rows for `llama`: llama.cpp rotates adjacent pairs of a head, transformers its two halves."""
    rows, columns = weights_OI.shape
    halves = weights_OI.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def _stored(weights: NDArray[np.float32], kind: GGUFType) -> Any:
    from gguf import GGMLQuantizationType

    if weights.ndim == 1 or kind is GGUFType.F32:
        return GGMLQuantizationType.F32
    whole = weights.shape[-1] % _BLOCK == 0
    return GGMLQuantizationType.Q8_0 if kind is GGUFType.Q8_0 and whole else GGMLQuantizationType.F16


def _weights(model: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield every tensor in fp32 with its name, one at a time."""
    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                yield name, opened.get_tensor(name).float().numpy()
