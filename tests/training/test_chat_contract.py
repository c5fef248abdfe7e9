"""Templates of public models: each passes or is refused in one sentence; and each contract, broken once, is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
import transformers.utils.chat_template_utils as rendering
import trl
from transformers import AutoConfig, GenerationConfig, PreTrainedTokenizerBase

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.turn import Limits, Turn, read_text
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training import chat_contract, chat_template, warm_start
from rc1_lib.training.base_model import end_ids
from rc1_lib.training.chat_contract import CHECKS, check_chat_contract
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.training.chat_template import MissingRoles
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start
from rc1_lib.training.tool_schemas import DESCRIPTION
from rc1_lib.workspace.artifacts import read_json, write_json
from tests.training.chat_templates import FAMILIES, GEMMA3, SMOLLM2, SMOLLM3, ends_of, tokenizer_of
from tests.training.tiny_world import shipped

LIMITS = Limits(turns=8, tokens=8000, tool_errors=2, malformed=1, calls=5, turn_chars=4000, argument_chars=1000)
OWN_ROLES, ANSWERS_OF_USERS, ALL_OF_USERS = (
    MissingRoles(False, False),
    MissingRoles(False, True),
    MissingRoles(True, True),
)

PASS: dict[str, tuple[str, MissingRoles, str, str]] = {
    "Qwen2.5": ("template", OWN_ROLES, "", "<|im_end|>"),
    "Qwen3": ("template", OWN_ROLES, "", "<|im_end|>"),
    "Qwen3-Thinking": ("template", OWN_ROLES, "\n</think>\n\n", "<|im_end|>"),
    "Qwen3.5": ("system text", OWN_ROLES, "\n</think>\n\n", "<|im_end|>"),
    "Llama 3.1": ("system text", ANSWERS_OF_USERS, "", "<|eot_id|>"),
    "Gemma 2": ("system text", ALL_OF_USERS, "", "<end_of_turn>"),
    "Gemma 3": ("system text", ANSWERS_OF_USERS, "", "<end_of_turn>"),
    "Phi": ("system text", ANSWERS_OF_USERS, "", "<|end|>"),
    "SmolLM2": ("system text", OWN_ROLES, "", "<|im_end|>"),
    "SmolLM3": ("system text", OWN_ROLES, "", "<|im_end|>"),
    "Mistral": ("system text", ALL_OF_USERS, "", "</s>"),
}
"""A template that passes -> who describes the tools, what it lacks, what closes thoughts, what ends a turn."""
INSTALLED = {
    "qwen2_5": "Qwen2.5",
    "qwen3": "Qwen3",
    "qwen3_5_think": "Qwen3.5",
    "llama3_2": "Llama 3.1",
    "gemma": "Gemma 2",
    "gemma3": "Gemma 3",
    "phi3_5": "Phi",
    "gptoss": "gpt-oss",
}
"""Templates that TRL brings along, as their models publish them -> their form in small."""


def settings(*, describe: bool = True, thinking: bool | None = None) -> RunConfig:
    config = shipped()
    said = {"describe_tools": describe, "enable_thinking": thinking}
    return config.model_copy(update={"training": config.training.model_copy(update=said)})


def looked_at(
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
def test_a_template_passes(name: str) -> None:
    described, manner, closing, end = PASS[name]
    form = ChatFormat(tokenizer_of(FAMILIES[name]), describe_tools=True)
    found = form.template
    assert (found.described, found.missing_roles, found.closing, found.end) == (described, manner, closing, end)
    said = looked_at(name)
    assert ("RC1 describes the tools" in said) == (described == "system text")
    assert ("thinks before it answers" in said) == bool(closing)
    assert ("which is not the tokenizer's eos_token" in said) == (end in {"<end_of_turn>", "<|end|>"})
    assert ("26 July 2024" in said) == (name in {"Llama 3.1", "SmolLM3"})
    assert ("pads batches with its end-of-turn token" in said) == (name == "SmolLM2")


def test_a_template_with_channels_is_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"'I look\..*'<\|channel\|>final"):
        looked_at("gpt-oss")


@pytest.mark.parametrize("installed", INSTALLED)
def test_the_published_template_is_judged_as_its_form_in_small(installed: str) -> None:
    name = INSTALLED[installed]
    template = (Path(trl.__file__).parent / "chat_templates" / f"{installed}.jinja").read_text(encoding="utf-8")

    def judged(tokenizer: PreTrainedTokenizerBase) -> tuple[object, ...]:
        try:
            form = ChatFormat(tokenizer, describe_tools=True)
        except ConfigError as error:
            return (str(error).split("base_model: ")[1][:60],)
        found = form.template
        said = check_chat_contract(form, settings(), ends_of(FAMILIES[name], tokenizer))
        return found.described, found.missing_roles, found.closing, found.end, said

    assert judged(tokenizer_of(FAMILIES[name], template)) == judged(tokenizer_of(FAMILIES[name]))


@pytest.mark.parametrize("name", PASS)
def test_a_turn_that_is_decoded_is_read_by_the_world(name: str) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]), describe_tools=True)
    for messages in chat_contract._DIALOGUES:
        for message in messages:
            if message["role"] == "assistant":
                turn = read_text(form.decode(form.turn_ids(message)[:-1]), LIMITS)
                assert isinstance(turn, Turn)
                assert (turn.content, len(turn.calls)) == (message["content"], len(message.get("tool_calls", ())))


@pytest.mark.parametrize("name", PASS)
def test_an_episode_in_which_the_demonstration_is_said_has_its_tokens_and_its_mask(
    name: str, pool: list[dict[str, Any]]
) -> None:
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


def test_tools_that_a_template_does_not_describe_stand_in_the_system_text() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["SmolLM2"]), describe_tools=True)
    asked: list[Message] = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Who?"}]
    assert form.decode(form.prompt_ids(asked)) == (
        f"<|im_start|>system\n{DESCRIPTION}\n\nHelp.<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert form.decode(form.prompt_ids(asked[1:])).startswith(f"<|im_start|>system\n{DESCRIPTION}<|im_end|>")


def test_a_system_role_that_a_template_lacks_is_said_by_the_user() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Gemma 2"]))
    asked: list[Message] = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Who?"}]
    assert form.decode(form.prompt_ids(asked)) == (
        "<bos><start_of_turn>user\nHelp.\n\nWho?<end_of_turn>\n<start_of_turn>model\n"
    )
    told: list[Message] = [
        {"role": "tool", "tool_call_id": f"call_{n}", "name": "wiki", "content": text} for n, text in enumerate("ab")
    ]
    assert form.decode(form.observation_ids(told)) == (
        "\n<start_of_turn>user\n<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>"
        "<end_of_turn>\n<start_of_turn>model\n"
    )


@pytest.mark.parametrize("name", ["Qwen3-Thinking", "Qwen3.5"])
def test_a_demonstration_closes_the_thoughts_that_the_prompt_opens(name: str) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]))
    ids, own = form.dialogue_ids([{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I."}])
    assert form.decode(ids).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\nI.<|im_end|>")
    learned = [token for token, mine in zip(ids, own, strict=True) if mine]
    assert form.decode(learned) == "\n</think>\n\nI.<|im_end|>"


@pytest.mark.parametrize("name", ["Qwen3", "Qwen3.5", "SmolLM3"])
def test_thinking_can_be_switched_off_where_the_template_reads_it(name: str) -> None:
    form = ChatFormat(tokenizer_of(FAMILIES[name]), enable_thinking=False)
    assert form.template.closing == ""
    prompt = form.decode(form.prompt_ids([{"role": "user", "content": "Who?"}]))
    assert prompt.rstrip().endswith("assistant\n<think>\n\n</think>")
    assert "thinks" not in looked_at(name, thinking=False)


@pytest.mark.parametrize("thinking", [True, False])
def test_a_value_that_no_template_reads_is_refused(thinking: bool) -> None:
    with pytest.raises(ConfigError, match=rf" enable_thinking, .*\.enable_thinking is {str(thinking).lower()}; "):
        looked_at("Qwen2.5", thinking=thinking)


def test_thoughts_that_cannot_be_switched_off_are_refused() -> None:
    template = FAMILIES["Qwen3-Thinking"].template.replace(
        "{{ '<think>\\n' }}", "{{ '<think>' if enable_thinking is true else '<think>\\n' }}"
    )
    with pytest.raises(ConfigError, match=r"thoughts.*training\.enable_thinking .*rollout_len"):
        looked_at("Qwen3-Thinking", tokenizer_of(FAMILIES["Qwen3-Thinking"], template), thinking=False)


def test_a_full_stop_and_the_line_break_behind_it_are_the_token_that_a_server_makes_of_them() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Qwen3"]))
    told: list[Message] = [{"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": "A page."}]
    ids = form.observation_ids(told)
    text = "\n<|im_start|>user\n<tool_response>\nA page.\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    assert ids == form.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ".\n" in [form.decode([token]) for token in ids]


class Clock(datetime):
    """The clock of a machine on which it is the year 2031."""

    @classmethod
    def now(cls, tz: Any = None) -> Clock:
        return cls(2031, 2, 3, 4, 5, 6, tzinfo=tz)


def test_a_run_that_is_resumed_on_another_day_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Message] = [{"role": "user", "content": "Who?"}]
    tokenizer = tokenizer_of(FAMILIES["SmolLM3"])
    before = ChatFormat(tokenizer).prompt_ids(asked)
    monkeypatch.setattr(rendering, "datetime", Clock)
    assert "2031" in str(tokenizer.apply_chat_template(asked, tokenize=False))
    assert ChatFormat(tokenizer).prompt_ids(asked) == before
    assert "26 July 2024" in ChatFormat(tokenizer).decode(before)


# ---- every contract, broken once ----


class MaskOffByOne(ChatFormat):
    def dialogue_ids(self, messages: Sequence[Message]) -> tuple[list[int], list[bool]]:
        ids, own = super().dialogue_ids(messages)
        return ids, [own[-1], *own[:-1]]


class EndNotLearned(ChatFormat):
    def dialogue_ids(self, messages: Sequence[Message]) -> tuple[list[int], list[bool]]:
        ids, own = super().dialogue_ids(messages)
        return ids, [mine and token != self.end_id for token, mine in zip(ids, own, strict=True)]


class SampledOtherwise(ChatFormat):
    def observation_ids(self, messages: Sequence[Message]) -> list[int]:
        return [*super().observation_ids(messages), self.pad_id]


class ReadsOtherwise(ChatFormat):
    """Tokenises line breaks by themselves, as if they stood in another piece than the words before them."""

    def _content(self, text: Any) -> list[int]:
        return [token for piece in re.split(r"(\n)", text.text) for token in self._ids(piece)]


class ReadsMarks(ChatFormat):
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
    ("damaged", "name", "words"),
    [
        (MaskOffByOne, "Qwen2.5", "has an action mask that is wrong from token"),
        (EndNotLearned, "Qwen2.5", "has an action mask that is wrong from token"),
        (SampledOtherwise, "Qwen2.5", "tokenizes a demonstration differently"),
        (ReadsOtherwise, "Qwen2.5", "splits a rendered dialogue differently from its parts: at token"),
        (ReadsMarks, "Mistral", "in what a user or a tool says as its own special tokens"),
        (ReadsMarks, "Gemma 3", "reads .*<end_of_turn>"),
        (NotClosed, "Qwen3-Thinking", "a demonstration would never close them"),
        (NotDescribed, "SmolLM2", "renders a prompt that does not describe wiki, calc, ask_user"),
    ],
)
def test_a_broken_contract_is_seen(damaged: type[ChatFormat], name: str, words: str) -> None:
    looked_at(name)
    with pytest.raises(ConfigError, match=words):
        looked_at(name, form=damaged)


def test_a_token_that_only_the_template_uses_is_no_mark_in_a_content() -> None:
    """Qwen's `<tool_call>` is not special to its tokenizer; one that RC1 has no list of is protected too."""
    tokenizer = tokenizer_of(FAMILIES["Qwen3"], plain_marks=["[[turn]]"])
    form = ChatFormat(tokenizer)
    mark = tokenizer.convert_tokens_to_ids("[[turn]]")
    assert mark in tokenizer("a [[turn]]", add_special_tokens=False)["input_ids"]
    assert mark not in form.prompt_ids([{"role": "user", "content": "a [[turn]]"}])
    assert form.holds_mark([{"role": "assistant", "content": "a [[turn]]"}])


