# Included by Makefile.
# What oal-host costs at 10,000 connections; as root.
bench-host: host
	@python3 bench/host.py build/host/oal-host $(RESULTS)/host.json

.PHONY: bench-host
