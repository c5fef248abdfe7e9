"""A judge on this machine that makes its scores up: OpenAI's and Gemini's wire protocols, with faults on request."""

from rc1_lib.testing.judge_server.behaviour import Behaviour, FaultKind
from rc1_lib.testing.judge_server.manners import Manner
from rc1_lib.testing.judge_server.server import JudgeServer, Stats, running

__all__ = ["Behaviour", "FaultKind", "JudgeServer", "Manner", "Stats", "running"]
