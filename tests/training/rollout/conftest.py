"""A chat and a model that was trained until it repeats its dialogues, once per run of the suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from tests.once import copy_of
from tests.training.rollout.standin import StandInChat, memorizing_model, random_model, wiki

ASK = '<tool_call>{"name": "ask_user", "arguments": {"question": "How many jars?"}}</tool_call>'
DIALOGUES = (
    (wiki("Box"), "It is so. Answer: 384"),
    (ASK, wiki("Jar"), "Answer: 384"),
    (wiki("Nix"), wiki("Box"), "Answer: 7"),
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread as training does: with several, repeated rollouts differ in the last bits on some CPUs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def chat() -> StandInChat:
    return StandInChat()


@pytest.fixture(scope="session")
def memorized(chat: StandInChat, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedModel:
    """The model that repeats DIALOGUES. Never change it: use a copy."""

    def make(folder: Path) -> None:
        folder.mkdir()
        torch.save(memorizing_model(chat, DIALOGUES, steps=80).state_dict(), folder / "weights")

    model = random_model(chat)
    model.load_state_dict(torch.load(copy_of("memorized_dialogues", make, tmp_path_factory) / "weights"))
    return model
