# Of the daemon half, included by Makefile: what tests/outside.py needs, and the benches.
ROOT := ..
RESULTS := $(ROOT)/build/bench

# The daemon under a preloaded counter of allocations.
$(B)/count_malloc.so: tests/count_malloc.c
	@mkdir -p $(@D); $(CC) $(WARN) -shared -fPIC -O2 -o $@ $<

# The whole path with the kernel's replies from a recording instead of its sockets.
$(B)/bench_tick: bench/bench_tick.c tests/nl_sample.h \
                 $(call objs,opt,$(filter-out src/main.c src/netlink/netlink.c src/packet/interface.c,$(ALL_SRC)))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

# As one program (-flto, the package's PKG_BUILD_FLAGS). A warning that then takes what a function of another file fills
# in for unset is left to the other builds, where each file is compiled alone.
MIPS16 := -Os -fvisibility=hidden -mips16 -minterlink-mips16 -ffunction-sections -fdata-sections -Wl,--gc-sections \
          -flto=auto -Wno-maybe-uninitialized
# Stripped, without librdkafka, linked dynamically against libc, in MIPS16 code and at a fixed address: as OpenWrt
# builds packages for devices of this CPU with little flash (PKG_ASLR_PIE_NONE is their default).
$(B)/ap-exporter.mips: $(ALL_SRC) $(GEN_SRC) $(wildcard src/*/*.h)
	@mkdir -p $(@D); $(MIPS_CC) $(WARN) -Isrc -I$(GEN) $(MIPS16) -no-pie -s -o $@ $(filter %.c,$^) -lpthread

# For the guests of ../lab/system: against musl, as OpenWrt's, and static, since nothing else is in there; without
# Kafka, agent and rewrite. STATIC_MUSL: where it goes; STATIC_MUSL_CC: a compiler against musl; STATIC_MUSL_FLAGS: its
# own.
STATIC_MUSL_FLAGS ?= $(MIPS16)
static-musl: $(STATIC_MUSL)
ifneq ($(STATIC_MUSL),)
$(STATIC_MUSL): $(ALL_SRC) $(GEN_SRC) $(wildcard src/*/*.h) $(wildcard src/*.h)
	@mkdir -p $(@D); $(STATIC_MUSL_CC) $(WARN) -DHAVE_KMOD -Isrc -I$(GEN) $(STATIC_MUSL_FLAGS) -static -s -o $@ \
	  $(filter %.c,$^) -lpthread
endif

# The same with Kafka, the agent and both backends of the rewrite. There are no cross packages of their libraries: the
# headers are this machine's, which suit any, and the link leaves the libraries' functions open. It is for its size and
# does not run.
MIPS_INCLUDE := $(B)/mips-include
$(B)/ap-exporter.mips.full: $(ALL_SRC) $(GEN_SRC) $(wildcard src/*/*.h) $(B)/bpf/rwnd.bpfeb.o $(B)/bpf/tap.bpfeb.o \
                             $(B)/bpf/mark.bpfeb.o
	@mkdir -p $(MIPS_INCLUDE)/openssl; \
	  ln -sfn /usr/include/$$(gcc -print-multiarch)/curl /usr/include/librdkafka /usr/include/bpf \
	    $(MIPS_INCLUDE)/; \
	  ln -sf /usr/include/openssl/*.h /usr/include/$$(gcc -print-multiarch)/openssl/*.h $(MIPS_INCLUDE)/openssl/
	@$(MIPS_CC) $(WARN) -DHAVE_KAFKA -DHAVE_AGENT -DHAVE_OPENSSL -DHAVE_OVS -DHAVE_BPF -DHAVE_KMOD \
	  -DRWND_BPF_OBJECT='"$(B)/bpf/rwnd.bpfeb.o"' -DTAP_BPF_OBJECT='"$(B)/bpf/tap.bpfeb.o"' \
	  -DMARK_BPF_OBJECT='"$(B)/bpf/mark.bpfeb.o"' -Isrc \
	  -I$(GEN) -I$(MIPS_INCLUDE) $(MIPS16) \
	  -Wl,--unresolved-symbols=ignore-all -s -o $@ $(filter %.c,$^) -lpthread

size: $(B)/ap-exporter.mips $(B)/ap-exporter.mips.full
	@$(MIPS_RUN) -L /usr/mips-linux-gnu $< check-config -c files/ap-exporter.config 2>&1 | \
	  grep -q 'packet socket\|nl80211\|good\|no sink' || \
	  { echo 'size: the MIPS16 binary does not run'; exit 1; }
	@python3 bench/size.py $^ $(RESULTS)/ap-exporter-size.json

bench-tick: $(B)/bench_tick
	@python3 bench/tick.py $< $(B) $(RESULTS)/ap-exporter-tick.json

# librdkafka with the options of openwrt/libs/librdkafka, libcurl with HTTPS alone, and OpenSSL, linked statically: what
# an AP runs.
$(B)/ap-exporter.static: $(ALL_SRC) $(GEN_SRC) $(wildcard src/*/*.h) \
                         bench/librdkafka.sh bench/libcurl.sh bench/static_library.sh
	@mkdir -p $(@D); lib=$$(bench/librdkafka.sh) && curl=$$(bench/libcurl.sh) && \
	  $(CC) -std=c11 -D_GNU_SOURCE -DHAVE_KAFKA -DHAVE_AGENT -DHAVE_OPENSSL \
	  -Wno-deprecated-declarations -Isrc -I$(GEN) -I$$lib/include -I$$curl/include -Os \
	  -ffunction-sections -fdata-sections -Wl,--gc-sections -static -s -o $@ $(filter %.c,$^) $$lib/librdkafka.a \
	  $$curl/libcurl.a -lssl -lcrypto -lm -lpthread 2>$(B)/static.log || \
	  { cat $(B)/static.log; exit 1; }

bench-rss: $(B)/ap-exporter $(B)/ap-exporter.static
	@python3 bench/rss.py $(B)/ap-exporter.static $(RESULTS)/ap-exporter-rss.json feed
	@python3 bench/rss.py $(B)/ap-exporter $(RESULTS)/ap-exporter-rss-debian.json debian

.PHONY: bench-tick bench-rss static-musl
