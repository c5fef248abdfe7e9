"""A test double of a judge: a local server with OpenAI's and Gemini's protocols, made-up scores, faults on demand."""

from tests.judge_server.behaviour import Behaviour, FaultKind
from tests.judge_server.server import JudgeServer, Stats, running

__all__ = ["Behaviour", "FaultKind", "JudgeServer", "Stats", "running"]
