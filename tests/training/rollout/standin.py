"""A small chat, rows, and a model that memorizes dialogues, without any download."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from peft import LoraConfig, inject_adapter_in_model
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedModel, Qwen3ForCausalLM

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.training.rollout.roll_out import Batching
from rc1_lib.training.rollout.trajectory import RolloutSampling, Start
from tests.training.tiny import shape

MARKS = ("<pad>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
PIECES = (
    '{"name": "', "wiki", "ask_user", '", "arguments": {"', 'title": "', 'question": "', '"}}', "Answer: ",
    "How many jars?", "user\n", "assistant\n", "tool\n", "Coins left?", " Hm.", "A box of 9.",
    "There is no page of that title.",
)  # fmt: skip
"""Texts that are one token each, to keep the training short."""

LIMITS = Limits(turns=6, tokens=400, tool_errors=2, malformed=1, calls=5, turn_chars=4_000, argument_chars=300)
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

ROW: dict[str, Any] = {
    "id": "row",
    "task": "gsm8k",
    "lang": "en",
    "messages": [{"role": "user", "content": "Coins left?"}],
    "passages": [{"title": "Box", "text": "A box of 9."}, {"title": "Jar", "text": "It costs 2 coins."}],
    "answer": "384",
    "aliases": [],
    "needs_clarification": True,
    "slot": {"where": "story", "value": "39", "vague": "several", "wanted": "how many jars"},
    "user_replies": {"gives": "It is 39.", "otherwise": "I do not know that."},
}


def row(number: int) -> dict[str, Any]:
    """A row whose prompt grows with its number."""
    return {**ROW, "id": f"row-{number}", "messages": [{"role": "user", "content": f"Coins left?{' Hm.' * number}"}]}


def wiki(title: str) -> str:
    """A turn that calls `wiki`."""
    return f'<tool_call>{{"name": "wiki", "arguments": {{"title": "{title}"}}}}</tool_call>'


class StandInChat:
    """Qwen3's chat format on bytes: special tokens, a few pieces and all bytes are one token each."""

    thoughts: tuple[int, int] | None = None
    opens_thoughts = False

    def __init__(self) -> None:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        self._tokenizer = Tokenizer(BPE({letter: place for place, letter in enumerate(alphabet)}, []))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = decoders.ByteLevel()
        self._tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in PIECES])
        self._plain = Tokenizer.from_str(self._tokenizer.to_str())
        self._tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
        self.pad_id, _, self.end_id = (self._tokenizer.token_to_id(mark) for mark in MARKS[:3])
        self.size = self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Tokens of a text that may contain special tokens."""
        return self._tokenizer.encode(text).ids

    def prompt_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return [token for m in messages for token in self._message(m["role"], m["content"])] + self._opening()

    def observation_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        replies = [token for m in messages for token in self._message("tool", m["content"])]
        return self.encode("\n") + replies + self._opening()

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def _message(self, role: str, content: str) -> list[int]:
        # The tokenizer without special tokens encodes contents, so that they cannot forge any.
        return self.encode(f"<|im_start|>{role}\n") + self._plain.encode(content).ids + self.encode("<|im_end|>\n")

    def _opening(self) -> list[int]:
        return self.encode("<|im_start|>assistant\n")


def random_model(chat: StandInChat, *, context: int = 512, seed: int = 0) -> PreTrainedModel:
    """A tiny Qwen3 with random weights."""
    torch.manual_seed(seed)
    more = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": context}
    return Qwen3ForCausalLM(shape(chat.size, 64, **more, eos_token_id=chat.end_id, pad_token_id=chat.pad_id)).eval()


def memorizing_model(chat: StandInChat, dialogues: Sequence[Sequence[str]], steps: int) -> PreTrainedModel:
    """A tiny Qwen3 that was trained on the turns of a few dialogues on `row(0)` and `row(3)`."""
    model = random_model(chat)
    texts = [demonstration(chat, row(number), turns) for turns in dialogues for number in (0, 3)]
    width = max(len(ids) for ids, _ in texts)
    ids_BT = torch.tensor([ids + [chat.pad_id] * (width - len(ids)) for ids, _ in texts])
    labels_BT = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in texts])
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1.0 - step / steps)
        optimizer.zero_grad()
        model(input_ids=ids_BT, labels=labels_BT).loss.backward()
        optimizer.step()
    return model.eval()


def demonstration(chat: StandInChat, of: Mapping[str, Any], turns: Sequence[str]) -> tuple[list[int], list[int]]:
    """Token ids of a played dialogue, and labels: -100 for all tokens but the assistant's."""
    episode = Episode(World(of), LIMITS)
    ids = chat.prompt_ids(episode.messages)
    labels = [-100] * len(ids)
    for place, turn in enumerate(turns):
        own = [*chat.encode(turn), chat.end_id]
        answers = episode.say(turn)
        seen = chat.observation_ids(answers) if place + 1 < len(turns) else []
        ids, labels = ids + own + seen, labels + own + [-100] * len(seen)
    return ids, labels


def with_lora(model: PreTrainedModel) -> PreTrainedModel:
    """The model with an adapter that changes its output: B is random instead of zero."""
    torch.manual_seed(7)
    inject_adapter_in_model(
        LoraConfig(r=4, lora_alpha=8, lora_dropout=0.5, target_modules=PROJECTIONS, init_lora_weights=False), model
    )
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data.mul_(0.05)
    return model


def starts(chat: StandInChat, numbers: Sequence[int], limits: Limits = LIMITS) -> list[Start]:
    """New episodes on `row(number)` that count tokens with the chat's tokenizer."""
    count: Callable[[str], int] = lambda text: len(chat.encode(text))  # noqa: E731
    return [Start(f"row-{n}", f"key-{i}", Episode(World(row(n)), limits, count)) for i, n in enumerate(numbers)]


def sampling(temperature: float = 1.0, *, turn_tokens: int = 120, seed: int = 3, iteration: int = 1) -> RolloutSampling:
    return RolloutSampling(temperature=temperature, turn_tokens=turn_tokens, seed=seed, iteration=iteration)


WIDE = Batching(rows=64, prefill_tokens=4096)


def same_numbers(left: Sequence[float], right: Sequence[float], within: float) -> bool:
    """Whether two lists agree; NaN equals NaN."""
    return len(left) == len(right) and all(
        (math.isnan(a) and math.isnan(b)) or abs(a - b) <= within for a, b in zip(left, right, strict=True)
    )
