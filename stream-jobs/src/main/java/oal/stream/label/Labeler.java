package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
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
    private final long waitUs;
    private final LabelBuckets buckets;
    private final DownlinkFlows flows = new DownlinkFlows();
    private final MacFailures macFailures = new MacFailures();
    private final StationCounters counters = new StationCounters();
    private final List<Loss> losses = new ArrayList<>();
    private final LabelWindow window = new LabelWindow();

    public Labeler(StateSettings settings) {
        intervals = settings.window();
        buckets = new LabelBuckets(intervals, settings.lossWait());
        waitUs = settings.lossWait() * LabelBuckets.INTERVAL_US;
    }

    /** Columns that labels are made of. */
    public static void wants(boolean[][] wanted) {
        for (int c : new int[] {Tables.Packet.FLOW, Tables.Packet.DIRECTION, Tables.Packet.T_US, Tables.Packet.SEQ,
                Tables.Packet.ACK,
                Tables.Packet.PAYLOAD_BYTES,
                Tables.Packet.FLAGS, Tables.Packet.SYN_OPTIONS, Tables.Packet.MSS_BYTES}) {
            wanted[Tables.PACKET.id()][c] = true;
        }
        for (int c : new int[] {Tables.Station.MAC, Tables.Station.DEVICE, Tables.Station.TICK,
                Tables.Station.TX_FAILED}) {
            wanted[Tables.STATION.id()][c] = true;
        }
        StationCounters.wants(wanted);
    }

    /** Begin with the bucket that starts at {@code us}. Flows are kept: a hole in the data does not end connections. */
    public void restart(long us) {
        buckets.restart(us);
        macFailures.clear();
    }

    /** Forget everything: another incarnation of the exporter. */
    public void clear() {
        flows.clear();
        counters.clear();
        macFailures.clear();
        buckets.restart(0);
    }

    /** @param found takes the losses that the batch shows, in order of their repetition; it keeps them */
    public void add(Topic topic, BatchDecoder batch, Consumer<Loss> found) {
        long untilUs = batch.header().t0Us + MAX_AHEAD_US;
        switch (topic) {
            case SAMPLES -> {
                macFailures.add(batch, buckets, untilUs);
                counters.samples(batch);
            }
            case PACKETS -> {
                QueueDrops.add(batch, buckets, untilUs);
                counters.drops(batch, untilUs);
                flows.add(batch, buckets, untilUs, losses::add);
                losses.sort(Comparator.comparingLong(l -> l.resentUs));
                for (Loss loss : losses) {
                    LossCause.find(loss, counters);
                    buckets.dropped(loss);
                    found.accept(loss);
                }
                losses.clear();
            }
            case EVENTS -> { }
        }
    }

    /**
     * The decision instant {@code us} has come. The result is the window that ended {@code loss_wait_us} before it:
     * what was dropped in it has been seen again by now. It is valid until the next call.
     */
    public LabelWindow close(long us, boolean complete) {
        buckets.close(us, complete, window);
        window.flows = flows.active((us - waitUs) / LabelBuckets.INTERVAL_US - 1, intervals);
        return window;
    }

    /** Time of the last congestion drop in [from, until), instants up to the end of the last window; 0: none. */
    public long lastDropUs(long fromUs, long untilUs) {
        return buckets.lastDropUs(fromUs, untilUs);
    }

    /** Time of the first one. */
    public long firstDropUs(long fromUs, long untilUs) {
        return buckets.firstDropUs(fromUs, untilUs);
    }

    /** Flows, stations and queues remembered. */
    public int remembered() {
        return flows.size() + macFailures.size() + counters.size();
    }

    public void write(DataOutput out) throws IOException {
        buckets.write(out);
        flows.write(out);
        macFailures.write(out);
        counters.write(out);
    }

    /** Reads what {@link #write} wrote with the settings {@code was}: labels go on, from a whole window on. */
    public void read(DataInput in, StateSettings was) throws IOException {
        buckets.read(in, was);
        flows.read(in, was.stampsDrops());
        macFailures.read(in);
        if (was.stampsDrops()) counters.read(in);
    }
}