def test_blank_lines_are_no_mark_even_where_they_are_tokens_of_their_own() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Gemma 3"]))
    assert not form.holds_mark([{"role": "assistant", "content": "So.\n\nAnswer: 3"}])
    assert form.holds_mark([{"role": "assistant", "content": "So.<end_of_turn>"}])


@pytest.mark.parametrize(("learned", "where"), [("collate_demonstrations", "run"), ("padded_batch", "start")])
def test_padding_that_is_learned_is_seen(monkeypatch: pytest.MonkeyPatch, learned: str, where: str) -> None:
    real = getattr(chat_contract, learned)

    def with_padding(*args: Any) -> Any:
        batch = real(*args)
        if isinstance(batch, Mapping):
            return {**batch, "action_mask": batch["action_mask"] | (batch["attention_mask"] == 0)}
        batch.action_mask[:, -1] = True
        return batch

    monkeypatch.setattr(chat_contract, learned, with_padding)
    with pytest.raises(ConfigError, match=rf"labels .* {where}: "):
        looked_at("SmolLM2")


def test_an_end_that_is_masked_as_if_it_were_padding_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """SmolLM2 pads with its end of turn: a collator that masks by the token would never learn to end a turn."""

    def masks_pads(dialogues: Any, pad_id: int) -> Any:
        batch = warm_start.padded_batch(dialogues, pad_id)
        return {**batch, "action_mask": batch["action_mask"] & (batch["input_ids"] != pad_id)}

    monkeypatch.setattr(chat_contract, "padded_batch", masks_pads)
    with pytest.raises(ConfigError, match=r"labels .* start: "):
        looked_at("SmolLM2")


