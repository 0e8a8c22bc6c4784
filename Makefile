# OAL. `make help` lists what there is. Each folder has a Makefile of its own; this one only puts them in order.
SHELL := /bin/bash
.DEFAULT_GOAL := help

APS ?= 3
ONCE ?=
LIVE ?=
SCENARIO ?= congested
FOLDERS := schema ap-exporter stream-jobs clickhouse training model-registry deploy \
	$(addprefix platform/,local backup security compose release) observe helm lab
export OAL_ROOT := $(CURDIR)

.PHONY: help setup build demo down check test test-compose soak bench lint gen lab evaluate reach fleet test-cluster \
	clean release

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo "  demo takes APS=3 ONCE=seconds KEEP=1 LIVE=1; lab takes SCENARIO=name LIVE=1;"
	@echo "  test and check take ONLY='folder …', soak ONLY='drill …'"

setup: ## install and cache everything that the other targets need
	@for f in $(FOLDERS); do $(MAKE) --no-print-directory -C $$f setup || exit 1; done

build: ## compile exporter, stream jobs, training kernel and push service, and set up what running them needs
	@for f in ap-exporter stream-jobs clickhouse training model-registry deploy platform/local $(if $(LIVE),lab); \
	  do $(MAKE) --no-print-directory -C $$f setup || exit 1; done
	@for f in ap-exporter stream-jobs training deploy; do $(MAKE) --no-print-directory -C $$f build || exit 1; done

demo: build ## the whole loop on this machine: AP → Kafka → Flink → ClickHouse → trees → APs, with a live summary
	@platform/local/oal-local demo --aps $(APS) \
	  $(if $(ONCE),--once $(ONCE)) $(if $(KEEP),--keep) $(if $(LIVE),--live)

down: ## stop what `make demo` started
	@platform/local/oal-local down

check: ## what needs no server: unit tests, generated files, lint; run it before each commit
	@tests/run --check $(ONLY)
	@tests/lint

test: ## every test, real components included; what breaks on purpose: test-outages
	@tests/run $(ONLY)

test-outages: ## what breaks on purpose: kills of every service, full disks, lost services restored, shards; minutes
	@tests/run --outages $(ONLY)

test-cluster: ## the chart on a real Kubernetes API server, nodes are fake; REAL=1: on nodes whose pods run
	@$(MAKE) --no-print-directory -C helm $(if $(REAL),real-cluster,cluster)

test-compose: ## the whole platform in containers, from nothing to nothing, on an engine of its own; prints its time
	@$(MAKE) --no-print-directory -C platform/compose test-compose

soak: ## drills of minutes each: outages, failovers, clocks, a day's stream; within an hour; ONLY=drill
	@$(MAKE) --no-print-directory -C tests soak ONLY="$(ONLY)"

bench: build ## measure what the project promises; results in build/bench/*.json
	@tests/bench $(ONLY)

lint: ## static checks of every folder
	@tests/lint

gen: ## write what is derived: from schema/, policies/, the dashboards and the values of the chart
	@for f in schema observe/grafana helm ap-exporter; do $(MAKE) --no-print-directory -C $$f gen || exit 1; done

lab: ## run a scenario of the Wi-Fi lab: SCENARIO=name, LIVE=1 for real time
	@$(MAKE) --no-print-directory -C lab run SCENARIO=$(SCENARIO) LIVE=$(LIVE)

evaluate: ## what control is worth in the lab, to build/evaluate: SEEDS=10, POLICY=name: what that policy must show
	@$(MAKE) --no-print-directory -C lab evaluate SEEDS=$(SEEDS) POLICY=$(POLICY) ARGS="$(ARGS)"

reach: ## what was asked of learning, line by line, what was measured, and why a line is missed; plays nothing
	@lab/evaluate/reach

fleet: build ## the most access points that this machine serves, and what each stage takes: APS=1000 SECONDS=300
	@python=$$(platform/setup/venv tests/requirements.txt)/bin/python \
	  && $$python tests/fleet.py --aps $(if $(filter file,$(origin APS)),1000,$(APS)) --seconds $(or $(SECONDS),300)

release: ## images, lists, chart, checksums, signature, in build/release: OAL_RELEASE_KEY=FILE OAL_REGISTRY=… SNAPSHOT=1
	@$(MAKE) --no-print-directory -C platform/release setup
	@platform/release/release make $(if $(PLATFORMS),--platforms $(PLATFORMS)) $(if $(SNAPSHOT),--snapshot) \
	  $(if $(STANDINS),--standins)

clean: down ## remove what was built here; the cache stays
	@for f in $(FOLDERS); do $(MAKE) --no-print-directory -C $$f clean; done; rm -rf build
