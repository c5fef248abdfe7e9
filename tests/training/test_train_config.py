"""The small local configuration: both original versions load unchanged; unusable keys and values are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rc1_lib.config.file import merged, read_layers
from rc1_lib.errors import ConfigError
from rc1_lib.training.train_config import PROJECTIONS, load_train_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT

SHIPPED = PROJECT_ROOT / "configs/train_local.yaml"
FIRST = """
run:
  {seed: 20250823, output_dir: checkpoints/local, save_steps: 500, eval_steps: 1000, max_steps: 2000,
   mixed_precision: bf16, gradient_accumulation: 2, device_pref: [mps, cpu], log_file: logs/train.log}
data: {train_path: data/train_min.jsonl, eval_path: data/eval_min.jsonl, max_length: 1024, batch_size: 1}
model: {base: Qwen/Qwen2.5-3B-Instruct, lora: {enable: true, r: 8, alpha: 16, dropout: 0.05}}
engine: {name: trl_ppo, target_kl: 0.03, lr: 1.0e-5, clip_coef: 0.2}
strategy: {name: ppo}
callbacks: [logging, checkpoint, eval_shadow]
"""
SECOND = """
data: {padding_side: right}
model:
  base: Qwen/Qwen3-4B-Thinking-2507
  trust_remote_code: true
  use_flash_attention_2: false
  use_cache: false
  gradient_checkpointing: true
  lora: {target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]}
engine: {max_grad_norm: 1.0}
run: {mixed_precision: fp16}
"""


def overlaid(base: dict, more: dict) -> dict:
    return base | {
        key: overlaid(base[key], value) if isinstance(value, dict) and key in base else value
        for key, value in more.items()
    }


def write(folder: Path, tree: dict) -> Path:
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def test_both_original_versions_load_unchanged(tmp_path: Path) -> None:
    first = load_train_config(write(tmp_path, yaml.safe_load(FIRST)))
    assert not first.model.trust_remote_code
    assert first.model.lora.target_modules == PROJECTIONS
    assert first.model.gradient_checkpointing
    second = load_train_config(write(tmp_path, overlaid(yaml.safe_load(FIRST), yaml.safe_load(SECOND))))
    assert second.model.trust_remote_code
    assert second.engine.max_grad_norm == 1.0
    assert [callback.name for callback in second.callbacks] == ["logging", "checkpoint", "eval_shadow"]


@pytest.mark.parametrize("file", ["train_local.yaml", "local.yaml", "ppo_scale.yaml"])
def test_shipped_configurations_save_at_least_every_hour(file: str) -> None:
    """Machines disappear: a limit only in steps would lose hours of slow steps."""
    tree = merged(read_layers(PROJECT_ROOT / "configs" / file))
    minutes = tree["run"]["save_minutes"] if "run" in tree else tree["training"]["checkpoints"]["every_minutes"]
    assert 30 <= minutes <= 60


@pytest.mark.parametrize(
    ("engine", "metric", "message"),
    [
        ("pure_pt_sft", "eval/los", r"'eval/los', .* pure_pt_sft .*'eval/loss'"),
        ("pure_pt_sft", "kl", r"'kl', .*step .* pure_pt_sft "),
        ("trl_ppo", "env/success", r"'env/success', .*step .*'?objective/scores"),
        ("trl_ppo", "eval/env/success", r"'eval/env/success', .*'eval/objective/scores'"),
    ],
)
def test_early_stop_metric_that_the_engine_does_not_measure_is_rejected(engine: str, metric: str, message: str) -> None:
    stop = f"{{early_stop: {{metric: {metric}, patience: 1}}}}"
    with pytest.raises(ConfigError, match=message):
        load_train_config(SHIPPED, [f"engine.name={engine}", f"callbacks=[eval_shadow, {stop}]"])
    of_rows = ("eval/objective/scores", "answered", "objective/scores", "kl")
    for known in of_rows if engine == "trl_ppo" else ("eval/loss", "eval/entropy", "mean_token_accuracy", "grad_norm"):
        load_train_config(SHIPPED, [f"engine.name={engine}", f"callbacks=[eval_shadow, {stop.replace(metric, known)}]"])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("run.max_steps", 0, r"run\.max_steps: .*'0', .*greater than 0"),
        ("run.output_dir", "../out", r"run\.output_dir: .*'\.\./out', .*workspace"),
        ("run.device_pref", ["cpu", "cpu"], r"run\.device_pref: .*: cpu, cpu"),
        ("run.steps", 3, r"unknown .*'run\.steps'"),
        ("callbacks", ["loging"], r"callbacks\.0: .*'logging', 'checkpoint'"),
        ("callbacks", ["grad_clip"], r"grad_clip .*engine\.max_grad_norm"),
        (
            "callbacks",
            [{"early_stop": {"metric": "eval/answered", "patience": 1}}],
            r"early_stop\.metric: .* eval_shadow .*'eval/answered'; ",
        ),
    ],
)
def test_unusable_value_is_rejected_with_its_key(tmp_path: Path, key: str, value: object, message: str) -> None:
    tree = yaml.safe_load(FIRST)
    *parents, leaf = key.split(".")
    node = tree
    for parent in parents:
        node = node[parent]
    node[leaf] = value
    with pytest.raises(ConfigError, match=message):
        load_train_config(write(tmp_path, tree))
