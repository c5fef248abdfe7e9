"""Each export read and played by the trainer's own library; turns are scripted where a model would need a GPU."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig
from trl.chat_template_utils import qwen3_schema, qwen3_template

from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from rc1_lib.training.tool_schemas import DESCRIPTION
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.extras.exports.conftest import Export, Played, module_of

BASE = PROJECT_ROOT / "models/embedded"
END = "<|im_end|>"


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is not installed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets are cached below the test's folder."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.filterwarnings("ignore")  # TRL calls its environments experimental
def test_trl_takes_two_grpo_steps(opened: Run, export: Export, tmp_path: Path) -> None:
    module = module_of(export("trl") / "rc1_trl.py")
    base = opened.workspace.path("base")
    tokenizer = AutoTokenizer.from_pretrained(base)
    # TRL recognizes Qwen3's reply format by its template's text, which the tiny base's template does not share.
    tokenizer.response_schema, tokenizer.response_template = qwen3_schema, qwen3_template
    arguments = GRPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, num_generations=2,
        max_completion_length=24, save_strategy="no", logging_steps=1, use_cpu=True, bf16=False, report_to=[], seed=1,
    )  # fmt: skip
    trainer = module.trainer_of(
        arguments, AutoModelForCausalLM.from_pretrained(base), processing_class=tokenizer,
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    )  # fmt: skip
    paid: list[list[float]] = []
    pay = trainer.reward_funcs[0]
    trainer.reward_funcs[0] = lambda **columns: paid.append(pay(**columns)) or paid[-1]
    trainer.train()
    logged = [one["rewards/rc1_reward/mean"] for one in trainer.state.log_history if "rewards/rc1_reward/mean" in one]
    assert logged == [pytest.approx(fmean(each), abs=1e-6) for each in paid] and trainer.state.global_step == 2
    assert {tool.__name__ for tool in trainer.tools} == {"wiki", "calc", "ask_user"}
    assert trainer.args.max_tool_calling_iterations == opened.config.training.limits.turns - 1


def test_datasets_iterates_over_the_conversations(opened: Run, export: Export, tmp_path: Path) -> None:
    rows = load_dataset(str(export("hf")), split="train")  # as `trl sft --dataset_name .` does
    pool = {row["id"]: row for row in read_rows(opened.workspace.path(opened.config.seed_pool)).to_dicts()}
    count = 0
    for row in rows:
        ours = pool[row["id"]]
        assert [message["content"] for message in row["messages"]] == [one["content"] for one in ours["messages"]]
        assert (row["answer"], row["template_id"], row["slot"]) == (ours["answer"], ours["template_id"], ours["slot"])
        count += 1
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    assert tokenizer.apply_chat_template(rows[0]["messages"], tokenize=False) and count > 100


class Script:
    """A model's server that says the next turn, for verl and for OpenRLHF."""

    def __init__(self, tokenizer: Any, turns: Sequence[str]) -> None:
        self.tokenizer, self.turns, self.asked = tokenizer, list(turns), list[str]()

    def next(self, prompt_ids: Sequence[int]) -> tuple[str, list[int]]:
        self.asked.append(self.tokenizer.decode(prompt_ids))
        turn = self.turns.pop(0)
        return turn, self.tokenizer(turn + END, add_special_tokens=False)["input_ids"]


@needs("verl")
def test_verl_reads_plays_and_pays(
    export: Export, dialogues: list[Played], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hydra import compose, initialize_config_module
    from hydra.utils import instantiate
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.rollout.replica import TokenOutput

    monkeypatch.chdir(export("verl"))
    command = Path("README.md").read_text().split("main_ppo", 1)[1].split("```")[0]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=re.findall(r"[\w.]+=\S+", command))
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    config.data.filter_overlong_prompts = False
    rows = RLHFDataset(config.data.train_files, tokenizer, config.data)
    loops = OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
    compute_score = get_custom_reward_fn(config)

    class Server(Script):
        async def generate(self, request_id: str, *, prompt_ids: list[int], **others: Any) -> TokenOutput:
            return TokenOutput(token_ids=self.next(prompt_ids)[1])

    async def play(row: dict[str, Any], server: Server) -> Any:
        (loop,) = [one for one in loops if one.name == row["agent_name"]]
        wrapped = {"trainer_config": DictConfigWrap(config), "data_config": DictConfigWrap(config.data)}
        agent = instantiate(
            loop, server_manager=server, tokenizer=tokenizer, processor=None, dataset_cls=RLHFDataset,
            hf_model_type="qwen3", **wrapped,
        )  # fmt: skip
        return await agent.run({}, **row)

    paid = []
    for place, played in enumerate(dialogues):
        row = rows[place]
        assert row["extra_info"]["id"] == played.row["id"]
        server = Server(tokenizer, played.turns)
        output = asyncio.run(play(row, server))
        assert not server.turns, "the loop ended early"
        assert sum(output.response_mask) >= len(played.turns) and len(output.response_mask) == len(output.response_ids)
        info = {**row["extra_info"], **output.extra_fields}
        said = tokenizer.decode(output.response_ids)
        paid.append(compute_score(row["data_source"], said, row["reward_model"]["ground_truth"], info))
    assert paid == [played.reward for played in dialogues]


@needs("openrlhf")
def test_openrlhf_reads_plays_and_pays(export: Export, dialogues: list[Played]) -> None:
    from openrlhf.datasets.prompts_dataset import PromptDataset
    from openrlhf.datasets.utils import blending_datasets

    tokenizer = AutoTokenizer.from_pretrained(BASE)
    data = SimpleNamespace(input_key="input", label_key="label", apply_chat_template=True)
    strategy = SimpleNamespace(args=SimpleNamespace(data=data), is_rank_0=lambda: False, print=lambda *words: None)
    table = blending_datasets(str(export("openrlhf") / "rows.parquet"), None, strategy, max_count=100)
    rows = PromptDataset(table, tokenizer, strategy)
    executor = module_of(export("openrlhf") / "rc1_openrlhf.py").AgentExecutor()

    class Engine(Script):
        async def generate(self, prompt_ids: list[int], params: Any, **others: Any) -> Any:
            text, ids = self.next(prompt_ids)
            return SimpleNamespace(outputs=[SimpleNamespace(token_ids=ids, text=text, finish_reason="stop")])

    paid = []
    for place, played in enumerate(dialogues):
        _, prompt, label, _ = rows[place]
        assert DESCRIPTION in prompt
        engine = Engine(tokenizer, played.turns)
        sampling = SimpleNamespace(max_tokens=None, logprobs=None)
        found = asyncio.run(executor.execute(prompt, label, sampling, 100_000, tokenizer, engine))
        assert not engine.turns and len(found["action_ranges"]) == len(played.turns)
        asked = [message["content"] for message in played.messages if message["role"] == "tool"]
        assert len(asked) == 0 or len(engine.asked) == 1 or asked[0] in engine.asked[1]
        paid.append(found["reward"])
    assert paid == [played.reward for played in dialogues]
