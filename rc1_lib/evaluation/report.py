"""Write the files of an evaluation: the report, the episodes, plots, and dialogues to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.check_words import gate_sentence
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION, KIND
from rc1_lib.evaluation.episodes import IDENTITY, checked
from rc1_lib.evaluation.evaluate import Evaluation
from rc1_lib.evaluation.proxy import ProxyTruth
from rc1_lib.evaluation.tables import figures_rows, groups_rows, needed_rows, proxy_rows, statuses_rows
from rc1_lib.gate_report import PLOTS, GateReport, write_report
from rc1_lib.plots import evaluation as plots
from rc1_lib.plots import training as training_plots
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import atomic_write, sha256_json, write_text
from rc1_lib.workspace.file_hashes import sha256_file


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the episodes come from.

    Attributes:
        checkpoints: name of each policy that answered, such as `sft`, `ppo` or `ppo seed 3` -> its SHA-256.
        base_sha256: SHA-256 of the base model's weights, without adapters.
        prompts_sha256: SHA-256 of the held-out rows (`rc1_lib.evaluation.answers.prompts_sha256`).
        sampling: settings of the sampled mode, such as the temperature.
        seed: seed of the sampling and of the bootstrap.
        judge: SHA-256 of everything that decides a judged score, except the dialogue; empty if nothing was judged.
        start_sha256: SHA-256 of the initial policy's episodes.
    """

    checkpoints: Mapping[str, str]
    base_sha256: str
    prompts_sha256: str
    sampling: Mapping[str, Any]
    seed: int
    judge: str = ""
    start_sha256: str = ""


def evaluation_key(run: Run, provenance: Provenance, evaluation: Evaluation) -> str:
    """Return the key of an evaluation: 12 hex digits of the SHA-256 of everything that decides it."""
    decisive = {
        "provenance": asdict(provenance),
        "policies": [evaluation.before, evaluation.after],
        "seeds": sorted(evaluation.prompts),
        "gate": run.config.gates.model_dump(mode="json", include={"shared", "evaluation"}),
        "held_out": run.config.training.held_out.model_dump(mode="json"),
        "code": code_sha256(),
    }
    return sha256_json(decisive)[:12]


def write_evaluation(
    run: Run,
    evaluation: Evaluation,
    gate: GateResult,
    *,
    frame: pl.DataFrame,
    provenance: Provenance,
    examples: str = "",
    dialogues: bytes = b"",
    curves: Path | None = None,
    proxy: ProxyTruth | None = None,
    resumed: int = 0,
) -> GateReport:
    """Write all files of an evaluation; `reports/ppo_eval_<key>.json` comes last, after everything that it names.

    Args:
        run: the run, for workspace and thresholds.
        evaluation: the result of `evaluate(frame, ...)`.
        gate: the result of `ppo_eval_gate(evaluation, ...)`.
        frame: the episodes, written as JSON lines next to the report.
        provenance: where the episodes come from.
        examples: the result of `examples_markdown`; if empty, no file is written.
        dialogues: the result of `dialogue_lines`; likewise.
        curves: the training's `metrics.jsonl`; if it cannot be drawn, the report says why under `no_curves`.
        proxy: judged score and success, if episodes were judged.
        resumed: how many plays were read from files that an earlier process had kept.

    Raises:
        RC1Error: when another process writes into the workspace.
    """
    key = evaluation_key(run, provenance, evaluation)
    episodes = f"reports/{KIND}_{key}.episodes.jsonl"
    with atomic_write(run.workspace.path(episodes)) as stream:
        stream.write(checked(frame).sort(IDENTITY).write_ndjson().encode())
    body: dict[str, Any] = {
        "key": key,
        **asdict(provenance),
        "episodes": {"path": episodes, "sha256": sha256_file(run.workspace.path(episodes)), "rows": frame.height},
        "resumed_plays": resumed,
        "decided_by": "sampled",
        **evaluation.to_dict(),
        "proxy": None if proxy is None else proxy.to_dict(),
    }
    if examples:
        body["examples"] = f"reports/{KIND}_{key}.examples.md"
        write_text(run.workspace.path(body["examples"]), examples)
    if dialogues:
        body["dialogues"] = f"reports/dialogues_{key}.jsonl"
        with atomic_write(run.workspace.path(body["dialogues"])) as stream:
            stream.write(dialogues)
    drawn = _draw(run, key, body)
    if curves is not None:
        try:
            metrics, picture = training_plots.read_metrics(curves), f"{PLOTS}/{KIND}_{key}.curves.png"
            training_plots.curves(run.workspace.path(picture), metrics)
            drawn["training"] = picture
        except RC1Error as error:  # not worth losing a verdict that took minutes
            body["no_curves"] = str(error)
            report_progress(KIND, 1, 1, f"no curves: {error}")
    return write_report(run, f"reports/{KIND}_{key}.json", gate, body, drawn, KIND, EVALUATION.inputs(run))


def _draw(run: Run, key: str, body: Mapping[str, Any]) -> dict[str, str]:
    files = {"when it asks": f"{PLOTS}/{KIND}_{key}.asking.png", "success": f"{PLOTS}/{KIND}_{key}.success.png"}
    plots.asking(run.workspace.path(files["when it asks"]), body)
    plots.success(run.workspace.path(files["success"]), body)
    return files


def evaluation_markdown(report: Mapping[str, Any]) -> str:
    """Return the report's tables as Markdown, for the Prefect UI."""
    tables = [
        *([proxy_rows(report)] if report.get("proxy") else []),
        *(figures_rows(report, mode) for mode in report["modes"]),
        needed_rows(report, "sampled"),
        groups_rows(report, "sampled"),
        statuses_rows(report, "sampled"),
    ]
    verdict = gate_sentence(GateResult.from_report(report["gate"]), advice=False)
    return "\n".join([f"# ppo_eval: {verdict}\n", *(table.markdown() for table in tables)])
