package oal.stream.feature;

import java.util.ArrayList;
import java.util.List;
import oal.schema.ColumnSpec;
import oal.schema.FeatureProgram;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;

/** A feature program ready to run: features by table, and the layout of an entity's cells. */
public final class CompiledProgram {
    /** Words of a cell before its ring of closed buckets. */
    static final int FILLED = 0;
    static final int VALUE = 1;
    static final int OPEN = 2;
    static final int SINCE = 3;
    static final int HELD = 4;
    static final int RING = 3;
    static final int MEAN_RING = 5;

    final FeatureProgram program;
    final long intervalUs;
    final Feature[] features;
    final Feature[][] byTable = new Feature[Tables.ALL.size()][];
    /** Words of an entity's cells, per table; 0 = no feature reads the table. */
    final int[] cellWords = new int[Tables.ALL.size()];
    /** Features that choose an entity, per table. */
    final int[] choosers = new int[Tables.ALL.size()];
    /** Tables whose rows must be read in order of time across runs. */
    final boolean[] ordered = new boolean[Tables.ALL.size()];

    /** Topics whose rows it reads. */
    final boolean[] reads = new boolean[Topic.values().length];

    public CompiledProgram(FeatureProgram program) {
        this.program = program;
        intervalUs = program.decisionIntervalUs();
        if (intervalUs <= 0) {
            throw new IllegalArgumentException("feature program: decision interval of " + intervalUs + " µs");
        }
        features = new Feature[program.words().length];
        List<List<Feature>> of = new ArrayList<>();
        for (int i = 0; i < Tables.ALL.size(); i++) of.add(new ArrayList<>());
        for (int i = 0; i < features.length; i++) {
            Feature f = new Feature(i, program.words()[i], features);
            features[i] = f;
            if (f.op.derived()) continue;
            f.cell = cellWords[f.table];
            cellWords[f.table] += f.op == FeatureOp.LAST ? RING : f.op == FeatureOp.MEAN ? MEAN_RING + 2 * f.window
                    : RING + f.window;
            ordered[f.table] |= Tables.ALL.get(f.table).event() && f.needsOrder();
            of.get(f.table).add(f);
            if (f.chooser != null && !f.chooser.chooses) {
                f.chooser.chooses = true;
                f.chooser.kept = choosers[f.table]++;
            }
            reads[Tables.ALL.get(f.table).topic().ordinal()] = true;
        }
        for (int i = 0; i < byTable.length; i++) byTable[i] = of.get(i).toArray(Feature[]::new);
    }

    /** First eight bytes of the program's hash, as the header and ClickHouse have it. */
    public long shortHash() {
        return java.nio.ByteBuffer.wrap(program.hash()).getLong();
    }

    public int size() {
        return features.length;
    }

    /** Decision intervals that the vector looks back over: how long a hole has an effect. */
    public int lookback() {
        int n = 1;
        for (Feature f : features) n = Math.max(n, f.lookback);
        return n;
    }

    /** Columns that the program reads. */
    public void wants(boolean[][] wanted) {
        for (TableSpec t : Tables.ALL) {
            if (byTable[t.id()].length == 0) continue;
            for (ColumnSpec c : t.columns()) {
                if (c.kind() == Kind.KEY || c.kind() == Kind.TICK || c.kind() == Kind.TIME_US) {
                    wanted[t.id()][c.index()] = true;
                }
            }
            for (Feature f : byTable[t.id()]) wanted[t.id()][f.column] = true;
        }
    }
}
