"""Compare episodes per second of this project's rollouts with transformers' `generate` called turn by turn.

Both ways play the same dialogues with the same model in the same process, alternately. `generate` is called once per
turn for all running episodes, with the whole dialogue so far as its prompt, as a loop around a library usually does.

    python benchmarks/bench_rollout.py                      # a small random model with a LoRA adapter
    python benchmarks/bench_rollout.py --rows 256 --repeats 3
    python benchmarks/bench_rollout.py --model models/embedded --pool FILE.jsonl

With a model folder and a pool, real dialogues are played. A random model says nothing sensible, so its turns are read
as scripted calls: it only decides where a turn ends, which a bias on the end token makes likely enough (about one token
in 16). This measures reading and sampling tokens; the dialogues are as long as those of the embedded pool, about four
turns and 170 tokens after the prompt. The ratio of CPU seconds is printed next to that of seconds, since other work on
the machine affects it less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rollout.roll_out import Batching, roll_out
from rc1_lib.training.rollout.sampling_weights import merged
from rc1_lib.training.rollout.trajectory import RolloutSampling, Start

LIMITS = Limits(turns=8, tokens=600, tool_errors=99, malformed=99, calls=5, turn_chars=4_000, argument_chars=300)
TURN_TOKENS = 60
CALL = '<tool_call>\n{"name": "wiki", "arguments": {"title": "Salkoth"}}\n</tool_call>'
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ROW: dict[str, Any] = {
    "id": "row",
    "task": "gsm8k",
    "lang": "en",
    "messages": [{"role": "user", "content": "How many coins are left?"}],
    "passages": [{"title": "Salkoth", "text": "Salkoth lies on a river."}],
    "answer": "384",
    "needs_clarification": False,
    "slot": None,
    "user_replies": {"gives": None, "otherwise": "I have told you all."},
}


class Script:
    """Makes random token ids for dialogues whose words do not matter, and reads turns as calls or an answer."""

    end_id, pad_id = 1, 0
    thoughts: tuple[int, int] | None = None
    opens_thoughts = False

    def __init__(self, vocabulary: int, prompt_tokens: int, observation_tokens: int) -> None:
        self._random = np.random.default_rng(0)
        self._vocabulary, self._prompt, self._observation = vocabulary, prompt_tokens, observation_tokens

    def prompt_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return a prompt of about the usual length."""
        return self._ids(self._prompt)

    def observation_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return an observation of about the usual length."""
        return self._ids(self._observation)

    def decode(self, ids: Sequence[int]) -> str:
        """Return a call in three of four cases, else an answer."""
        return "Answer: 7" if sum(ids) % 4 == 0 else CALL

    def _ids(self, mean: int) -> list[int]:
        count = int(self._random.integers(mean * 3 // 5, mean * 7 // 5))
        return self._random.integers(2, self._vocabulary, count).tolist()


def small_model(vocabulary: int, layers: int, width: int) -> PreTrainedModel:
    """Return a random model with an adapter whose turns end after about 16 tokens."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=width // 4,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        eos_token_id=Script.end_id,
        pad_token_id=Script.pad_id,
    )
    model = Qwen3ForCausalLM(config).eval()
    head = nn.Linear(width, vocabulary)
    nn.init.normal_(head.weight, std=0.02)
    nn.init.zeros_(head.bias)
    head.bias.data[Script.end_id] = float(np.log(vocabulary / 15))
    model.lm_head = head
    inject_adapter_in_model(LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS, init_lora_weights=False), model)
    return model


@dataclass
class Counted:
    """What one way did, and the shortest time it took."""

    episodes: int = 0
    sampled: int = 0
    seconds: float = math.inf
    cpu_seconds: float = math.inf


@dataclass
class Bench:
    """What is played: a model, its chat format and rows; every way gets fresh episodes."""

    model: PreTrainedModel
    chat: Callable[[], Any]
    rows: Sequence[Mapping[str, Any]]
    count: Callable[[str], int]

    def starts(self) -> list[Start]:
        """Return fresh episodes."""
        episodes = [Episode(World(row), LIMITS, self.count) for row in self.rows]
        return [Start(str(place), str(place), episode) for place, episode in enumerate(episodes)]


def ours(bench: Bench) -> Counted:
    """Play all episodes by `roll_out`."""
    sampling = RolloutSampling(temperature=1.0, turn_tokens=TURN_TOKENS, seed=0, iteration=0)
    chat, starts = bench.chat(), bench.starts()
    begun = time.perf_counter()
    played = roll_out(bench.model, chat, starts, sampling, Batching(len(starts), 8192))
    return Counted(len(played), sum(episode.action_count for episode in played), time.perf_counter() - begun)


