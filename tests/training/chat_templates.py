"""Short versions of public models' chat templates, in our own words, with a tokenizer that has their special tokens.

Each follows the published form in what RC1's dialogues use: roles, special tokens, how tools are described and called,
where thoughts are, and what the template rejects. Long texts (default prompts, instructions) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

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

_JSON_TOOLS = """\
{{- '# Tools\\n<tools>' }}{% for t in tools %}{{ '\\n' + (t | tojson) }}{% endfor -%}
{{- '\\n</tools>\\nCall one so:\\n<tool_call>\\n{"name": <name>, "arguments": <arguments>}\\n</tool_call>' }}"""

_TOOL_REPLIES = """\
{%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif -%}
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif -%}"""

_JSON_CALLS = """\
{%- for c in m.tool_calls or [] -%}
{%- if not loop.first or m.content %}{{ '\\n' }}{% endif -%}
{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' }}
{{- c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor -%}"""

_QWEN_SYSTEM = f"""\
{{%- set system = messages[0].content if messages[0].role == 'system' else DEFAULT -%}}
{{%- if tools -%}}{{{{ '<|im_start|>system\\n' + system + '\\n\\n' }}}}{_JSON_TOOLS}{{{{ '<|im_end|>\\n' }}}}
{{%- elif system %}}{{{{ '<|im_start|>system\\n' + system + '<|im_end|>\\n' }}}}{{% endif -%}}"""

QWEN2_5 = f"""\
{_QWEN_SYSTEM.replace("DEFAULT", "'You are Qwen.'")}
{{%- for m in messages -%}}
{{%- if m.role == 'tool' -%}}{_TOOL_REPLIES}
{{%- elif m.role != 'system' or not loop.first -%}}
{{{{- '<|im_start|>' + m.role + '\\n' + m.content }}}}{_JSON_CALLS}{{{{ '<|im_end|>\\n' }}}}
{{%- endif -%}}{{%- endfor -%}}
{{%- if add_generation_prompt %}}{{{{ '<|im_start|>assistant\\n' }}}}{{% endif -%}}"""

_QWEN3 = f"""\
{_QWEN_SYSTEM.replace("DEFAULT", "''")}
{{%- set at = namespace(asked=0) -%}}
{{%- for m in messages -%}}
{{%- if m.role == 'user' and not m.content.startswith('<tool_response>') -%}}
{{%- set at.asked = loop.index0 -%}}
{{%- endif -%}}
{{%- endfor -%}}
{{%- for m in messages -%}}
{{%- if m.role == 'tool' -%}}{_TOOL_REPLIES}
{{%- elif m.role == 'assistant' -%}}
{{%- set said = m.content.split('</think>')[-1].lstrip('\\n') -%}}
{{{{- '<|im_start|>assistant\\n' }}}}
{{%- if loop.last and loop.index0 > at.asked %}}{{{{ '<think>\\n\\n</think>\\n\\n' }}}}{{% endif -%}}
{{{{- said }}}}{_JSON_CALLS}{{{{ '<|im_end|>\\n' }}}}
{{%- elif m.role != 'system' or not loop.first -%}}
{{{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}}}
{{%- endif -%}}{{%- endfor -%}}
{{%- if add_generation_prompt %}}{{{{ '<|im_start|>assistant\\n' }}}}OPENING{{% endif -%}}"""
_EMPTY = "{{ '<think>\\n\\n</think>\\n\\n' }}"
QWEN3 = _QWEN3.replace("OPENING", f"{{% if enable_thinking is defined and not enable_thinking %}}{_EMPTY}{{% endif %}}")
QWEN3_THINKING = _QWEN3.replace("OPENING", "{{ '<think>\\n' }}")

QWEN3_5 = f"""\
{{%- set system = messages[0].content | trim if messages[0].role == 'system' else '' -%}}
{{%- if tools -%}}
{{{{- '<|im_start|>system\\n# Tools\\n<tools>' }}}}{{% for t in tools %}}{{{{ '\\n' + (t | tojson) }}}}{{% endfor -%}}
{{{{- '\\n</tools>\\n<tool_call>\\n<function=name>\\n<parameter=a>\\nb\\n</parameter>\\n</function>\\n</tool_call>' }}}}
{{{{- ('\\n\\n' + system if system else '') + '<|im_end|>\\n' }}}}
{{%- elif system %}}{{{{ '<|im_start|>system\\n' + system + '<|im_end|>\\n' }}}}{{% endif -%}}
{{%- set at = namespace(asked=-1) -%}}
{{%- for m in messages -%}}
{{%- if m.role == 'user' and not m.content.startswith('<tool_response>') -%}}
{{%- set at.asked = loop.index0 -%}}
{{%- endif -%}}
{{%- endfor -%}}
{{%- if at.asked < 0 %}}{{{{ raise_exception('no user message') }}}}{{% endif -%}}
{{%- for m in messages -%}}
{{%- if m.role == 'tool' -%}}{_TOOL_REPLIES}
{{%- elif m.role == 'assistant' -%}}
{{{{- '<|im_start|>assistant\\n' + ('<think>\\n\\n</think>\\n\\n' if loop.index0 > at.asked else '') }}}}
{{{{- m.content.split('</think>')[-1] | trim + '<|im_end|>\\n' }}}}
{{%- elif m.role == 'user' %}}{{{{ '<|im_start|>user\\n' + m.content | trim + '<|im_end|>\\n' }}}}
{{%- elif not loop.first %}}{{{{ raise_exception('a system message comes first') }}}}{{% endif -%}}
{{%- endfor -%}}
{{%- if add_generation_prompt -%}}{{{{ '<|im_start|>assistant\\n' }}}}
{{%- if enable_thinking is defined and not enable_thinking -%}}{_EMPTY}
{{%- else %}}{{{{ '<think>\\n' }}}}{{% endif %}}{{% endif -%}}"""

_HEAD = "'<|start_header_id|>' + {} + '<|end_header_id|>\\n\\n'"
LLAMA3 = f"""\
{{{{- bos_token }}}}
{{%- if not date_string is defined %}}{{% set date_string = strftime_now("%d %b %Y") %}}{{% endif -%}}
{{%- if messages[0].role == 'system' -%}}
{{%- set system = messages[0].content | trim %}}{{% set messages = messages[1:] -%}}
{{%- else %}}{{% set system = '' %}}{{% endif -%}}
{{{{- {_HEAD.format("'system'")} + 'Today Date: ' + date_string + '\\n\\n' + system + '<|eot_id|>' }}}}
{{%- if tools -%}}
{{{{- {_HEAD.format("'user'")} + 'Answer with {{"name": name, "parameters": arguments}}.\\n\\n' }}}}
{{%- for t in tools %}}{{{{ (t | tojson(indent=4)) + '\\n\\n' }}}}{{% endfor -%}}
{{{{- messages[0].content | trim + '<|eot_id|>' }}}}{{% set messages = messages[1:] %}}
{{%- endif -%}}
{{%- for m in messages -%}}
{{%- if m.tool_calls -%}}
{{%- if m.tool_calls | length != 1 %}}{{{{ raise_exception('one call at once') }}}}{{% endif -%}}
{{%- set f = m.tool_calls[0].function -%}}
{{{{- {_HEAD.format("'assistant'")} + '{{"name": "' + f.name + '", "parameters": ' }}}}
{{{{- (f.arguments | tojson) + '}}<|eot_id|>' }}}}
{{%- elif m.role == 'tool' %}}{{{{ {_HEAD.format("'ipython'")} + (m.content | tojson) + '<|eot_id|>' }}}}
{{%- else %}}{{{{ {_HEAD.format("m.role")} + m.content | trim + '<|eot_id|>' }}}}{{% endif -%}}
{{%- endfor -%}}
{{%- if add_generation_prompt %}}{{{{ {_HEAD.format("'assistant'")} }}}}{{% endif -%}}"""

_GEMMA = """\
{{- bos_token }}
SYSTEM
{%- for m in messages -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant take turns') }}{% endif -%}
{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + (before if loop.first else '') }}
{{- m.content | trim + '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif -%}"""
GEMMA2 = _GEMMA.replace(
    "SYSTEM",
    "{%- set before = '' -%}{%- if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif -%}",
)
GEMMA3 = _GEMMA.replace(
    "SYSTEM",
    "{%- set before = '' -%}{%- if messages[0].role == 'system' -%}"
    "{%- set before = messages[0].content + '\\n\\n' -%}{%- set messages = messages[1:] -%}{%- endif -%}",
)

PHI = """\
{%- for m in messages -%}
{%- if m.role in ['system', 'user', 'assistant'] %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif -%}"""

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

GPT_OSS = """\
{{- '<|start|>system<|message|>Current date: ' + strftime_now("%Y-%m-%d") + '<|end|>' }}
{%- set called = namespace(name=none) -%}
{%- for m in messages -%}
{%- if m.role == 'system' %}{{ '<|start|>developer<|message|># Instructions\\n\\n' + m.content + '<|end|>' }}
{%- elif m.role == 'user' %}{{ '<|start|>user<|message|>' + m.content + '<|end|>' }}
{%- elif m.role == 'tool' -%}
{%- if called.name is none %}{{ raise_exception('nothing was called') }}{% endif -%}
{{- '<|start|>functions.' + called.name + ' to=assistant<|channel|>commentary<|message|>' }}
{{- (m.content | tojson) + '<|end|>' }}
{%- elif m.tool_calls -%}
{%- set called.name = m.tool_calls[0].function.name -%}
{{- '<|start|>assistant to=functions.' + called.name + '<|channel|>commentary json<|message|>' }}
{{- (m.tool_calls[0].function.arguments | tojson) + '<|call|>' }}
{%- else -%}
{{- '<|start|>assistant<|channel|>final<|message|>' + m.content }}
{{- '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif -%}"""

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
    "Qwen2.5": Family(QWEN2_5, _CHATML, "<|im_end|>", _IM, _QWEN[:2]),
    "Qwen3": Family(QWEN3, _CHATML, "<|im_end|>", _IM, _QWEN),
    "Qwen3-Thinking": Family(QWEN3_THINKING, _CHATML, "<|im_end|>", _IM, _QWEN),
    "Qwen3.5": Family(QWEN3_5, _CHATML, "<|im_end|>", _IM, _QWEN),
    "Llama 3.1": Family(LLAMA3, _LLAMA, "<|eot_id|>", ("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")),
    "Gemma 2": Family(GEMMA2, _GEMMA_MARKS, "<eos>", ("<eos>", "<end_of_turn>"), ("\n\n", "<table>")),
    "Gemma 3": Family(GEMMA3, _GEMMA_MARKS, "<eos>", ("<eos>", "<end_of_turn>"), ("\n\n", "<table>")),
    "Phi": Family(
        PHI,
        ("<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        "<|endoftext|>",
        ("<|endoftext|>", "<|end|>"),
    ),
    "SmolLM2": Family(SMOLLM2, _CHATML, "<|im_end|>", ("<|im_end|>",), pad="<|im_end|>"),
    "SmolLM3": Family(SMOLLM3, _CHATML, "<|im_end|>", ("<|im_end|>",), _QWEN),
    "gpt-oss": Family(GPT_OSS, _HARMONY, "<|return|>", ("<|return|>", "<|endoftext|>", "<|call|>")),
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
