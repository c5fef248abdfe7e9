"""Handing a policy over: as files that `peft` and `transformers` load by themselves, proven to be the policy."""
