"""A sentence-embedding model in a folder: it maps texts to vectors, which are close if the meaning is the same.

The folder has the format of the library sentence-transformers: an encoder, and a pooling of its states into one vector.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.runtime.libraries import quieten
from rc1_lib.training.resource_errors import shortage

if TYPE_CHECKING:
    import torch

Vectors = NDArray[np.float32]
"""One unit vector per text."""

_KEY = "gates.leakage.semantic.model"
_LIBRARIES = ("safetensors", "tokenizers", "torch", "transformers")
_DOWNLOAD = (
    "download one, for example with `hf download NAME --revision COMMIT --local-dir FOLDER`, and set the key to its "
    "folder"
)
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
"""How states become a vector: their mean, or the first state."""
_PARTS = ("Transformer", "Pooling", "Normalize")
_LONGEST = 512
"""Most tokens of a text, so that a batch fits into memory."""
_TOKENS = 8192
"""Most tokens of a batch, including padding."""
_UNUSED = "pooler."
"""Weights of a layer that the vectors do not use; many models are saved without it."""


class SentenceModel:
    """A loaded model.

    Attributes:
        longest: most tokens of a text; the rest is cut off.
    """

    def __init__(self, folder: Path) -> None:
        """Load the model, and test it on two sentences.

        Args:
            folder: as `save_pretrained` writes it, with weights as safetensors.

        Raises:
            RC1Error: if a library is missing, or the folder does not contain such a model.
        """
        check_folder(folder)
        quieten(hub=False)
        import torch
        from transformers import AutoTokenizer

        self._first = _pooling(folder) == "first"
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            model = _encoder(folder)
            self._model: Any = model.to(self._device).eval()
            self.longest = self._most_tokens(folder)
            tried, _ = self.vectors(["Who?", "Who built the tower of Ara, and when?"])
        except Exception as error:
            if shortage(error) or isinstance(error, RC1Error):
                raise  # not the model's fault, or already explained
            # Damaged files make these libraries raise anything.
            raise ConfigError(
                f"{_KEY}: {folder} cannot be read as a sentence-embedding model ({type(error).__name__}: "
                f"{str(error).strip().partition(chr(10))[0]}); {_DOWNLOAD}"
            ) from error
        if not np.isfinite(tried).all():
            raise ConfigError(
                f"{_KEY}: {folder} returns vectors with NaN or infinity, so its weights are damaged; {_DOWNLOAD}"
            )

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """Return the vectors of `texts`, shape (N, D), and which texts were truncated, shape (N,)."""
        import torch

        tokens: list[list[int]] = self._tokenizer(list(texts), truncation=True, max_length=self.longest)["input_ids"]
        cut = [
            len(ids) == self.longest and len(self._tokenizer(text, verbose=False)["input_ids"]) > self.longest
            for text, ids in zip(texts, tokens, strict=True)
        ]
        found: dict[int, Vectors] = {}
        with torch.inference_mode():
            for batch in _batches([len(ids) for ids in tokens]):
                padded = self._tokenizer.pad({"input_ids": [tokens[at] for at in batch]}, return_tensors="pt")
                ids_BT, read_BT = (padded[name].to(self._device) for name in ("input_ids", "attention_mask"))
                states_BTD = self._model(input_ids=ids_BT, attention_mask=read_BT).last_hidden_state
                found.update(zip(batch, self._pooled(states_BTD, read_BT), strict=True))
        return np.stack([found[at] for at in range(len(tokens))]), np.array(cut, dtype=bool)

    def _pooled(self, states_BTD: torch.Tensor, read_BT: torch.Tensor) -> Vectors:
        import torch

        if self._first:
            vectors_BD = states_BTD[:, 0]
        else:
            vectors_BD = (states_BTD * read_BT[..., None]).sum(1) / read_BT.sum(1, keepdim=True)
        unit: Vectors = torch.nn.functional.normalize(vectors_BD.float(), dim=1).cpu().numpy()
        return unit

    def _most_tokens(self, folder: Path) -> int:
        said = _json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
        limits = (said, self._tokenizer.model_max_length, getattr(self._model.config, "max_position_embeddings", None))
        return int(min(_LONGEST, *(limit for limit in limits if limit)))


def _encoder(folder: Path) -> Any:
    """Load the encoder; raise `ValueError` if weights are missing, which would be random."""
    import torch
    from transformers import AutoModel
    from transformers.utils.logging import get_verbosity, set_verbosity

    before = get_verbosity()
    set_verbosity(logging.ERROR)  # its report names unused layers too
    try:
        model, found = AutoModel.from_pretrained(
            str(folder), local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
        )
    finally:
        set_verbosity(before)
    if lacking := sorted(name for name in found["missing_keys"] if not name.startswith(_UNUSED)):
        raise ValueError(f"the weights lack {', '.join(lacking[:3])}")
    return model


def check_folder(folder: Path) -> None:
    """Check, without reading its weights, that a folder contains a supported sentence-embedding model.

    Raises:
        RC1Error: if a library is missing, or the folder does not exist, contains no model, or an unsupported one.
    """
    if lacking := [name for name in _LIBRARIES if find_spec(name) is None]:
        raise RC1Error(
            f"{_KEY} needs {', '.join(lacking)}; install RC1 with its extra 'semantic': pip install 'rc1[semantic]', "
            f"or set the key to null"
        )
    if not folder.is_dir():
        raise ConfigError(f"{_KEY}: folder {folder} not found; {_DOWNLOAD}")
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{_KEY}: {folder} contains no model (no config.json); {_DOWNLOAD}")
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(f"{_KEY}: {folder} has no weights as *.safetensors, the only supported format; {_DOWNLOAD}")
    parts = [str(part.get("type", "")).rpartition(".")[2] for part in _json(folder / "modules.json", [])]
    if strange := [part for part in parts if part not in _PARTS]:
        raise ConfigError(f"{_KEY}: {folder} has a part {strange[0]}, expected only {', '.join(_PARTS)}; {_DOWNLOAD}")
    _pooling(folder)


def _pooling(folder: Path) -> str:
    """Return `mean` or `first`; `mean` if the model does not say."""
    path = folder / "1_Pooling" / "config.json"
    said = _json(path, {"pooling_mode_mean_tokens": True})
    modes = [name for name, on in said.items() if name.startswith("pooling_mode") and on is True]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ConfigError(
            f"{_KEY}: {path} says {', '.join(modes) or 'no pooling'}, expected {' or '.join(_POOLINGS)}; {_DOWNLOAD}"
        )
    return _POOLINGS[modes[0]]


def _json(path: Path, otherwise: Any) -> Any:
    """Read a JSON file, which must have the type of `otherwise`, the result if the file does not exist."""
    if not path.is_file():
        return otherwise
    try:
        body = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_KEY}: {path} cannot be read as JSON ({error}); {_DOWNLOAD}") from None
    if not isinstance(body, type(otherwise)):
        raise ConfigError(
            f"{_KEY}: {path} holds {type(body).__name__}, expected {type(otherwise).__name__}; {_DOWNLOAD}"
        )
    return body


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group texts of similar length into batches of at most `_TOKENS` tokens, including padding."""
    longest: Callable[[int], int] = lengths.__getitem__
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=longest, reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > _TOKENS:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch
