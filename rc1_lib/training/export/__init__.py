"""Export a policy as files that `peft`, `transformers` or llama.cpp load, after checking that they are the policy."""
