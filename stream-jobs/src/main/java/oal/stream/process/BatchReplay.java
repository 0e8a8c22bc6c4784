package oal.stream.process;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import oal.schema.FeaturePrograms;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RawBatch;
import oal.stream.codec.RefusedException;
import oal.stream.feature.CompiledProgram;
import oal.stream.item.Item;
import oal.stream.item.ItemJson;
import oal.stream.label.LabelWindow;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;

/** Batches as they were recorded, to training items as the job makes them: no Kafka, no Flink, and the batches' own end as the broker's time. */
public final class BatchReplay {
    private final CompiledProgram program = new CompiledProgram(FeaturePrograms.CONGESTION);
    private final ApProcessor processor = new ApProcessor(program, PipelineSettings.DEFAULT.lateness().toMillis(), new Lines());
    private final BatchDecoder decoder = BatchDecoder.all();
    private final Map<String, ApState> aps = new TreeMap<>();
    private final ItemJson json = new ItemJson();
    private List<byte[]> made = new ArrayList<>();
    private long nowMs = Long.MIN_VALUE;
    private long batches;
    private long refused;
    private long late;
    private long items;
    private long complete;

    public void add(Topic topic, byte[] data) {
        try {
            decoder.decode(topic, data);
        } catch (RefusedException e) {
            refused++;
            return;
        }
        batches++;
        if (topic == Topic.EVENTS) return; // decisions give no item
        nowMs = Math.max(nowMs, decoder.header().endUs() / 1000);
        AcceptedBatch batch = new AcceptedBatch(new RawBatch(decoder.header().apId, topic, data, nowMs, 0, batches), decoder.header(), decoder.rows());
        processor.accept(aps.computeIfAbsent(batch.apId, id -> new ApState(program)), batch, nowMs - 1);
    }

    /** No more batches come: what waits has its turn. */
    public void end() {
        for (ApState ap : aps.values()) processor.release(ap, Long.MAX_VALUE);
    }

    /** Items made since the last call, JSON in UTF-8. */
    public List<byte[]> take() {
        List<byte[]> taken = made;
        made = new ArrayList<>();
        return taken;
    }

    @Override
    public String toString() {
        return batches + " batches of " + aps.size() + " APs, " + items + " items (" + complete + " complete)"
                + (refused > 0 ? ", " + refused + " batches refused" : "") + (late > 0 ? ", " + late + " late" : "");
    }

    private final class Lines implements ApOutput {
        @Override
        public void label(ApState ap, String apId, LabelWindow window) {}

        @Override
        public void item(ApState ap, String apId, Item item) {
            items++;
            if (item.complete) complete++;
            made.add(json.of(apId, ap.site, program.shortHash(), item).json);
        }

        @Override
        public void prediction(ApState ap, Decision decision, Outcome outcome) {}

        @Override
        public void decisionsRefused(int decisions) {}

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            late++;
        }
    }
}
