"""The chat and the model that knows its dialogues by heart, taught once in a run of the suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from tests.once import copy_of
from tests.training.rollout.standin import StandInChat, random_model, taught_model, wiki

ASK = '<tool_call>{"name": "ask_user", "arguments": {"question": "How many jars?"}}</tool_call>'
DIALOGUES = (
    (wiki("Box"), "It is so. Answer: 384"),
    (ASK, wiki("Jar"), "Answer: 384"),
    (wiki("Nix"), wiki("Box"), "Answer: 7"),
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As in training: on several threads the same rollout twice differs in its last bits on some CPUs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def chat() -> StandInChat:
    return StandInChat()


@pytest.fixture(scope="session")
def taught(chat: StandInChat, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedModel:
    """Never change it: take a copy."""

    def make(folder: Path) -> None:
        folder.mkdir()
        torch.save(taught_model(chat, DIALOGUES, steps=80).state_dict(), folder / "weights")

    model = random_model(chat)
    model.load_state_dict(torch.load(copy_of("taught_by_heart", make, tmp_path_factory) / "weights"))
    return model
