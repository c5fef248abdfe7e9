"""RC1's world as OpenRLHF's agent, with the limits and prices of this folder."""

from pathlib import Path

from rc1_lib.extras.exports.openrlhf_agent import agent_executor

AgentExecutor = agent_executor(Path(__file__).resolve().parent)
