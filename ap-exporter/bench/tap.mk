# Included by Makefile.
# The tap's programs in this machine's kernel; as root.
$(B)/bench_tap: bench/bench_tap.c tests/tcp_frame.h $(call objs,opt,$(filter-out src/main.c,$(ALL_SRC)))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

bench-tap: $(B)/bench_tap $(B)/bpf/bench_rwnd.bpf.o
	@python3 bench/tap.py $^ $(RESULTS)/tap_bpf.json

.PHONY: bench-tap
