package oal.stream.decode;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Topic;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.RawBatch;
import oal.stream.state.DataText;

/**
 * A batch that was decoded, found well-formed and new: its bytes, and of its header what putting batches in order
 * needs.
 */
public class AcceptedBatch {
    public String apId;
    public String site;
    /** Ordinal of {@link Topic}. */
    public int topic;
    public byte[] value;
    /** Time at which the broker received the record, ms since 1970. */
    public long kafkaTsMs;
    public long bootId;
    public long seq;
    /** Time that the batch covers, µs since 1970. */
    public long t0Us;
    public long endUs;
    public int rows;

    /** For Flink's serializer. */
    public AcceptedBatch() {}

    public AcceptedBatch(RawBatch batch, BatchHeader h, int rows) {
        apId = h.apId;
        site = h.site;
        topic = batch.topic;
        value = batch.value;
        kafkaTsMs = batch.kafkaTsMs;
        bootId = h.bootId;
        seq = h.seq;
        t0Us = h.t0Us;
        endUs = h.endUs();
        this.rows = rows;
    }

    public void write(DataOutput out) throws IOException {
        DataText.write(out, apId);
        DataText.write(out, site);
        out.writeByte(topic);
        out.writeInt(value.length);
        out.write(value);
        out.writeLong(kafkaTsMs);
        out.writeLong(bootId);
        out.writeLong(seq);
        out.writeLong(t0Us);
        out.writeLong(endUs);
        out.writeInt(rows);
    }

    public static AcceptedBatch read(DataInput in) throws IOException {
        AcceptedBatch b = new AcceptedBatch();
        b.apId = DataText.read(in);
        b.site = DataText.read(in);
        b.topic = in.readByte();
        b.value = new byte[in.readInt()];
        in.readFully(b.value);
        b.kafkaTsMs = in.readLong();
        b.bootId = in.readLong();
        b.seq = in.readLong();
        b.t0Us = in.readLong();
        b.endUs = in.readLong();
        b.rows = in.readInt();
        return b;
    }
}
