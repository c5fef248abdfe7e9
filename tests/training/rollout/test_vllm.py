"""A vLLM server as sampler: its log-probabilities equal those of training, or the run ends with an error."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import rc1_lib.training.vllm.server as server_module
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import configured_facts
from rc1_lib.training.updates.metrics import ParityError
from rc1_lib.training.vllm.server import VLLMError
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import ENGINES
from tests.training.vllm_double import Answer, VLLMDouble, served

Tiny = Callable[..., Run]

FEW = "batch_size=4"
"""The double samples slowly, a token at a time, and few episodes suffice."""


@pytest.fixture
def double(tiny: Tiny) -> Iterator[VLLMDouble]:
    """Serves the tiny run's base."""
    with served(tiny().workspace.path("base")) as double:
        yield double


@pytest.fixture
def asking(tiny: Tiny, double: VLLMDouble, tmp_path: Path) -> Callable[..., Run]:
    """Makes a tiny run that samples with the double and learns from the first step on."""

    def make(*overrides: str) -> Run:
        return tiny(
            *ENGINES["torch_ppo"], "training.rollout.sampler=vllm", f"training.vllm.base_url={double.base_url}",
            f"training.vllm.adapters={tmp_path / 'adapters'}", FEW, *overrides,
        )  # fmt: skip

    return make


def test_sampling_and_training_log_probabilities_agree(asking: Callable[..., Run], double: VLLMDouble) -> None:
    run = asking()
    engine = engine_of(run)
    for step in range(2):  # with the base, and with a first adapter
        batch = played(engine, run, step)
        assert all(one.states is None for one in batch["trajectories"])
        metrics = engine.train_step(batch)
        assert metrics["policy/sampling_gap"] < 1e-5 and metrics["policy/sampling_far"] == 0.0
        assert metrics["policy/sampling_gap"] > 0.0, "training was compared with itself"
    engine.close()
    assert double.loaded == []


def test_every_adapter_state_has_a_new_name_and_the_one_before_is_unloaded(
    asking: Callable[..., Run], double: VLLMDouble, tmp_path: Path
) -> None:
    run = asking()
    engine = engine_of(run)
    engine.train_step(played(engine, run))
    played(engine, run, 1)
    played(engine, run, 2)  # without training in between
    first, second = double.names("load_lora_adapter")
    assert first != second and double.names("unload_lora_adapter") == [first]
    assert double.loaded == [path.name for path in (tmp_path / "adapters").iterdir()] == [second]
    assert {path.name for path in (tmp_path / "adapters" / second).iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors",
    }  # fmt: skip
    engine.close()
    assert double.loaded == [] == list((tmp_path / "adapters").iterdir())


def test_server_of_another_base_is_rejected_before_training(asking: Callable[..., Run], double: VLLMDouble) -> None:
    run = asking()
    with torch.no_grad():
        double._base.model.norm.weight.mul_(1.05)
    with pytest.raises(VLLMError, match=r"serves '.*base', .*training\.parity\.mean\)"):
        played(engine_of(run), run)
    assert double.names("load_lora_adapter") == []


def test_log_probabilities_of_another_temperature_are_rejected(asking: Callable[..., Run], double: VLLMDouble) -> None:
    double.raw = True
    run = asking()
    with pytest.raises(VLLMError, match=r"temperature 1, .* 0\.5; .*--logprobs-mode processed_logprobs"):
        played(engine_of(run), run)


def test_server_that_keeps_an_old_adapter_stops_the_training(asking: Callable[..., Run], double: VLLMDouble) -> None:
    run = asking()
    engine = engine_of(run)
    for step in range(2):
        engine.train_step(played(engine, run, step))
    double.keep(double.loaded[0])
    batch = played(engine, run, 2)
    with pytest.raises(ParityError, match=r"step 3: .* training\.parity\.mean"):
        engine.train_step(batch)


def test_transient_server_failures_are_retried_without_changing_the_samples(
    asking: Callable[..., Run], double: VLLMDouble
) -> None:
    run = asking()
    whole = played(engine_of(run), run)["trajectories"]
    asked, failed = Counter[str](), list[int]()

    def change(path: str, body: dict[str, Any], answer: Answer) -> Answer:
        """Fail every request zero, one or two times, depending on its content, not on its time."""
        request = json.dumps([path, {name: value for name, value in body.items() if name[:4] not in ("mode", "lora")}])
        asked[request] += 1
        if asked[request] > zlib.crc32(request.encode()) % 3:
            return answer
        failed.append([500, 502, 503, 429][len(failed) % 4])
        return failed[-1], "busy"

    double.change = change
    engine = engine_of(run)
    assert played(engine, run)["trajectories"] == whole
    assert len(failed) > 5
    engine.close()


def test_server_that_does_not_answer_times_out(
    asking: Callable[..., Run], double: VLLMDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "TIMEOUT_S", 0.2)
    run = asking()

    def change(path: str, body: dict[str, Any], answer: Answer) -> Answer:
        if path == "load_lora_adapter":
            double.release.wait()
        return answer

    double.change = change
    with pytest.raises(VLLMError, match=r" 3 .*/load_lora_adapter\b.* 0\.2 s"):
        played(engine_of(run), run)


def test_unwritable_adapter_folder_is_named(asking: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = asking(f"training.vllm.adapters={tmp_path}/file/below")
    with pytest.raises(ConfigError, match=r"training\.vllm\.adapters: .*/below .*\("):
        played(engine_of(run), run)


def test_api_key_is_sent_and_never_shown(
    asking: Callable[..., Run], double: VLLMDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RC1_VLLM_API_KEY", "hush-hush-hush")
    run = asking()
    double.change = lambda path, body, answer: (401, {"error": f"no such key: {double.headers['authorization']}"})
    with pytest.raises(VLLMError, match=r"/models \(HTTP 401\b") as caught:
        played(engine_of(run), run)
    assert double.headers["authorization"] == "Bearer hush-hush-hush"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.vllm.base_url=null", r"rollout\.sampler .*'vllm', .*vllm\.base_url "),
        ("training.vllm.base_url=http://me:hush@host/v1", r"base_url: .*credentials.* RC1_VLLM_API_KEY"),
        ("training.vllm.adapters=below", r"adapters: .*absolute"),
    ],
)
def test_unusable_vllm_setting_is_rejected(tiny: Tiny, override: str, message: str) -> None:
    good = "training.vllm.base_url=http://127.0.0.1:1/v1"
    with pytest.raises(ConfigError, match=message) as caught:
        tiny("training.rollout.sampler=vllm", good, override)
    assert "hush@" not in str(caught.value)


def test_sampler_makes_another_run_but_the_servers_address_does_not(asking: Callable[..., Run], tiny: Tiny) -> None:
    here, moved = (configured_facts(run, 5) for run in (asking(), asking("training.vllm.base_url=http://else:1/v1")))
    assert here == moved != configured_facts(tiny(*ENGINES["torch_ppo"]), 5)
