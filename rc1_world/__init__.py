"""RC1's dialogue world where verifiers looks for a taskset: in a top-level module (`vf-validate rc1-world`)."""

from rc1_lib.extras.worlds.verifiers_taskset import WorldHarness, WorldTaskset

__all__ = ["WorldHarness", "WorldTaskset"]
