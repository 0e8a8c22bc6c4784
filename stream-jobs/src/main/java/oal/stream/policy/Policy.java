package oal.stream.policy;

import oal.schema.FeatureProgram;
import oal.stream.feature.CompiledProgram;
import oal.stream.label.LabelMaker;

/** A policy as the job needs it: vectors of its program, with what its label says, become items under its name. */
public final class Policy {
    /** The policy that is always there; a decision whose program no policy has counts as its own. */
    static final String RWND_FAIR = "rwnd-fair";

    public final String name;
    public final LabelMaker label;
    public final CompiledProgram program;
    /** First eight bytes of the program's hash. */
    public final long featureHash;

    Policy(String name, LabelMaker label, FeatureProgram program) {
        this.name = name;
        this.label = label;
        this.program = new CompiledProgram(program);
        featureHash = this.program.shortHash();
    }

    /** Of that name, with that program: what the job remembers for one serves the other. */
    public boolean same(Policy other) {
        return name.equals(other.name) && featureHash == other.featureHash && label == other.label;
    }
}
