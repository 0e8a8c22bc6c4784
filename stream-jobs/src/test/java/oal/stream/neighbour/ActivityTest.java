package oal.stream.neighbour;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.label.LabelWindow;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.junit.jupiter.api.Test;

/** Sums of a second, worked out by hand. */
class ActivityTest {
    private static final long T0_US = 1_800_000_000_000_000L;

    private final RadioTraffic ap = new RadioTraffic("ap-1", T0_US);
    private final List<ApSecond> seconds = new ArrayList<>();
    private final BatchDecoder decoder = decoder();
    private Activity activity = new Activity();

    private static BatchDecoder decoder() {
        boolean[][] wanted = BatchDecoder.noColumns();
        Activity.wants(wanted);
        return BatchDecoder.only(wanted);
    }

    private void add(BatchBuilder b) throws Exception {
        decoder.decode(Topic.SAMPLES, b.build());
        activity.add(decoder);
        activity.drain(seconds::add);
    }

    private static String text(ApSecond s) {
        return s.frequencyMhz + ": " + s.stations + " stations, " + s.txKbps + " kbit/s, " + s.txAirtimePermille + " "
                + s.busyPermille + " " + s.lossPermille + " permille, " + s.backlogBytes + " B";
    }

    private List<String> told() {
        return seconds.stream().map(ActivityTest::text).toList();
    }

    @Test
    void aSecondIsFourBatches() throws Exception {
        for (long s = 0; s < 12; s++) add(ap.samples(s));
        // Two stations are sent 4 × 31,500 B in 1.008 s. Each takes a tenth of the air, half of which shows in the next
        // batch: 7/8 of it in the first second. Their queues are empty until tick 21 of 63, then hold 30,000 B each.
        assertEquals(List.of("5180: 2 stations, 2000 kbit/s, 175 250 0 permille, 40000 B",
                "5180: 2 stations, 2000 kbit/s, 200 250 0 permille, 40000 B",
                "5180: 2 stations, 2000 kbit/s, 200 250 0 permille, 40000 B"), told());
    }

    @Test
    void airtimeThatAppearsHasNotGrownByItsValue() throws Exception {
        ap.countsAirtime = false;
        for (long s = 0; s < 4; s++) add(ap.samples(s));
        ap.countsAirtime = true; // in the middle of each batch: a twentieth of its time, by each of two stations
        for (long s = 4; s < 12; s++) add(ap.samples(s));
        assertEquals(List.of(0, 175, 200), seconds.stream().map(s -> s.txAirtimePermille).toList());
    }

    @Test
    void lossIsThatOfTheLabelWindowBefore() throws Exception {
        LabelWindow window = new LabelWindow();
        window.whole = true;
        window.offeredPkts = 1000;
        window.congestionLostPkts = 45;
        for (long s = 0; s < 4; s++) {
            activity.ended(window);
            add(ap.samples(s));
        }
        window.offeredPkts = 0;
        for (long s = 4; s < 8; s++) {
            activity.ended(window);
            add(ap.samples(s));
        }
        assertEquals(List.of(45, 0), seconds.stream().map(s -> s.lossPermille).toList());
    }

    @Test
    void stationsThatAreIdleDoNotCountAndThoseThatLeftDo() throws Exception {
        for (long s = 0; s < 2; s++) add(ap.samples(s));
        ap.stations = 1;
        for (long s = 2; s < 4; s++) add(ap.samples(s));
        add(ap.samples(4));
        ap.bytesPerBatch = 0;
        for (long s = 5; s < 12; s++) add(ap.samples(s));
        assertEquals(List.of(2, 1, 0), seconds.stream().map(s -> s.stations).toList());
    }

    @Test
    void countersOfARadioThatRestartsAreTakenFromZero() throws Exception {
        for (long s = 0; s < 4; s++) add(ap.samples(s));
        RadioTraffic anew = new RadioTraffic("ap-1", T0_US);
        for (long s = 0; s < 4; s++) add(anew.samples(s)); // counters begin lower than they were
        assertTrue(seconds.get(1).txKbps > 0 && seconds.get(1).txKbps < 20_000, text(seconds.get(1)));
        assertEquals(250, seconds.get(1).busyPermille);
    }

    @Test
    void eachChannelIsToldOfAndInterfacesOfOneAreAddedUp() throws Exception {
        for (long s = 0; s < 8; s++) {
            BatchBuilder b = ap.samples(s);
            for (long device : new long[] {1, 2}) { // a second interface on the same channel, and one on another
                b.sparse(Tables.STATION, Tables.Station.MAC, 10 + device, Tables.Station.DEVICE, device,
                        Tables.Station.TX_BYTES, s * 63_000, Tables.Station.TX_AIRTIME_US, s * 25_200);
                b.sparse(Tables.CHANNEL, Tables.Channel.DEVICE, device, Tables.Channel.FREQUENCY_MHZ, device == 1 ? 5180
                        : 2412, Tables.Channel.ACTIVE_MS, s * 252, Tables.Channel.BUSY_MS,
                        s * (device == 1 ? 50 : 126), Tables.Channel.TX_MS, s * 100);
            }
            add(b);
        }
        // A radio's own time of sending counts where it is more: 400 of 1008 ms.
        assertEquals(List.of("2412: 1 stations, 2000 kbit/s, 396 500 0 permille, 0 B",
                "5180: 3 stations, 4000 kbit/s, 396 250 0 permille, 40000 B"), told().subList(2, 4));
    }

    @Test
    void withoutASurveyThereIsNoChannel() throws Exception {
        for (long s = 0; s < 8; s++) {
            BatchBuilder b = new BatchBuilder(Topic.SAMPLES, s, T0_US + s * RadioTraffic.BATCH_US);
            b.sparse(Tables.STATION, Tables.Station.MAC, 1, Tables.Station.TX_BYTES, s * 1000);
            add(b);
        }
        assertEquals(List.of(), told());
    }

    @Test
    void noMoreChannelsThanAnAccessPointHasRadios() throws Exception {
        for (long s = 0; s < 4; s++) {
            BatchBuilder b = new BatchBuilder(Topic.SAMPLES, s, T0_US + s * RadioTraffic.BATCH_US);
            b.names = new ArrayList<>();
            for (int i = 0; i < 60; i++) {
                b.names.add("wlan" + i);
                b.sparse(Tables.CHANNEL, Tables.Channel.DEVICE, i, Tables.Channel.FREQUENCY_MHZ, 5000 + i,
                        Tables.Channel.ACTIVE_MS, s);
            }
            add(b);
        }
        assertEquals(Activity.MAX_CHANNELS, seconds.size());
    }

    @Test
    void aStateGoesThroughBytes() throws Exception {
        for (long s = 0; s < 12; s++) add(ap.samples(s));
        List<String> want = told();
        seconds.clear();
        activity = new Activity();
        RadioTraffic again = new RadioTraffic("ap-1", T0_US);
        for (long s = 0; s < 12; s++) {
            add(again.samples(s));
            DataOutputSerializer out = new DataOutputSerializer(256);
            activity.write(out);
            activity = new Activity();
            DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
            activity.read(in);
            assertEquals(0, in.available());
        }
        assertEquals(want, told());
    }
}
