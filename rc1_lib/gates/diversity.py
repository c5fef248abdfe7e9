"""Diversity: varied wording, wording unlike the reference pack's, and enough roles, styles and templates.

distinct-2 (Li et al., "A Diversity-Promoting Objective Function for Neural Conversation Models", 2016) falls with the
size of a corpus, so a fixed threshold applies to windows of equal size. The raw corpus value is reported next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from rc1_lib.checks import at_least, equal, info, parts
from rc1_lib.config.thresholds import DiversityGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.pool.diversity import KL_ROWS, Words, distinct_n, kl_divergence, windowed_distinct
from rc1_lib.pool.rewording import reworded
from rc1_lib.pool.templates import Pack, Template, load_pack, worded_apart
from rc1_lib.records import Check, GateResult
from rc1_lib.rows.frame import texts_of
from rc1_lib.runtime.batches import in_parts
from rc1_lib.task_specs import CLARIFICATION, task_names, task_spec, template_kinds
from rc1_lib.text.normalization import undisguised
from rc1_lib.workspace.artifacts import PROJECT_ROOT, sha256_tree

_WORDING = "add templates to the pack or paraphrase more: the same phrases occur too often"
_REFERENCE = "reword the templates: the pool reads like the reference pack"
_OWN_ROWS = "for your own finished dialogues, which no pack worded: --set 'gates.waivers.diversity=\"REASON\"'"


def diversity_gate(
    rows: pl.DataFrame, pack: Pack, reference: Pack, thresholds: DiversityGate, by_task: Sequence[str], seed: int
) -> GateResult:
    """Check the rows' wording (system, user and assistant text), overall and per task.

    Args:
        rows: columns of `ROW_COLUMNS`.
        pack: the pool's own pack. A row's role, style and template count only if its system message is exactly that of
            the template it names, and the template is worded unlike the others of its kind.
        reference: the reference pack; divergence is measured from the same rows in its wording.
        by_task: tasks that are also checked separately.
        seed: chooses the windows and the sample on which divergence is measured.
    """
    words = Words.of(undisguised(texts_of(rows, "written")))
    apart = worded_apart(pack)
    labels = in_parts(rows, lambda part: _confirmed_labels(part, apart))
    checks: list[Check] = []
    for suffix, part in parts(rows.select("task").with_row_index("place"), by_task):
        checks += _wording(words.take(part["place"].to_numpy()), thresholds, suffix, seed)
        checks += _divergence(rows, part, reference, thresholds, suffix, seed)
    for suffix, part in parts(labels, by_task):
        roles, styles = part["role"].n_unique(), part["style"].n_unique()
        checks += [
            at_least(f"roles{suffix}", roles, thresholds.roles_min, f"add templates of other roles; {_OWN_ROWS}"),
            at_least(f"styles{suffix}", styles, thresholds.styles_min, f"add templates of other styles; {_OWN_ROWS}"),
        ]
    checks.append(info("templates worded like another one of their kind", len(pack.templates) - len(apart)))
    checks.append(info("rows whose labels are not borne out", rows.height - labels.height))
    return GateResult("diversity", tuple(checks + _templates(labels, thresholds, _kinds(pack, by_task))))


def _confirmed_labels(rows: pl.DataFrame, templates: Sequence[Template]) -> pl.DataFrame:
    """Return the labels of rows whose template is in `templates`, has their role and style, and opens the dialogue."""
    known = pl.DataFrame(
        [(template.id, template.role, template.style, template.system) for template in templates],
        schema=["template_id", "role", "style", "opening"],
        orient="row",
    )
    opening = pl.col("messages").list.first().struct.field("content")
    labels = rows.select("task", "cue", "template_id", "role", "style", opening=opening)
    return labels.join(known, on=["template_id", "role", "style", "opening"], how="semi").drop("opening")


def _wording(part: Words, thresholds: DiversityGate, suffix: str, seed: int) -> list[Check]:
    if not part.texts:
        return [at_least(f"distinct-2{suffix}", float("nan"), thresholds.min_distinct2, "there are no rows")]
    windows = windowed_distinct(part, 2, seed=seed)
    return [
        at_least(f"distinct-2{suffix}", windows.mean, thresholds.min_distinct2, _WORDING),
        info(f"distinct-2, lowest window{suffix}", windows.minimum),
        info(f"distinct-2, raw corpus{suffix}", distinct_n(part, 2)),
    ]


def _divergence(
    rows: pl.DataFrame, part: pl.DataFrame, reference: Pack, thresholds: DiversityGate, suffix: str, seed: int
) -> list[Check]:
    if not part.height:
        return [at_least(f"3-gram KL{suffix}", float("nan"), thresholds.kl3_min, "there are no rows")]
    sample = rows[part.sample(min(part.height, KL_ROWS), seed=seed, shuffle=True)["place"]]
    said, old = undisguised(texts_of(sample, "written")), undisguised(reworded(sample, reference))
    value = kl_divergence(said, old)
    return [at_least(f"3-gram KL{suffix}", value, thresholds.kl3_min, _REFERENCE)]


def _kinds(pack: Pack, tasks: Sequence[str]) -> list[str]:
    """Return the kinds of templates that the pack has or the tasks need, and the kind for vague prompts."""
    wanted = {kind for kind, _ in pack.groups} | {task_spec(task).template_kind for task in tasks} | {CLARIFICATION}
    return [kind for kind in template_kinds() if kind in wanted]


def _templates(labels: pl.DataFrame, thresholds: DiversityGate, kinds: Sequence[str]) -> list[Check]:
    """Check how many different templates of each kind the rows use; a vague prompt has the kind `clarification`."""
    kind_of = {task: task_spec(task).template_kind for task in task_names()}
    found = labels.select(
        "template_id",
        kind=pl.when("cue")
        .then(pl.lit(CLARIFICATION))
        .otherwise(pl.col("task").replace_strict(kind_of, default="other")),
    )
    used = dict(found.group_by("kind").agg(pl.col("template_id").n_unique()).iter_rows())
    advice = f"add templates of this kind to the pack; {_OWN_ROWS}"
    return [
        at_least(f"templates used[{kind}]", used.get(kind, 0), thresholds.min_templates_per_kind, advice)
        for kind in kinds
    ]


def _judge(evidence: Evidence, _: Round) -> GateResult:
    config = evidence.run.config
    own, old = (load_pack(evidence.path(name)) for name in ("templates", "reference_templates"))
    result = diversity_gate(evidence.rows("pool"), own, old, config.gates.diversity, evidence.tasks, config.pool.seed)
    # Otherwise a folder of this name in the workspace could replace the pack that divergence is measured from.
    published, name = PROJECT_ROOT / config.pool.reference_templates_dir, "old pack is the project's own"
    if Path(config.pool.reference_templates_dir).is_absolute() or not published.is_dir():
        return replace(result, checks=(*result.checks, info(name, f"no: {config.pool.reference_templates_dir}")))
    ours = sha256_tree(published) == evidence.sha256("reference_templates")
    advice = f"{evidence.path('reference_templates')} is a different pack with the same name; move or rename it"
    return replace(result, checks=(*result.checks, equal(name, ours, True, advice)))


SPEC = GateSpec("diversity", "is the wording varied and new", ("pool", "templates", "reference_templates"), _judge)
