# Included by Makefile.
# The tc programs in this machine's kernel; as root.
$(B)/bench_rwnd: bench/bench_rwnd.c tests/tcp_frame.h $(call objs,opt,$(filter-out src/main.c,$(ALL_SRC)))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)
$(B)/bpf/bench_rwnd.bpf.o: bench/bench_rwnd.bpf.c
	@mkdir -p $(@D); $(BPF_CC) -c -o $@ $<

bench-rwnd: $(B)/bench_rwnd $(B)/bpf/bench_rwnd.bpf.o
	@python3 bench/rwnd.py $^ $(RESULTS)/rwnd_bpf.json

.PHONY: bench-rwnd