def test_a_date_that_moves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "fixed_date", lambda template: template)
    with pytest.raises(ConfigError, match="today's date"):
        looked_at("SmolLM3")
    by_another_name = "{%- set now = strftime_now -%}" + SMOLLM3.replace("strftime_now('%d %B %Y')", "now('%d')")
    tokenizer = tokenizer_of(FAMILIES["SmolLM3"], by_another_name)
    with pytest.raises(ConfigError, match=r"\bdate\b.*midnight"):
        looked_at("SmolLM3", tokenizer)


def test_a_date_whose_form_is_made_up_on_the_way_is_refused() -> None:
    tokenizer = tokenizer_of(FAMILIES["SmolLM3"], SMOLLM3.replace("'%d %B %Y'", "'%d' ~ ' %B'"))
    with pytest.raises(ConfigError, match="today's date"):
        ChatFormat(tokenizer)


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        ("{{- ['', ' '] | random -}}", r"uses randomness \(\| random\)"),
        ("{{- ' ' if range(1000)|random == 0 -}}", r"uses randomness \(\|random\)"),
        ("{{- lipsum(n=1) -}}", r"uses randomness \(lipsum\)"),
        ("{{- [range(1000)] | map('ran' ~ 'dom') | first -}}", "differently when asked twice"),
    ],
)
def test_a_template_that_draws_by_chance_is_refused(drawn: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"the chat template .* {words}"):
        ChatFormat(tokenizer_of(FAMILIES["SmolLM2"], drawn + SMOLLM2))


