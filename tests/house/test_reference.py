"""The page of all configuration keys matches the code, and describes every key."""

from __future__ import annotations

import pytest

from docs.reference.make import DOCUMENTS, PAGE, accepted, configuration_page, parts
from rc1_lib.config.file import flatten, load_config
from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.values import Positive, Range, Share
from rc1_lib.workspace.artifacts import PROJECT_ROOT


def test_reference_page_matches_the_code() -> None:
    assert (PROJECT_ROOT / PAGE).read_text(encoding="utf-8") == configuration_page(), "python docs/reference/make.py"


def test_every_key_is_described() -> None:
    undescribed = [
        ".".join(key.path)
        for document in DOCUMENTS
        for part in parts(document.model)
        for key in part.keys
        if not key.what.endswith(".")
    ]
    assert undescribed == []


def test_every_key_of_a_run_is_listed() -> None:
    """Compared with the keys of the shipped file."""
    listed = [key.path for part in parts(RunConfig) for key in part.keys]
    loaded = load_config(PROJECT_ROOT / "configs/local.yaml").model_dump(mode="json")

    def is_listed(leaf: str) -> bool:
        """Whether the key or one above it, which holds a whole mapping or list, is listed."""
        steps = leaf.split(".")
        whole = [path[: path.index("[]")] if "[]" in path else path for path in listed]
        fits = [path for path in whole if len(path) <= len(steps)]
        return any(all(name in (step, "*") for name, step in zip(path, steps, strict=False)) for path in fits)

    assert [leaf for leaf in flatten(loaded) if not is_listed(leaf)] == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Positive, "integer > 0"),
        (Share | None, "number ≥ 0, ≤ 1, or null"),
        (tuple[str, ...], "list of text"),
        (Range, "[fewest, most], integers ≥ 0"),
    ],
)
def test_accepted_values_are_described_in_words(kind: object, words: str) -> None:
    assert accepted(kind) == words
