# Of the daemon half, included by Makefile: what tests/outside.py needs, and the benches.
ROOT := ..
RESULTS := $(ROOT)/build/bench

# The daemon under a preloaded counter of allocations.
$(B)/count_malloc.so: tests/count_malloc.c
	@mkdir -p $(@D); $(CC) $(WARN) -shared -fPIC -O2 -o $@ $<

# The whole path with the kernel's replies from a recording instead of its sockets.
$(B)/bench_tick: bench/bench_tick.c tests/nl_sample.h $(call objs,opt,$(filter-out src/main.c src/netlink.c src/interface.c,$(ALL_SRC)))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

# Stripped, without librdkafka, linked dynamically against libc as on OpenWrt.
$(B)/ap-exporter.mips: $(ALL_SRC) $(GEN_SRC) $(wildcard src/*.h)
	@mkdir -p $(@D); $(MIPS_CC) $(WARN) -Isrc -I$(GEN) -Os -ffunction-sections -fdata-sections -Wl,--gc-sections -s -o $@ $(filter %.c,$^) -lpthread

size: $(B)/ap-exporter.mips
	@python3 bench/size.py $< $(RESULTS)/ap-exporter-size.json

bench-tick: $(B)/bench_tick
	@python3 bench/tick.py $< $(B) $(RESULTS)/ap-exporter-tick.json

bench-rss: $(B)/ap-exporter
	@python3 bench/rss.py $< $(RESULTS)/ap-exporter-rss.json

.PHONY: bench-tick bench-rss
