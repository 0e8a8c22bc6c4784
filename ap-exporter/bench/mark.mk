# Included by Makefile.
# The marks' tc program in this machine's kernel; as root.
$(B)/bench_mark: bench/bench_mark.c tests/ecn_frame.h $(call objs,opt,$(filter-out src/main.c,$(ALL_SRC)))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)
$(B)/bpf/bench_mark.bpf.o: bench/bench_mark.bpf.c
	@mkdir -p $(@D); $(BPF_CC) -c -o $@ $<

bench-mark: $(B)/bench_mark $(B)/bpf/bench_mark.bpf.o
	@python3 bench/mark.py $^ $(RESULTS)/mark_bpf.json

.PHONY: bench-mark
