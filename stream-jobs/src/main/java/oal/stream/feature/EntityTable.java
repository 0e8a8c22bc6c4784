package oal.stream.feature;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import oal.schema.ColumnSpec;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Type;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Names;
import oal.stream.codec.TableRows;

/** Live entities of one table, in order of arrival. An event table has one entity for all its rows. */
final class EntityTable {
    private static final EntityKey EVENTS = new EntityKey(new long[0]);

    final TableSpec spec;
    final List<Entity> entities = new ArrayList<>();
    private final int words;
    private final int choosers;
    private final Map<EntityKey, Entity> byKey = new HashMap<>();
    private final long[] probe;

    EntityTable(TableSpec spec, int words, int choosers) {
        this.spec = spec;
        this.words = words;
        this.choosers = choosers;
        this.probe = new long[spec.keys()];
    }

    /** The entity of a run; new if need be. */
    Entity of(BatchDecoder batch, TableRows rows, int run) {
        if (spec.event()) return find(EVENTS);
        int n = 0;
        for (ColumnSpec c : spec.columns()) {
            if (c.kind() != Kind.KEY) break;
            long v = rows.column(c.index())[run];
            if (c.type() == Type.NAME) v = Names.hash(batch.header().name((int) v));
            else if (c.type() == Type.FLOW) v = batch.flows().flowId[(int) v];
            probe[n++] = v;
        }
        return find(new EntityKey(probe));
    }

    private Entity find(EntityKey key) {
        Entity e = byKey.get(key);
        if (e == null) {
            e = new Entity(key == EVENTS ? EVENTS : new EntityKey(key.part().clone()), words, choosers);
            byKey.put(e.key, e);
            entities.add(e);
        }
        return e;
    }

    /** Of a table of events that had a row: features that were heard since the last hole; else null. */
    BitSet heard() {
        return spec.event() && !entities.isEmpty() ? entities.get(0).heard : null;
    }

    /** Drop entities without a row in the batch that ended. */
    void sweep() {
        if (spec.event()) return;
        boolean gone = false;
        for (Entity e : entities) {
            if (!e.seen) {
                gone = true;
                byKey.remove(e.key);
            }
        }
        if (gone) entities.removeIf(e -> !e.seen);
        for (Entity e : entities) e.seen = false;
    }

    void clear() {
        entities.clear();
        byKey.clear();
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(entities.size());
        for (Entity e : entities) {
            out.writeBoolean(e.seen);
            out.writeByte(e.key.part().length);
            for (long p : e.key.part()) out.writeLong(p);
            for (long c : e.cells) out.writeLong(c);
        }
    }

    void read(DataInput in) throws IOException {
        clear();
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            boolean seen = in.readBoolean();
            long[] part = new long[in.readUnsignedByte()];
            for (int k = 0; k < part.length; k++) part[k] = in.readLong();
            Entity e = find(part.length == 0 ? EVENTS : new EntityKey(part));
            e.seen = seen;
            for (int c = 0; c < words; c++) e.cells[c] = in.readLong();
        }
    }
}
