"""The judge's fixtures, for the tests of rewards that call a judge."""

from tests.judge.conftest import bench, gateway

__all__ = ["bench", "gateway"]