def test_a_dialogue_that_a_template_refuses_is_named_in_a_sentence() -> None:
    form = ChatFormat(tokenizer_of(FAMILIES["Gemma 3"]))
    asked: list[Message] = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    with pytest.raises(ConfigError, match=r"\(user and assistant take turns\)"):
        form.prompt_ids(asked)


def test_a_turn_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="special token"):
        ChatFormat(tokenizer_of(FAMILIES["Gemma 3"], GEMMA3.replace("<end_of_turn>", "")))


def test_a_reply_that_is_left_out_in_every_role_is_seen() -> None:
    deaf = SMOLLM2.replace("m in messages", "m in messages if m.role != 'tool' and 'tool_response' not in m.content")
    with pytest.raises(ConfigError, match="role 'tool'"):
        ChatFormat(tokenizer_of(FAMILIES["SmolLM2"], deaf))


# ---- where it is looked at ----


def with_end(run: Run, config: int | list[int], generation: int | list[int] | None = None) -> None:
    path = run.workspace.path("base/config.json")
    write_json(path, {**read_json(path), "eos_token_id": config})
    if generation is not None:
        GenerationConfig(eos_token_id=generation).save_pretrained(run.workspace.path("base"))


def ends(run: Run) -> frozenset[int]:
    base = str(run.workspace.path("base"))
    return end_ids(base, AutoConfig.from_pretrained(base))


