# Included by Makefile.
# A step of the control law.
$(B)/bench_control: bench/bench_control.c $(call objs,opt,$(CORE_SRC))
	@$(CC) $(WARN) $(CPPFLAGS) -Itests $(CFLAGS) -o $@ $^
$(B)/bench_control.mips: bench/bench_control.c $(call objs,mips,$(CORE_SRC))
	@$(MIPS_CC) $(WARN) $(CPPFLAGS) -Itests -Os -static -o $@ $^

bench-control: $(B)/bench_control $(B)/bench_control.mips
	@python3 bench/control.py $(B)/bench_control $(B)/bench_control.mips "$(MIPS_RUN)" $(B) \
	  $(RESULTS)/ap-exporter-control.json

bench-cpu: $(B)/ap-exporter
	@python3 bench/cpu.py $(B)/ap-exporter $(DECIDE_CAPTURE) $(RESULTS)/ap-exporter-cpu.json

.PHONY: bench-control bench-cpu
