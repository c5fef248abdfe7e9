"""A base with a token beyond its embeddings is refused before a ticket, whichever token it is, if it can be met."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.preflight.ticket import check_base
from rc1_lib.run import open_run
from rc1_lib.training.base_tokens import check_tokens
from rc1_lib.workspace.artifacts import PROJECT_ROOT

BEYOND = 6144
Change = Callable[[Path], object]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT_ROOT / "models/embedded", tmp_path / "base"))


def edited(name: str, **values: Any) -> Change:
    def edit(folder: Path) -> None:
        body = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**body, **values}))

    return edit


def added(token: str, number: int = BEYOND, *, special: bool = True) -> Change:
    def edit(folder: Path) -> None:
        path = folder / "tokenizer.json"
        body = json.loads(path.read_text())
        body["added_tokens"].append({"id": number, "content": token, "special": special})
        path.write_text(json.dumps(body))

    return edit


def in_the_vocabulary(folder: Path) -> None:
    path = folder / "tokenizer.json"
    body = json.loads(path.read_text())
    body["model"]["vocab"]["zzz"] = BEYOND
    path.write_text(json.dumps(body))


def in_the_template(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_text(path.read_text() + "<new>")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([added("<new>"), edited("tokenizer_config.json", pad_token="<new>")], "'<new>', its pad_token, has .* 6144,"),
        ([added("<new>"), in_the_template], "in its chat template"),
        ([in_the_vocabulary], "'zzz', in its texts"),
        ([edited("config.json", vocab_size=100)], "but the model has 100 embeddings"),
        ([edited("config.json", pad_token_id=BEYOND)], f"pad_token_id of its config.json is {BEYOND}, .* 6,144 embed"),
    ],
)
def test_token_beyond_the_embeddings_is_refused(base: Path, changes: list[Change], words: str) -> None:
    run = open_run(profile="local", workspace=base.parent, overrides=["base_model=base"])
    check_base(run)
    for change in changes:
        change(base)
    with pytest.raises(ConfigError, match=rf"base_model: .*base: .*{words}"):
        check_base(run)


@pytest.mark.parametrize(
    "change",
    [added("<image>"), added("<last>", BEYOND - 1, special=False), lambda base: (base / "config.json").unlink()],
)
def test_token_that_is_never_met_or_has_an_embedding_is_accepted(base: Path, change: Change) -> None:
    change(base)
    check_tokens(base)