def test_where_generating_stops_stands_in_generation_config_else_in_config(tiny: Callable[..., Run]) -> None:
    run = tiny()
    GenerationConfig().save_pretrained(run.workspace.path("base"))
    run.workspace.path("base/generation_config.json").unlink()
    assert ends(run) == {2}
    with_end(run, [0, 2])
    assert ends(run) == {0, 2}
    with_end(run, 0, [1, 2])
    assert ends(run) == {1, 2}


def test_a_generation_config_that_is_damaged_is_refused(tiny: Callable[..., Run]) -> None:
    run = tiny()
    run.workspace.path("base/generation_config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"model\.base: '.*generation_config\.json"):
        ends(run)


def test_no_training_is_prepared_where_generating_would_not_stop(tiny: Callable[..., Run]) -> None:
    run = tiny()
    prepare(run)
    run.workspace.path("base/generation_config.json").unlink(missing_ok=True)
    with_end(run, 0)
    with pytest.raises(
        ConfigError, match=r"'<\|im_end\|>' \(2\) .*generation_config\.json.* 0: .*eos_token_id .*\[0, 2\]"
    ):
        prepare(run)
    with_end(run, 0, [0, 2])
    prepare(run)


def test_no_training_is_prepared_where_generating_would_stop_within_a_turn(tiny: Callable[..., Run]) -> None:
    """One more number in one file: a server would end "It has 120 pages." before the line with its answer."""
    run = tiny()
    said = prepare(run).form.turn_ids({"role": "assistant", "content": "Answer: 120"})
    with_end(run, 2, [2, said[0]])
    with pytest.raises(ConfigError, match=rf"would stop within a turn: .* stops at {said[0]} \(.*from eos_token_id"):
        prepare(run)
    with_end(run, 2, [0, 2])
    prepare(run)


def test_no_training_is_prepared_with_a_value_that_the_template_does_not_read(tiny: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match=r" enable_thinking, .*training\.enable_thinking is false; "):
        prepare(tiny("training.enable_thinking=false"))


def test_every_check_says_what_it_looks_at() -> None:
    assert list(CHECKS) == [
        "tokens", "mask", "padding", "tools", "roles", "thoughts", "date", "end of turn", "forged marks",
    ]  # fmt: skip
    assert all((check.__doc__ or "").strip() for check in CHECKS.values())
    assert turn_text({"role": "assistant", "content": "I."}) == "I."
