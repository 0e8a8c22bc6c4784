package oal.stream.pipeline;

import oal.stream.access.AccessChange;
import oal.stream.block.RowBlock;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.ApSecond;
import oal.stream.neighbour.NeighbourRecord;
import org.apache.flink.types.PojoTestUtils;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What goes between operators is serialised by Flink itself, never by Kryo. */
class PojoTest {
    @ParameterizedTest
    @ValueSource(classes = {RawBatch.class, AcceptedBatch.class, DeadLetter.class, RowBlock.class, TrainingItem.class,
            ApSecond.class, NeighbourRecord.class, JsonRecord.class, AccessChange.class})
    void isAPojo(Class<?> type) {
        PojoTestUtils.assertSerializedAsPojoWithoutKryo(type);
    }
}
