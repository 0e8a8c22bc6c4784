package oal.stream.feature;

import oal.schema.TableSpec;
import oal.schema.Tables;

/** Scratch of the interpreter, which many access points share one after the other. */
public final class Workspace {
    final BatchCursor[] cursors = new BatchCursor[Tables.ALL.size()];
    /** Tables that the group of batches under way brought. */
    final boolean[] open = new boolean[Tables.ALL.size()];

    public Workspace(CompiledProgram program) {
        for (TableSpec t : Tables.ALL) {
            if (program.byTable[t.id()].length > 0) cursors[t.id()] = new BatchCursor(program, t.id());
        }
    }
}
