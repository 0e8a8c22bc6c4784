package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.state.StateSettings;

/** Labels of one access point: feed it batches in order of time, close each decision instant. */
public final class Labeler {
    /** Rows further than this after a batch's start are not counted, µs. */
    public static final long MAX_AHEAD_US = LabelBuckets.AHEAD_US / 2;

    /** Decision intervals in a label window. */
    private final int intervals;
    private final LabelBuckets buckets;
    private final DownlinkFlows flows = new DownlinkFlows();
    private final MacFailures macFailures = new MacFailures();
    private final LabelWindow window = new LabelWindow();

    public Labeler(StateSettings settings) {
        intervals = settings.window();
        buckets = new LabelBuckets(intervals);
    }

    /** Columns that labels are made of. */
    public static void wants(boolean[][] wanted) {
        for (int c : new int[] {Tables.Packet.FLOW, Tables.Packet.DIRECTION, Tables.Packet.T_US, Tables.Packet.SEQ,
                Tables.Packet.PAYLOAD_BYTES,
                Tables.Packet.FLAGS, Tables.Packet.SYN_OPTIONS, Tables.Packet.MSS_BYTES}) {
            wanted[Tables.PACKET.id()][c] = true;
        }
        for (int c : new int[] {Tables.Station.MAC, Tables.Station.DEVICE, Tables.Station.TICK,
                Tables.Station.TX_FAILED}) {
            wanted[Tables.STATION.id()][c] = true;
        }
        for (int c : new int[] {Tables.DropEvent.CAUSE, Tables.DropEvent.TICK, Tables.DropEvent.COUNT}) {
            wanted[Tables.DROP_EVENT.id()][c] = true;
        }
    }

    /** Begin with the bucket that starts at {@code us}. Flows are kept: a hole in the data does not end connections. */
    public void restart(long us) {
        buckets.restart(us);
        macFailures.clear();
    }

    /** Forget everything: another incarnation of the exporter. */
    public void clear() {
        flows.clear();
        macFailures.clear();
        buckets.restart(0);
    }

    public void add(Topic topic, BatchDecoder batch) {
        long untilUs = batch.header().t0Us + MAX_AHEAD_US;
        switch (topic) {
            case SAMPLES -> macFailures.add(batch, buckets, untilUs);
            case PACKETS -> {
                flows.add(batch, buckets, untilUs);
                QueueDrops.add(batch, buckets, untilUs);
            }
            case EVENTS -> { }
        }
    }

    /**
     * Close the bucket that ends at the decision instant {@code us}. The result is the window that ends there; it is
     * valid until the next call.
     */
    public LabelWindow close(long us, boolean complete) {
        buckets.close(us, complete, window);
        window.flows = flows.active(us / LabelBuckets.INTERVAL_US - 1, intervals);
        return window;
    }

    /** Flows and stations remembered. */
    public int remembered() {
        return flows.size() + macFailures.size();
    }

    public void write(DataOutput out) throws IOException {
        buckets.write(out);
        flows.write(out);
        macFailures.write(out);
    }

    /** Reads what {@link #write} wrote with the settings {@code was}: labels go on, from a whole window on. */
    public void read(DataInput in, StateSettings was) throws IOException {
        buckets.read(in, was.window());
        flows.read(in);
        macFailures.read(in);
    }
}
