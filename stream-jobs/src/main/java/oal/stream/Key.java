package oal.stream;

/** Keys of the job's properties file. */
public enum Key {
    CLICKHOUSE_URL("clickhouse.url", null,
            "address of ClickHouse's HTTP interface, http://HOST:PORT or https://HOST:PORT"),
    CLICKHOUSE_DATABASE("clickhouse.database", "oal", "database of all tables"),
    CLICKHOUSE_USER("clickhouse.user", "default", "user that may SELECT and INSERT there"),
    CLICKHOUSE_PASSWORD_FILE("clickhouse.password.file", "", "file with the user's password; empty: no password"),
    CLICKHOUSE_CA_FILE("clickhouse.ca.file", "",
            "PEM file with the authority that signed the server's certificate; empty: the JVM's"),
    CLICKHOUSE_REQUEST_TIMEOUT("clickhouse.request.timeout.ms", "60000",
            "an insert without an answer for this long is repeated"),
    SINK_PARALLELISM("sink.parallelism", "1",
            "writers of each sink; each makes an insert per table and a transaction at every checkpoint"),
    SINK_INSERT_THREADS("sink.insert.threads", "4", "inserts of one writer at the same time"),
    SINK_INSERT_MAX_BYTES("sink.insert.max.bytes", "67108864",
            "uncompressed bytes at which an insert is closed before the checkpoint"),
    SINK_INSERT_MAX_ROWS("sink.insert.max.rows", "500000", "rows at which an insert is closed before the checkpoint"),
    SINK_HELD_MAX_BYTES("sink.held.max.bytes", "134217728",
            "bytes of batches, of each reader, that may be read beyond the last complete checkpoint; then it waits for "
            + "one. Rows of so much wait in the sinks' memory"),
    SINK_TRANSACTIONS("sink.transactional.id.prefix", "oal-stream-jobs",
            "begins the job's Kafka transactions; unique per job and cluster"),
    SOURCE_START("source.start", "earliest",
            "earliest or latest: where to begin without checkpoint and without the group's offsets"),
    SOURCE_DISCOVERY("source.discovery.ms", "30000", "how often to look for new partitions"),
    SOURCE_IDLE("source.idle.ms", "60000",
            "the stream's time stays so far behind the clock: a broker that stands still for up to so long makes "
            + "nothing late"),
    SOURCE_DRIFT("source.drift.ms", "10000",
            "how far a partition may be read ahead of the slowest one, in the broker's time, while the job catches up"),
    LATENESS("pipeline.lateness.ms", "5000",
            "how long labels and items wait for a batch that is missing, in the broker's time"),
    STATE_TTL("pipeline.state.ttl.ms", "3600000", "state of an access point that sent nothing for so long is dropped"),
    FLUSH("pipeline.flush.ms", "500", "rows go on to the sinks at least so often"),
    BLOCK_ROWS("pipeline.block.rows", "65536", "rows of a block after which it goes on"),
    BLOCK_BYTES("pipeline.block.bytes", "4194304", "bytes of a block after which it goes on"),
    RAW_ROWS("pipeline.raw.rows", "true",
            "true or false: whether the raw tables are written; labels and items are in any case"),
    MAC_KEYS("mac.keys.file", "",
            "file of lines KEY_ID BASE64, the master keys of access points, on every TaskManager; read again when it "
            + "changes; empty: who made a batch is not checked"),
    POLICIES("policies.file", "",
            "file of the policies' manifests (schema/generated/policies.json), where the job is started: for each of "
            + "them items are made; empty: the policies that were there when the job was built"),
    MAX_PARALLELISM("max.parallelism", "",
            "most slots that the job can ever be spread over; a checkpoint keeps the one that it was made with and is "
            + "refused by any other. Empty: that of the checkpoint, and 720 at a start without one"),
    CHECKPOINT_INTERVAL("checkpoint.interval.ms", "",
            "time between checkpoints, and so until rows are visible; empty: the cluster's, or 1000");

    final String name;
    /** Null: the file must say. */
    final String byDefault;
    final String meaning;

    Key(String name, String byDefault, String meaning) {
        this.name = name;
        this.byDefault = byDefault;
        this.meaning = meaning;
    }

    static Key find(String name) {
        for (Key key : values()) if (key.name.equals(name)) return key;
        return null;
    }
}
