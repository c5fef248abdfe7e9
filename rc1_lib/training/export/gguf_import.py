"""Import a llama.cpp file as a base: a folder for transformers, if llama.cpp computes the same with the file."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.training.checkpoint.atomic_folder import absent_folder, check_absent
from rc1_lib.training.device import Precision
from rc1_lib.training.export.gguf_file import INSTALL
from rc1_lib.training.export.llama_cpp import PROBE_TEXTS, LlamaCpp, comparable
from rc1_lib.training.export.parity import greedy_agreement
from rc1_lib.workspace.artifacts import write_json
from rc1_lib.workspace.file_hashes import sha256_file

RECORD = "gguf_import.json"
_QUESTIONS = ("What is the capital of France?", "Name three colours.", "How much is 12 and 30?")
_SAID, _CONTEXT, _THREADS = 16, 512, 2
MIN_SAME_TOKENS = 0.9
"""Least share of equal greedy tokens. With quantised weights, llama.cpp rounds differently from plain weights."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A finished import.

    Attributes:
        folder: for `base_model`.
        parameters: number of parameters.
        tokens: number of tokens that llama.cpp generated greedily.
        same_tokens: share of these that the imported model also finds most likely, after the same tokens.
    """

    folder: Path
    parameters: int
    tokens: int
    same_tokens: float


def import_gguf(file: Path, target: Path, precision: Precision = Precision.BF16) -> Imported:
    """Convert a llama.cpp file to a folder that transformers loads, and compare the two.

    Args:
        file: a GGUF file of a chat model whose architecture transformers can read (such as Llama or Qwen).
        target: a folder that does not exist yet.
        precision: of the written weights.

    Raises:
        ConfigError: if the extra `gguf` is not installed.
        RC1Error: if the target exists, the file cannot be read or has no chat template, or the folder does not match
            the file in llama.cpp; nothing is kept then.
    """
    check_absent(target)
    tokenizer, model = _read(file)
    if not tokenizer.chat_template:
        raise RC1Error(f"{file}: has no chat template; use the file of an instruction-tuned model")
    if model.config.eos_token_id != tokenizer.eos_token_id:
        raise RC1Error(
            f"{file}: the model ends with token {model.config.eos_token_id}, but its tokenizer with "
            f"{tokenizer.eos_token_id} ({tokenizer.eos_token}); use a file in which they are equal"
        )
    with absent_folder(target) as folder:
        model.to(precision.dtype).save_pretrained(folder)  # type: ignore[arg-type]
        (folder / "generation_config.json").unlink(missing_ok=True)  # comes from transformers, not from the file
        tokenizer.save_pretrained(folder)
        found = _compared(file, folder, target)
        body = {key: value for key, value in asdict(found).items() if key != "folder"}
        write_json(folder / RECORD, {"file": file.name, "sha256": sha256_file(file), "precision": precision, **body})
    return found


def _read(file: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    """Read tokenizer and model, and rebuild the model, because transformers cannot save one read from GGUF."""
    try:
        import gguf
    except ImportError:
        raise ConfigError(f"the library gguf {INSTALL}") from None
    del gguf
    if not file.is_file():
        raise RC1Error(f"{file}: file not found; give the path of a llama.cpp file (.gguf)")
    try:
        with tempfile.TemporaryDirectory() as alone:  # transformers would prefer a tokenizer next to the file
            (Path(alone) / file.name).symlink_to(file.absolute())
            named: dict[str, Any] = {"pretrained_model_name_or_path": alone, "gguf_file": file.name}
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(**named)
            read: PreTrainedModel = AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32)
    except Exception as error:  # a damaged file can make its readers raise anything
        said = str(error).strip().splitlines()
        raise RC1Error(
            f"{file}: transformers cannot read it ({said[0] if said else type(error).__name__}); use a complete GGUF "
            "file of a model that it supports"
        ) from error
    shape = read.config
    if hasattr(shape, "quantization_config"):
        del shape.quantization_config
    plain: PreTrainedModel = type(read)(shape)
    plain.load_state_dict(read.state_dict())
    plain.tie_weights()
    return tokenizer, plain


def _compared(file: Path, folder: Path, target: Path) -> Imported:
    """Read the folder again, and compare tokens of texts and greedy answers with those of llama.cpp."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    llama = LlamaCpp(file, _CONTEXT, _THREADS)
    texts = comparable(tokenizer, PROBE_TEXTS)
    for text, theirs in zip(texts, llama.token_ids(texts), strict=True):
        ours = tokenizer.encode(text, add_special_tokens=False)
        if ours != theirs:
            raise RC1Error(
                f"{file}: llama.cpp tokenizes {text!r} as {theirs}, but transformers as {ours}; nothing is kept. "
                f"Use the model's own folder from where it was published"
            )
    same = list[bool]()
    for question in _QUESTIONS:
        same += greedy_agreement(llama, model, _asked(tokenizer, question), _SAID)[0]
    share = sum(same) / max(len(same), 1)
    if share < MIN_SAME_TOKENS:
        raise RC1Error(
            f"{file}: the converted model finds {share:.0%} of {len(same)} greedy tokens of llama.cpp most likely, "
            f"expected at least {MIN_SAME_TOKENS:.0%}; nothing is kept. Use the model's own folder from where it was "
            "published"
        )
    return Imported(target, model.num_parameters(), len(same), share)


def _asked(tokenizer: PreTrainedTokenizerBase, question: str) -> list[int]:
    asked = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    return list(tokenizer.encode(str(text), add_special_tokens=False))
