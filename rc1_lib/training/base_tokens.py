"""Check, from a base's files and without torch, that every token which it can meet has an embedding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rc1_lib.errors import ConfigError
from rc1_lib.workspace.artifacts import read_json

_NAMED = ("pad_token", "eos_token", "bos_token", "unk_token")


def check_tokens(folder: Path) -> None:
    """Reject a tokenizer with a token beyond the embeddings: training would fail on it, hours later or at once.

    A special token that neither the chat template nor the tokenizer's configuration uses is never met, and some public
    bases have one. Files that are missing or damaged are reported by whoever loads them.

    Raises:
        ConfigError: names the token, its use and the number of embeddings.
    """
    config, tokenizer = _read(folder / "config.json"), _read(folder / "tokenizer.json")
    settings = _read(folder / "tokenizer_config.json")
    rows = _section(config, "text_config").get("vocab_size", config.get("vocab_size"))
    if not isinstance(rows, int):
        return
    template = _text(folder / "chat_template.jinja") + str(settings.get("chat_template", ""))
    uses = {str(_content(settings.get(name))): f"its {name}" for name in _NAMED if settings.get(name)}
    for token, number, special in _tokens(tokenizer):
        if not isinstance(number, int) or number < rows:
            continue
        met = "in its chat template" if token in template else "" if special else "in its texts"
        if use := uses.get(token, met):
            raise _refusal(folder, f"the token {token!r}, {use}, has the number {number}", rows)
    padding = config.get("pad_token_id")
    if isinstance(padding, int) and padding >= rows:
        raise _refusal(folder, f"pad_token_id of its config.json is {padding}", rows)


def _refusal(folder: Path, found: str, rows: int) -> ConfigError:
    return ConfigError(
        f"base_model: {folder}: {found}, but the model has {rows:,} embeddings (vocab_size in its config.json), "
        f"expected a number below that; name a token that the model knows, or resize its embeddings where you made it "
        f"(resize_token_embeddings) and save it again"
    )


def _tokens(tokenizer: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield each token with its number, and whether texts never become it: the added ones first."""
    added = [one for one in tokenizer.get("added_tokens") or () if isinstance(one, dict)]
    for one in added:
        yield str(one.get("content")), one.get("id"), one.get("special") is True
    vocabulary = _section(tokenizer, "model").get("vocab") or {}
    if isinstance(vocabulary, list):  # of pieces with their scores
        vocabulary = {piece[0]: number for number, piece in enumerate(vocabulary) if isinstance(piece, list) and piece}
    names = {one.get("content") for one in added}
    yield from ((token, number, False) for token, number in vocabulary.items() if token not in names)


def _section(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token


def _read(path: Path) -> Mapping[str, Any]:
    try:
        body = read_json(path)
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
