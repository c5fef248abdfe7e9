"""Public models' chat templates, with a small tokenizer that has their special tokens.

Most are the copies that TRL ships. Three are short versions in our own words, which follow the published form in what
RC1's dialogues use: roles, special tokens, how tools are described and called, thoughts, and what is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import trl
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tests.training.tiny_world import pool_rows

_SPLIT = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""How Llama 3 and Qwen split texts: a full stop and the line break after it are one piece."""

_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")


def _published(name: str) -> str:
    """TRL's copy of a published template."""
    return (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")


QWEN3, GEMMA3 = _published("qwen3"), _published("gemma3")
_MAY_THINK = """\
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
"""
QWEN3_THINKING = QWEN3.replace(_MAY_THINK, "    {{- '<think>\\n' }}\n")

SMOLLM2 = """\
{%- for m in messages -%}
{%- if loop.first and m.role != 'system' %}{{ '<|im_start|>system\\nYou are SmolLM.<|im_end|>\\n' }}{% endif -%}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}"""

SMOLLM3 = """\
{%- set mode = '/no_think' if enable_thinking is defined and not enable_thinking else '/think' -%}
{{- '<|im_start|>system\\n## Metadata\\nToday Date: ' + strftime_now('%d %B %Y') }}
{{- '\\nReasoning Mode: ' + mode + '\\n\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content.rstrip() + '\\n\\n' }}{% endif -%}
{%- if xml_tools %}{% for t in xml_tools %}{{ t | string + '\\n' }}{% endfor %}{% endif -%}
{{- '<|im_end|>\\n' }}
{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' + ('<think>\\n\\n</think>\\n' if mode == '/no_think' else '') }}
{{- m.content.lstrip('\\n') + '<|im_end|>\\n' }}
{%- elif m.role != 'system' %}{{ '<|im_start|>user\\n' + m.content + '<|im_end|>\\n' }}{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' + ('<think>\\n\\n</think>\\n' if mode == '/no_think' else '') }}
{%- endif -%}"""

MISTRAL = """\
{{- bos_token }}
{%- if messages[0].role == 'system' -%}
{%- set system = messages[0].content %}{% set messages = messages[1:] -%}
{%- endif -%}
{%- for m in messages | rejectattr('role', 'equalto', 'tool') -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) and not m.tool_calls -%}
{{ raise_exception('user and assistant take turns') }}
{%- endif -%}
{%- endfor -%}
{%- set asked = (messages | selectattr('role', 'equalto', 'user') | list)[-1] -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}
{%- if tools and m == asked %}{{ '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{% endif -%}
{{- '[INST]' + (system + '\\n\\n' if system is defined and m == asked else '') + m.content + '[/INST]' }}
{%- elif m.tool_calls -%}
{%- for c in m.tool_calls -%}
{%- if c.id | length != 9 %}{{ raise_exception('ids of calls have nine letters') }}{% endif -%}
{{- '[TOOL_CALLS][' + (c.function | tojson) + ']' + eos_token }}
{%- endfor -%}
{%- elif m.role == 'tool' -%}
{%- if m.tool_call_id | length != 9 %}{{ raise_exception('ids of calls have nine letters') }}{% endif -%}
{{- '[TOOL_RESULTS]{"content": ' + (m.content | string) + '}[/TOOL_RESULTS]' }}
{%- else %}{{ m.content + eos_token }}{% endif -%}
{%- endfor -%}"""


@dataclass(frozen=True)
class Family:
    """A model's chat form.

    Attributes:
        template: of its tokenizer.
        marks: its special tokens; the first one pads.
        eos: the tokenizer's `eos_token`.
        ends: the tokens at which its generation_config.json stops.
        plain_marks: tokens that the tokenizer does not call special, though the template uses them.
        pad: the padding token, if it is another.
    """

    template: str
    marks: tuple[str, ...]
    eos: str
    ends: tuple[str, ...]
    plain_marks: tuple[str, ...] = ()
    pad: str = ""


_IM = ("<|im_end|>", "<|endoftext|>")
_LLAMA = (
    "<|end_of_text|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
)
_GEMMA_MARKS = ("<pad>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>")
_HARMONY = ("<|endoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>")
_MISTRAL = (
    "<pad>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
)  # fmt: skip

FAMILIES = {
    "Qwen2.5": Family(_published("qwen2_5"), _CHATML, "<|im_end|>", _IM, _QWEN[:2]),
    "Qwen3": Family(QWEN3, _CHATML, "<|im_end|>", _IM, _QWEN),
    "Qwen3-Thinking": Family(QWEN3_THINKING, _CHATML, "<|im_end|>", _IM, _QWEN),
    "Qwen3.5": Family(_published("qwen3_5_think"), _CHATML, "<|im_end|>", _IM, _QWEN),
    "Llama 3.1": Family(_published("llama3_2"), _LLAMA, "<|eot_id|>", ("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")),
    "Gemma 2": Family(_published("gemma"), _GEMMA_MARKS, "<eos>", ("<eos>", "<end_of_turn>"), ("\n\n", "<table>")),
    "Gemma 3": Family(GEMMA3, _GEMMA_MARKS, "<eos>", ("<eos>", "<end_of_turn>"), ("\n\n", "<table>")),
    "Phi": Family(
        _published("phi3_5"),
        ("<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        "<|endoftext|>",
        ("<|endoftext|>", "<|end|>"),
    ),
    "SmolLM2": Family(SMOLLM2, _CHATML, "<|im_end|>", ("<|im_end|>",), pad="<|im_end|>"),
    "SmolLM3": Family(SMOLLM3, _CHATML, "<|im_end|>", ("<|im_end|>",), _QWEN),
    "gpt-oss": Family(_published("gptoss"), _HARMONY, "<|return|>", ("<|return|>", "<|endoftext|>", "<|call|>")),
    "Mistral": Family(MISTRAL, _MISTRAL, "</s>", ("</s>",)),
}


@cache
def _learned(marks: tuple[str, ...]) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=list(marks),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*_texts(), ".\n" * 400, "!\n" * 400, "\n\n" * 400], trainer)
    return tokenizer.to_str()


@cache
def _texts() -> tuple[str, ...]:
    return tuple(str(message["content"]) for row in pool_rows(3) for message in row["messages"])


def tokenizer_of(family: Family, template: str = "", plain_marks: Iterable[str] = ()) -> PreTrainedTokenizerBase:
    """A small tokenizer with the special tokens of a family, and its template or another one."""
    tokenizer = Tokenizer.from_str(_learned(family.marks))
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in (*family.plain_marks, *plain_marks)])
    made: Any = PreTrainedTokenizerFast
    bos = next((mark for mark in ("<s>", "<bos>", "<|begin_of_text|>") if mark in family.marks), None)
    wrapped: PreTrainedTokenizerBase = made(
        tokenizer_object=tokenizer,
        eos_token=family.eos,
        bos_token=bos,
        pad_token=family.pad or family.marks[0],
        chat_template=template or family.template,
        clean_up_tokenization_spaces=False,
        name_or_path="a-base",
    )
    return wrapped


def ends_of(family: Family, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The ids at which its generation_config.json stops."""
    return frozenset(int(tokenizer.convert_tokens_to_ids(mark)) for mark in family.ends)
