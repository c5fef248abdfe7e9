"""The tokenizer of the embedded model: byte-level BPE with Qwen3's special tokens, designed to make copying easy.

A tiny model learns to copy a name only if the name is the same token everywhere. So a space belongs to the word after
it; a word after a line break or an opening quote is tokenized as if a space came first, which decoding removes again;
numbers are split into groups of up to three digits; and the beginning of a tool call is one token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Qwen3's marks of calls, results and thoughts, one token each."""

_CALL_HEAD = r'\{"name": " ?\w+", "arguments": \{"\w+": "'
_SPLIT = _CALL_HEAD + r"""|"\}\}| ?\p{L}+|['’]\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]|\n|\s+"""

CHAT_TEMPLATE = """\
{%- if tools -%}
<|im_start|>system
Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}
{{ '\\n<tool_response>\\n' }}{{ message.content }}{{ '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}
{%- else -%}
{{ '<|im_start|>' + message.role + '\\n' }}{{ message.content }}
{%- for call in message.tool_calls or [] -%}
{{ '\\n' if message.content or not loop.first else '' }}<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments }}}
</tool_call>
{%- endfor -%}
{{ '<|im_end|>\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
"""Our own template for Qwen3's chat format, with the same marks at the same places."""


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Train the tokenizer.

    Args:
        texts: turns and contents as the model sees them, including call marks. Equal texts give an equal tokenizer.
        vocabulary: number of tokens, including special ones.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"\n(?=\p{L})"), "\n "),
            normalizers.Replace(Regex(r'": "(?=\p{L})'), '": " '),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.ByteLevel(),
            decoders.Fuse(),
            decoders.Replace(Regex(r"\n (?=\p{L})"), "\n"),
            decoders.Replace(Regex(r'": " (?=\p{L})'), '": "'),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[*SPECIAL, *MARKS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_with_numbers(texts), trainer)
    made: Any = PreTrainedTokenizerFast
    wrapped: PreTrainedTokenizerBase = made(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
    return wrapped


def _with_numbers(texts: Iterable[str]) -> Iterator[str]:
    """Yield all numbers of up to three digits often enough to become single tokens, and then the texts."""
    for _ in range(40):
        yield " ".join(str(number) for number in range(1000))
    yield from texts
