"""Public models' chat templates pass the contract checks or fail with one error; each check detects its damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from transformers import AutoConfig, GenerationConfig, PreTrainedTokenizerBase

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training import chat_contract, chat_template
from rc1_lib.training.base_model import end_ids
from rc1_lib.training.chat_contract import check_chat_contract
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.chat_template import MissingRoles
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start
from rc1_lib.training.tool_schemas import DESCRIPTION
from rc1_lib.workspace.artifacts import read_json, write_json
from tests.training.chat_templates import FAMILIES, GEMMA3, SMOLLM2, ends_of, tokenizer_of
from tests.training.tiny_world import shipped

LIMITS = Limits(turns=8, tokens=8000, tool_errors=2, malformed=1, calls=5, turn_chars=4000, argument_chars=1000)
NONE_MISSING, TOOL_MISSING, SYSTEM_AND_TOOL_MISSING = (
    MissingRoles(False, False),
    MissingRoles(False, True),
    MissingRoles(True, True),
)

PASS: dict[str, tuple[str, MissingRoles, str, str]] = {
    "Qwen2.5": ("template", NONE_MISSING, "", "<|im_end|>"),
    "Qwen3": ("template", NONE_MISSING, "", "<|im_end|>"),
    "Qwen3-Thinking": ("template", NONE_MISSING, "\n</think>\n\n", "<|im_end|>"),
    "Qwen3.5": ("system text", NONE_MISSING, "\n</think>\n\n", "<|im_end|>"),
    "Llama 3.1": ("system text", TOOL_MISSING, "", "<|eot_id|>"),
    "Gemma 2": ("system text", SYSTEM_AND_TOOL_MISSING, "", "<end_of_turn>"),
    "Gemma 3": ("system text", TOOL_MISSING, "", "<end_of_turn>"),
    "Phi": ("system text", TOOL_MISSING, "", "<|end|>"),
    "SmolLM2": ("system text", NONE_MISSING, "", "<|im_end|>"),
    "SmolLM3": ("system text", NONE_MISSING, "", "<|im_end|>"),
    "Mistral": ("system text", SYSTEM_AND_TOOL_MISSING, "", "</s>"),
}
"""Family -> where tools are described, roles that its template lacks, what closes thoughts, what ends a turn."""


def settings(*, describe: bool = True, thinking: bool | None = None) -> RunConfig:
    config = shipped()
    changes = {"describe_tools": describe, "enable_thinking": thinking}
    return config.model_copy(update={"training": config.training.model_copy(update=changes)})


def checked(
    name: str,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    thinking: bool | None = None,
    form: Callable[..., ChatFormat] = ChatFormat,
) -> str:
    family = FAMILIES[name]
    tokenizer = tokenizer or tokenizer_of(family)
    made = form(tokenizer, describe_tools=True, enable_thinking=thinking)
    return check_chat_contract(made, settings(thinking=thinking), ends_of(family, tokenizer))


@pytest.mark.parametrize("name", PASS)
def test_supported_template_passes_with_the_expected_notes(name: str) -> None:
    described, missing_roles, closing, end = PASS[name]
    form = ChatFormat(tokenizer_of(FAMILIES[name]), describe_tools=True)
    found = form.template
    assert (found.described, found.missing_roles, found.closing, found.end) == (described, missing_roles, closing, end)
    notes = checked(name)
    assert ("RC1 describes the tools" in notes) == (described == "system text")
    assert ("thinks" in notes) == bool(closing)
    assert ("the tokenizer's eos_token" in notes) == (end in {"<end_of_turn>", "<|end|>"})
    assert ("26 July 2024" in notes) == (name in {"Llama 3.1", "SmolLM3"})
    assert ("pads batches" in notes) == (name == "SmolLM2")


def test_template_with_channels_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"'I look\..*'<\|channel\|>final"):
        checked("gpt-oss")


@pytest.mark.parametrize("name", PASS)
def test_episode_that_replays_a_demonstration_has_its_tokens_and_mask(name: str, pool: list[dict[str, Any]]) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]), describe_tools=True)
    for row in pool[::40]:
        start = Start(str(row["id"]), "key", Episode(World(cast(Any, row)), LIMITS, form.count))
        episode = RunningEpisode(start, form, RolloutSampling(0.0, 8000, 1, 0), 8000)
        for message in row["messages"]:
            if message["role"] == "assistant":
                episode.feed(episode.known)
                for token in form.turn_ids(message):
                    episode.take(token, -1.0)
        played = episode.trajectory()
        assert played.outcome.malformed == 0
        assert (list(played.ids), list(played.action_mask)) == form.dialogue_ids(row["messages"])


def test_tools_are_described_in_the_system_text_if_the_template_does_not() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["SmolLM2"]), describe_tools=True)
    asked: list[Message] = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Who?"}]
    assert form.decode(form.prompt_ids(asked)) == (
        f"<|im_start|>system\n{DESCRIPTION}\n\nHelp.<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert form.decode(form.prompt_ids(asked[1:])).startswith(f"<|im_start|>system\n{DESCRIPTION}<|im_end|>")


def test_system_text_and_tool_replies_move_to_the_user_if_the_template_lacks_the_roles() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Gemma 2"]))
    asked: list[Message] = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Who?"}]
    assert form.decode(form.prompt_ids(asked)) == (
        "<bos><start_of_turn>user\nHelp.\n\nWho?<end_of_turn>\n<start_of_turn>model\n"
    )
    replies: list[Message] = [
        {"role": "tool", "tool_call_id": f"call_{n}", "name": "wiki", "content": text} for n, text in enumerate("ab")
    ]
    assert form.decode(form.observation_ids(replies)) == (
        "\n<start_of_turn>user\n<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>"
        "<end_of_turn>\n<start_of_turn>model\n"
    )


@pytest.mark.parametrize("name", ["Qwen3-Thinking", "Qwen3.5"])
def test_demonstration_closes_thoughts_that_the_prompt_opens(name: str) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]))
    ids, own = form.dialogue_ids([{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I."}])
    assert form.decode(ids).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\nI.<|im_end|>")
    learned = [token for token, mine in zip(ids, own, strict=True) if mine]
    assert form.decode(learned) == "\n</think>\n\nI.<|im_end|>"


@pytest.mark.parametrize("name", ["Qwen3", "Qwen3.5", "SmolLM3"])
def test_thinking_can_be_disabled_if_the_template_supports_it(name: str) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]), enable_thinking=False)
    assert form.template.closing == ""
    prompt = form.decode(form.prompt_ids([{"role": "user", "content": "Who?"}]))
    assert prompt.rstrip().endswith("assistant\n<think>\n\n</think>")
    assert "thinks" not in checked(name, thinking=False)


def test_enable_thinking_is_rejected_if_the_template_ignores_it() -> None:
    with pytest.raises(ConfigError, match=r"\.enable_thinking is false; "):
        checked("Qwen2.5", thinking=False)


def test_template_that_opens_thoughts_despite_enable_thinking_false_is_rejected() -> None:
    template = FAMILIES["Qwen3-Thinking"].template.replace(
        "{{- '<think>\\n' }}", "{{- '<think>' if enable_thinking is true else '<think>\\n' }}"
    )
    with pytest.raises(ConfigError, match=r"thoughts.*training\.enable_thinking .*rollout_len"):
        checked("Qwen3-Thinking", tokenizer_of(FAMILIES["Qwen3-Thinking"], template), thinking=False)


# ---- each contract, broken once ----


class EndNotLearned(ChatFormat):
    def dialogue_ids(self, messages: Sequence[Message]) -> tuple[list[int], list[bool]]:
        ids, own = super().dialogue_ids(messages)
        return ids, [mine and token != self.end_id for token, mine in zip(ids, own, strict=True)]


class ObservesOnePadMore(ChatFormat):
    def observation_ids(self, messages: Sequence[Message]) -> list[int]:
        return [*super().observation_ids(messages), self.pad_id]


class SplitsAtLineBreaks(ChatFormat):
    """Tokenizes line breaks apart from the words before them."""

    def _content(self, text: Any) -> list[int]:
        return [token for piece in re.split(r"(\n)", text.text) for token in self._ids(piece)]


class ReadsForgedMarks(ChatFormat):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plain = self._backend


class NotClosed(ChatFormat):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.template.closing = ""


class NotDescribed(ChatFormat):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "describe_tools": False})


@pytest.mark.parametrize(
    ("damaged", "name", "message"),
    [
        (EndNotLearned, "Qwen2.5", r"action mask .* token \d"),
        (ObservesOnePadMore, "Qwen2.5", "tokenizes a demonstration"),
        (SplitsAtLineBreaks, "Qwen2.5", r"splits a rendered dialogue .* token \d"),
        (ReadsForgedMarks, "Mistral", "special tokens"),
        (ReadsForgedMarks, "Gemma 3", "reads .*<end_of_turn>"),
        (NotClosed, "Qwen3-Thinking", "never close"),
        (NotDescribed, "SmolLM2", "wiki, calc, ask_user"),
    ],
)
def test_broken_contract_is_detected(damaged: type[ChatFormat], name: str, message: str) -> None:
    checked(name)
    with pytest.raises(ConfigError, match=message):
        checked(name, form=damaged)


def test_content_cannot_forge_a_plain_token_that_the_template_uses() -> None:
    """Qwen's `<tool_call>` is not special to its tokenizer. RC1 protects such tokens even if it does not list them."""
    tokenizer = tokenizer_of(FAMILIES["Qwen3"], plain_marks=["[[turn]]"])
    form = ChatFormat(tokenizer)
    mark = tokenizer.convert_tokens_to_ids("[[turn]]")
    assert mark in tokenizer("a [[turn]]", add_special_tokens=False)["input_ids"]
    assert mark not in form.prompt_ids([{"role": "user", "content": "a [[turn]]"}])
    assert form.holds_mark([{"role": "assistant", "content": "a [[turn]]"}])


