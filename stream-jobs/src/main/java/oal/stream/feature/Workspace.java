package oal.stream.feature;

import oal.schema.TableSpec;
import oal.schema.Tables;

/** Working memory of the interpreter; access points use it one after the other. */
public final class Workspace {
    final BatchCursor[] cursors = new BatchCursor[Tables.ALL.size()];
    /** Tables in the current group of batches. */
    final boolean[] open = new boolean[Tables.ALL.size()];

    public Workspace(CompiledProgram program) {
        for (TableSpec t : Tables.ALL) {
            if (program.byTable[t.id()].length > 0) cursors[t.id()] = new BatchCursor(program, t.id());
        }
    }
}