def generated(bench: Bench) -> Counted:
    """Play all episodes by `generate`, with one call per turn that reads the whole dialogue again."""
    torch.manual_seed(0)
    chat, episodes = bench.chat(), [start.episode for start in bench.starts()]
    begun = time.perf_counter()
    sampled = 0
    live = [(episode, chat.prompt_ids(episode.messages)) for episode in episodes]
    while live:
        turns = next_turns(bench.model, chat, [ids for _, ids in live])
        going_on = []
        for (episode, ids), own in zip(live, turns, strict=True):
            sampled += len(own)
            answers = episode.say(chat.decode(own), tokens=len(own), cut=own[-1] != chat.end_id)
            if episode.status is EpisodeStatus.RUNNING:
                going_on.append((episode, [*ids, *own, *chat.observation_ids(answers)]))
        live = going_on
    return Counted(len(episodes), sampled, time.perf_counter() - begun)


def next_turns(model: PreTrainedModel, chat: Any, dialogues: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the next turn of every dialogue, including its end token, by one call of `generate`."""
    width = max(map(len, dialogues))
    inputs = torch.tensor([[chat.pad_id] * (width - len(ids)) + list(ids) for ids in dialogues])
    mask = torch.arange(width) >= torch.tensor([[width - len(ids)] for ids in dialogues])
    outputs = model.generate(
        inputs.to(model.device),
        attention_mask=mask.to(model.device),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=TURN_TOKENS,
        eos_token_id=chat.end_id,
        pad_token_id=chat.pad_id,
        use_cache=True,
    )
    turns = outputs[:, width:].tolist()
    return [turn[: turn.index(chat.end_id) + 1] if chat.end_id in turn else turn for turn in turns]


def generated_merged(bench: Bench) -> Counted:
    """Play by `generate`; the adapter is merged before, as `roll_out` merges it."""
    with merged(bench.model):
        return generated(bench)


WAYS: dict[str, Callable[[Bench], Counted]] = {
    "generate, turn by turn": generated,
    "the same, adapter merged": generated_merged,
    "rollout": ours,
}


def scripted(rows: int) -> Bench:
    """Set up a small random model and dialogues whose words do not matter."""
    vocabulary = 6144
    model = small_model(vocabulary, layers=5, width=128)
    return Bench(model, lambda: Script(vocabulary, prompt_tokens=80, observation_tokens=30), [ROW] * rows, lambda _: 0)


def real(folder: str, pool: str, rows: int) -> Bench:
    """Set up the model of a folder with an adapter, and the first rows of a pool."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval().to("cuda" if torch.cuda.is_available() else "cpu")
    # peft's fresh adapter changes no output, but takes the same time.
    inject_adapter_in_model(LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS), model)
    with Path(pool).open(encoding="utf-8") as lines:
        read = [json.loads(line) for line in itertools.islice(lines, rows)]
    form = ChatFormat(tokenizer)
    return Bench(model, lambda: form, read, form.count)


def main() -> None:
    """Play and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=128, help="episodes at once")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--model", metavar="FOLDER", help="a model folder, to be played on --pool")
    parser.add_argument("--pool", metavar="FILE", help="rows of the pool's schema, as JSON lines")
    options = parser.parse_args()
    if (options.model is None) != (options.pool is None):
        parser.error("--model and --pool go together")
    torch.set_num_threads(options.threads)
    bench = real(options.model, options.pool, options.rows) if options.model else scripted(options.rows)
    least = {way: Counted() for way in WAYS if options.only in (None, way)}
    for way in least:
        WAYS[way](replace(bench, rows=bench.rows[:8]))  # warm up
    for _ in range(options.repeats):
        for way, found in least.items():
            begun = time.process_time()
            once = WAYS[way](bench)
            found.episodes, found.sampled = once.episodes, once.sampled
            found.seconds = min(found.seconds, once.seconds)
            found.cpu_seconds = min(found.cpu_seconds, time.process_time() - begun)
    print(f"{options.rows} episodes at once, best of {options.repeats} repeats, {options.threads} threads")
    print(f"{'':26}{'episodes/s':>12}{'sampled/s':>12}{'tokens/episode':>16}{'ratio':>8}{'of CPU':>8}")
    slowest, most_cpu = (max(getattr(found, name) for found in least.values()) for name in ("seconds", "cpu_seconds"))
    for way, found in least.items():
        print(
            f"{way:26}{found.episodes / found.seconds:12.2f}{found.sampled / found.seconds:12.0f}"
            f"{found.sampled / found.episodes:16.1f}{slowest / found.seconds:8.2f}{most_cpu / found.cpu_seconds:8.2f}"
        )


if __name__ == "__main__":
    main()