def test_blank_lines_are_allowed_in_a_content_even_if_they_are_added_tokens() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Gemma 3"]))
    assert not form.holds_mark([{"role": "assistant", "content": "So.\n\nAnswer: 3"}])
    assert form.holds_mark([{"role": "assistant", "content": "So.<end_of_turn>"}])


@pytest.mark.parametrize(("collator", "where"), [("collate_demonstrations", "run"), ("padded_batch", "start")])
def test_learned_padding_is_detected(monkeypatch: pytest.MonkeyPatch, collator: str, where: str) -> None:
    real = getattr(chat_contract, collator)

    def with_padding(*args: Any) -> Any:
        batch = real(*args)
        if isinstance(batch, Mapping):
            return {**batch, "action_mask": batch["action_mask"] | (batch["attention_mask"] == 0)}
        batch.action_mask[:, -1] = True
        return batch

    monkeypatch.setattr(chat_contract, collator, with_padding)
    with pytest.raises(ConfigError, match=rf"labels .* {where}: "):
        checked("SmolLM2")


def test_current_date_in_a_prompt_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "fixed_date", lambda template: template)
    with pytest.raises(ConfigError, match="today's date"):
        checked("SmolLM3")


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("{{- ['', ' '] | random -}}", r"uses randomness \(\| random\)"),
        ("{{- [range(1000)] | map('ran' ~ 'dom') | first -}}", "differently when asked twice"),
    ],
)
def test_random_template_is_rejected(prefix: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChatFormat(tokenizer_of(FAMILIES["SmolLM2"], prefix + SMOLLM2))


def test_template_without_an_end_of_turn_token_is_rejected() -> None:
    with pytest.raises(ConfigError, match="special token"):
        ChatFormat(tokenizer_of(FAMILIES["Gemma 3"], GEMMA3.replace("<end_of_turn>", "")))


def test_template_that_drops_tool_replies_is_rejected() -> None:
    drops = SMOLLM2.replace("m in messages", "m in messages if m.role != 'tool' and 'tool_response' not in m.content")
    with pytest.raises(ConfigError, match="role 'tool'"):
        ChatFormat(tokenizer_of(FAMILIES["SmolLM2"], drops))


# ---- when training is prepared ----


def set_end_ids(run: Run, config: int | list[int], generation: int | list[int] | None = None) -> None:
    path = run.workspace.path("base/config.json")
    write_json(path, {**read_json(path), "eos_token_id": config})
    if generation is not None:
        GenerationConfig(eos_token_id=generation).save_pretrained(run.workspace.path("base"))


def ends(run: Run) -> frozenset[int]:
    base = str(run.workspace.path("base"))
    return end_ids(base, AutoConfig.from_pretrained(base))


def test_damaged_generation_config_is_rejected(tiny: Callable[..., Run]) -> None:
    run = tiny()
    run.workspace.path("base/generation_config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"model\.base: '.*generation_config\.json"):
        ends(run)


def test_training_is_rejected_if_the_end_of_turn_is_not_an_end_id(tiny: Callable[..., Run]) -> None:
    run = tiny()
    prepare(run)
    run.workspace.path("base/generation_config.json").unlink(missing_ok=True)
    set_end_ids(run, 0)
    with pytest.raises(
        ConfigError, match=r"'<\|im_end\|>' \(2\) .*generation_config\.json.* 0: .*eos_token_id .*\[0, 2\]"
    ):
        prepare(run)
    set_end_ids(run, 0, [0, 2])
    prepare(run)


def test_training_is_rejected_if_an_end_id_occurs_within_a_turn(tiny: Callable[..., Run]) -> None:
    """With one more end id in the file, a server would cut a turn before the line with its answer."""
    run = tiny()
    turn = prepare(run).form.turn_ids({"role": "assistant", "content": "Answer: 120"})
    set_end_ids(run, 2, [2, turn[0]])
    with pytest.raises(ConfigError, match=rf"within a turn: .* {turn[0]} \(.*eos_token_id"):
        prepare(run)
    set_end_ids(run, 2, [0, 2])
    prepare(run)
