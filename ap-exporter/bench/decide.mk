# Included by Makefile.
# Features, tree and window model at the decisions of a capture.
DECIDE_CAPTURE := ../lab/captures/congested.oalcap
$(B)/bench_decide: bench/bench_decide.c $(call objs,opt,$(CORE_SRC))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $^
$(B)/bench_decide.mips: bench/bench_decide.c $(call objs,mips,$(CORE_SRC))
	@$(MIPS_CC) $(WARN) $(CPPFLAGS) -Itests -Os -static -o $@ $^

bench-decide: $(B)/bench_decide $(B)/bench_decide.mips
	@python3 bench/decide.py $(B)/bench_decide $(B)/bench_decide.mips "$(MIPS_RUN)" $(DECIDE_CAPTURE) $(B) \
	  $(RESULTS)/ap-exporter-decide.json

.PHONY: bench-decide
