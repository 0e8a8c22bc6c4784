# Included by Makefile.
# What oal-host costs at 10,000 connections; as root.
bench-host: host
	@python3 bench/host.py build/host/oal-host $(RESULTS)/host.json

# What a connect costs more where a congestion control is chosen for it; as root.
build/bench_connect: bench/bench_connect.c
	@mkdir -p $(@D); $(CC) $(WARN) -O2 -o $@ $<
bench-connect: host build/bench_connect
	@python3 bench/connect.py build/host/oal-host build/bench_connect $(RESULTS)/connect.json

.PHONY: bench-host bench-connect
