"""The tasks: one file and one `TaskSpec` each, and the registry that everybody asks.

Nothing else in RC1 knows a task by its name. A new one is a file here and a word in `SHIPPED`; or, for an experiment,
a `register` in one's own module, whose source no ticket vouches for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rc1_lib.answer_rules.message import final_answer
from rc1_lib.errors import TaskError
from rc1_lib.records import Task
from rc1_lib.task_specs import gsm8k, hotpotqa, strategyqa
from rc1_lib.task_specs.spec import TaskSpec

__all__ = [
    "CLARIFICATION", "SHIPPED", "TaskSpec", "added", "answer_in", "is_right", "register", "registered", "task_names",
    "task_spec", "template_kinds",
]  # fmt: skip

SHIPPED: tuple[TaskSpec, ...] = (hotpotqa.SPEC, strategyqa.SPEC, gsm8k.SPEC)
CLARIFICATION = "clarification"
"""The kind of templates that words vague prompts of every task."""
_REGISTRY: dict[Task, TaskSpec] = {spec.name: spec for spec in SHIPPED}


def task_names() -> tuple[Task, ...]:
    """Every known task: those shipped first, then what was registered, in order."""
    return tuple(_REGISTRY)


def task_spec(task: Task) -> TaskSpec:
    """What is known of `task`.

    Raises:
        TaskError: for a name that nobody registered.
    """
    if task not in _REGISTRY:
        raise TaskError(unknown_task(task))
    return _REGISTRY[task]


def unknown_task(task: str) -> str:
    """The sentence for a name that is no task's."""
    return f"there is no task '{task}'; the tasks are {', '.join(task_names())}"


def is_right(task: Task, given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` answers a question of `task` by the task's own rule."""
    return task_spec(task).is_right(given, gold, aliases)


def answer_in(task: Task, message: str) -> str:
    """What of a final message is taken as the answer to a question of `task`."""
    return final_answer(message, task_spec(task).unmarked)


def template_kinds() -> tuple[str, ...]:
    """Every kind of templates that some prompt is worded by, the vague ones' last."""
    return (*sorted({spec.template_kind for spec in _REGISTRY.values()}), CLARIFICATION)


def register(*specs: TaskSpec) -> None:
    """Make further tasks known to this process; the same description twice is known once.

    Raises:
        TaskError: when another task has the name.
    """
    for spec in specs:
        if _REGISTRY.setdefault(spec.name, spec) != spec:
            raise TaskError(f"there is another task '{spec.name}' already; give yours a name of its own")


@contextmanager
def registered(*specs: TaskSpec) -> Iterator[None]:
    """Makes further tasks known for the length of a `with`."""
    before = dict(_REGISTRY)
    register(*specs)
    try:
        yield
    finally:
        _REGISTRY.clear()
        _REGISTRY.update(before)


def added() -> tuple[TaskSpec, ...]:
    """What was registered beside the shipped tasks, for processes that are started afresh."""
    return tuple(spec for spec in _REGISTRY.values() if spec not in SHIPPED)
