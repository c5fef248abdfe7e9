"""Export a merged model as a GGUF file, if llama.cpp computes the same with it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.training.chat_format import ChatFormat, format_of
from rc1_lib.training.checkpoint.atomic_folder import absent_folder
from rc1_lib.training.export.checkpoint_export import MANIFEST as EXPORT_MANIFEST
from rc1_lib.training.export.checkpoint_export import MERGED
from rc1_lib.training.export.gguf_file import PRE_TOKENIZERS, GGUFType, write_gguf
from rc1_lib.training.export.llama_cpp import PROBE_TEXTS, LlamaCpp, comparable, composes
from rc1_lib.training.export.parity import GGUFParityReport, gguf_parity
from rc1_lib.training.rows import select_rows, some_of
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

MANIFEST = "gguf.json"
_TINY = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}
"""Shape of a tiny model for testing pre-tokenizers."""
_COMPOSED = "Composed texts (NFC) only: llama.cpp does not compose letters and accents as this model's tokenizer does."
_IDS_ONLY = "Token ids only: llama.cpp does not cut texts as this model's tokenizer does."


class GGUFMismatchError(Exception):
    """llama.cpp does not compute the same with the file as PyTorch with the model.

    Attributes:
        found: the parity report.
    """

    def __init__(self, found: GGUFParityReport) -> None:
        """Keep the parity report."""
        super().__init__("llama.cpp generates other tokens with the file than the model; nothing is kept")
        self.found = found


@dataclass(frozen=True, slots=True)
class ExportedGGUF:
    """A finished export.

    Attributes:
        file: the GGUF file; its manifest `gguf.json` is in the same folder.
        ids_only: whether llama.cpp cuts texts otherwise than the tokenizer, so that it has to be given token ids.
    """

    file: Path
    found: GGUFParityReport
    ids_only: bool


def export_gguf(run: Run, exported: Path, target: Path, kind: GGUFType, prompts: int) -> ExportedGGUF:
    """Write the merged model of an export, which matches the policy, as a GGUF file.

    Args:
        run: its held-out prompts are used for the comparison.
        exported: folder that `export_checkpoint` has just written.
        target: a folder that does not exist yet.
        kind: how matrices are stored.
        prompts: number of held-out prompts to continue.

    Raises:
        RC1Error: if the target exists.
        GGUFMismatchError: if llama.cpp computes something else; nothing is kept.
    """
    merged = exported / MERGED
    tokenizer = AutoTokenizer.from_pretrained(merged)
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)
    model.train(False)
    form = format_of(tokenizer, run.config.training)
    rows = some_of(select_rows(run, form).held_out, prompts)
    asked, most = [_opening(form, row) for row in rows], run.config.rollout_len
    with absent_folder(target) as folder:
        name = f"{target.name}.gguf"
        way = pre_tokenizer_of(tokenizer, model.config.get_text_config().vocab_size)
        about = _IDS_ONLY if way is None else _COMPOSED if composes(tokenizer) else ""
        write_gguf(merged, folder / name, kind, form.end_id, about, way or PRE_TOKENIZERS[0])
        llama = LlamaCpp(folder / name, max(map(len, asked)) + most, run.config.training.threads)
        found = gguf_parity(llama, kind, model, asked, most)
        del llama
        if not found.passed:
            raise GGUFMismatchError(found)
        write_json(folder / MANIFEST, _manifest(exported, folder / name, found, way is None))
    return ExportedGGUF(target / name, found, way is None)


def pre_tokenizer_of(tokenizer: PreTrainedTokenizerBase, size: int) -> str | None:
    """Find the first of llama.cpp's pre-tokenizers that tokenizes `PROBE_TEXTS` alike (`comparable`), or None.

    A tokenizer does not name its pre-tokenizer. Each one is tried with a model of one layer, so that a large model is
    written only once.

    Args:
        tokenizer: a byte-level BPE.
        size: of the model's vocabulary.

    Raises:
        RC1Error: if it is not a byte-level BPE.
    """
    every = comparable(tokenizer, PROBE_TEXTS)
    ours = [cast(Any, tokenizer).encode(text, add_special_tokens=False) for text in every]
    with tempfile.TemporaryDirectory() as temporary, torch.random.fork_rng(devices=[]):
        folder = Path(temporary)
        ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
        shape = AutoConfig.for_model("llama", vocab_size=size, **ends, **_TINY)
        AutoModelForCausalLM.from_config(shape).save_pretrained(folder)  # type: ignore[no-untyped-call]
        tokenizer.save_pretrained(folder)
        for name in PRE_TOKENIZERS:
            write_gguf(folder, folder / "tiny.gguf", GGUFType.F16, int(tokenizer.eos_token_id), pre_tokenizer=name)
            llama = LlamaCpp(folder / "tiny.gguf", 64, 1)
            if llama.token_ids(every) == ours:
                return name
    return None


def _opening(form: ChatFormat, row: MeasuredRow) -> list[int]:
    return form.prompt_ids(list(takewhile(lambda message: message["role"] != "assistant", row["messages"])))


def _manifest(exported: Path, file: Path, found: GGUFParityReport, ids_only: bool) -> dict[str, Any]:
    return {
        "file": file.name,
        "sha256": sha256_file(file),
        "bytes": file.stat().st_size,
        "token_ids_only": ids_only,
        "checkpoint": read_json(exported / EXPORT_MANIFEST)["checkpoint"],
        "export_sha256": sha256_file(exported / EXPORT_MANIFEST),
        "likeness": found.body(),
    }
