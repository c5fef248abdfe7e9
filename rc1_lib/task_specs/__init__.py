"""The tasks: one file and one `TaskSpec` each, and their registry.

Nothing else in RC1 knows a task by its name. A new task is a file here and an entry in `SHIPPED`; or, for an
experiment, a call of `register` in another module, whose source code no ticket vouches for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rc1_lib.answer_rules.message import final_answer
from rc1_lib.errors import TaskError
from rc1_lib.records import Task
from rc1_lib.task_specs import any_form, gsm8k, hotpotqa, strategyqa
from rc1_lib.task_specs.spec import TaskSpec

__all__ = [
    "CLARIFICATION", "SHIPPED", "TaskSpec", "added", "answer_in", "is_right", "register", "registered", "task_names",
    "task_spec", "template_kinds",
]  # fmt: skip

SHIPPED: tuple[TaskSpec, ...] = (hotpotqa.SPEC, strategyqa.SPEC, gsm8k.SPEC, *any_form.SPECS)
CLARIFICATION = "clarification"
"""The kind of templates for vague prompts of every task."""
_REGISTRY: dict[Task, TaskSpec] = {spec.name: spec for spec in SHIPPED}


def task_names() -> tuple[Task, ...]:
    """Return every known task: the shipped ones first, then the registered ones, in order."""
    return tuple(_REGISTRY)


def task_spec(task: Task) -> TaskSpec:
    """Return the specification of `task`.

    Raises:
        TaskError: for an unknown name.
    """
    if task not in _REGISTRY:
        raise TaskError(unknown_task(task))
    return _REGISTRY[task]


def unknown_task(task: str) -> str:
    """Return the message for an unknown task name."""
    return f"unknown task '{task}'; the tasks are {', '.join(task_names())}"


def is_right(task: Task, given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` answers a question of `task` by the task's own rule."""
    return task_spec(task).is_right(given, gold, aliases)


def answer_in(task: Task, message: str) -> str:
    """Return the answer in a final message to a question of `task`."""
    return final_answer(message, task_spec(task).unmarked)


def template_kinds() -> tuple[str, ...]:
    """Return every kind of templates in use, with that of vague prompts last."""
    return (*sorted({spec.template_kind for spec in _REGISTRY.values()}), CLARIFICATION)


def register(*specs: TaskSpec) -> None:
    """Register further tasks in this process; registering the same description twice has no effect.

    Raises:
        TaskError: when another task has the same name.
    """
    for spec in specs:
        if _REGISTRY.setdefault(spec.name, spec) != spec:
            raise TaskError(f"another task is already called '{spec.name}'; choose another name")


@contextmanager
def registered(*specs: TaskSpec) -> Iterator[None]:
    """Register further tasks for the duration of a `with` block."""
    before = dict(_REGISTRY)
    register(*specs)
    try:
        yield
    finally:
        _REGISTRY.clear()
        _REGISTRY.update(before)


def added() -> tuple[TaskSpec, ...]:
    """Return the tasks registered in addition to the shipped ones, to pass on to new processes."""
    return tuple(spec for spec in _REGISTRY.values() if spec not in SHIPPED)
