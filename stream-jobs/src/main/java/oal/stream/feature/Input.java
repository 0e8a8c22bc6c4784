package oal.stream.feature;

import oal.schema.Topic;

/** What came of an access point's batches, for who computes features of them. */
public interface Input {
    /** Nothing was ever missing. */
    Input WHOLE = new Input() {
        @Override
        public boolean came(Topic topic, long fromUs, long untilUs) {
            return true;
        }

        @Override
        public boolean began(Topic topic, long fromUs) {
            return true;
        }
    };

    /** Did every batch of the topic come that covers [from, until)? */
    boolean came(Topic topic, long fromUs, long untilUs);

    /** Is no batch of the topic missing before the present ones, which began at {@code fromUs} or later? */
    boolean began(Topic topic, long fromUs);
}
