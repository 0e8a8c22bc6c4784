package oal.stream.sink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.ThreadSafeSimpleCounter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the inserts of completed checkpoints, several tables at a time, each until it succeeds. While ClickHouse is
 * away this blocks the task, and so the job reads no further: Kafka keeps the data. An insert that ClickHouse refuses
 * for good ({@link Refusals}) fails the job; any other failure is tried again without end, and an alert tells of one
 * that lasts.
 */
final class InsertCommitter implements Committer<Insert> {
    private static final Logger LOG = LoggerFactory.getLogger(InsertCommitter.class);
    private static final long LOG_EVERY_NS = TimeUnit.SECONDS.toNanos(10);

    private final ClickHouseClient client;
    private final long restoredFrom;
    private final ExecutorService threads;
    private final LongSupplier nanoTime;
    /** Of each insert that failed at least once and is being repeated, by its token: when it failed first, ns. */
    private final Map<String, Long> retrying = new ConcurrentHashMap<>();
    private final Counter inserts;
    private final Counter rows;
    private final Counter bytes;
    private final Counter retries;
    private final Counter repairedRows;
    private volatile long lastCommitMs;

    InsertCommitter(ClickHouseTarget target, SinkLimits limits, OptionalLong restoredCheckpoint, MetricGroup metrics)
            throws IOException {
        this(target, limits, restoredCheckpoint, metrics, System::nanoTime);
    }

    InsertCommitter(ClickHouseTarget target, SinkLimits limits, OptionalLong restoredCheckpoint, MetricGroup metrics,
            LongSupplier nanoTime) throws IOException {
        this.nanoTime = nanoTime;
        client = new ClickHouseClient(target);
        restoredFrom = restoredCheckpoint.orElse(-1);
        AtomicInteger n = new AtomicInteger();
        threads = Executors.newFixedThreadPool(limits.insertThreads(), task -> {
            Thread thread = new Thread(task, "clickhouse-insert-" + n.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
        inserts = metrics.counter("clickhouseInserts", new ThreadSafeSimpleCounter());
        rows = metrics.counter("clickhouseRows", new ThreadSafeSimpleCounter());
        bytes = metrics.counter("clickhouseBytes", new ThreadSafeSimpleCounter());
        retries = metrics.counter("clickhouseRetries", new ThreadSafeSimpleCounter());
        repairedRows = metrics.counter("clickhouseRepairedRows", new ThreadSafeSimpleCounter());
        metrics.gauge("clickhouseInsertsWaiting", this::waiting);
        metrics.gauge("clickhouseRetryingSeconds", this::retryingSeconds);
        metrics.gauge("clickhouseLastCommitMs", () -> lastCommitMs);
    }

    @Override
    public void commit(Collection<CommitRequest<Insert>> requests) throws IOException, InterruptedException {
        long start = System.nanoTime();
        CompletionService<Void> running = new ExecutorCompletionService<>(threads);
        List<Future<Void>> futures = new ArrayList<>();
        for (CommitRequest<Insert> request : requests) {
            futures.add(running.submit(() -> {
                untilDone(request.getCommittable());
                return null;
            }));
        }
        try {
            for (int i = 0; i < futures.size(); i++) running.take().get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof IOException cause) throw cause;
            throw new IOException("an insert into ClickHouse failed", e.getCause());
        } finally {
            for (Future<Void> future : futures) future.cancel(true);
        }
        lastCommitMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
    }

    /** Inserts that failed at least once and are being repeated. */
    int waiting() {
        return retrying.size();
    }

    /** Rows that were added since ClickHouse had acknowledged them without having them. */
    long repaired() {
        return repairedRows.getCount();
    }

    /** Seconds since the first failure of the insert that has been repeated longest; 0: none is being repeated. */
    long retryingSeconds() {
        long now = nanoTime.getAsLong();
        long longest = 0;
        for (long since : retrying.values()) longest = Math.max(longest, now - since);
        return TimeUnit.NANOSECONDS.toSeconds(longest);
    }

    private void untilDone(Insert insert) throws IOException, InterruptedException {
        // Made before the checkpoint that this committer was restored from: an earlier committer may have sent it.
        boolean doubtful = insert.madeAfter() != restoredFrom;
        long lastLog = 0;
        Backoff backoff = new Backoff();
        try {
            while (true) {
                try {
                    client.insert(insert);
                    if (doubtful) check(insert);
                    break;
                } catch (InsertUncertainException e) {
                    doubtful |= e.mayHaveArrived;
                    retries.inc();
                    retrying.putIfAbsent(insert.token(), nanoTime.getAsLong());
                    if (lastLog == 0 || System.nanoTime() - lastLog > LOG_EVERY_NS) {
                        LOG.warn("{}. The job waits and repeats the insert until it succeeds.", e.getMessage());
                        lastLog = System.nanoTime();
                    }
                    backoff.await();
                }
            }
        } finally {
            retrying.remove(insert.token());
        }
        if (lastLog != 0) LOG.info("ClickHouse accepted the {} at last", insert);
        inserts.inc();
        rows.inc(insert.rows());
        bytes.inc(insert.body().length);
    }

    private void check(Insert insert) throws IOException, InterruptedException {
        long missing = client.addMissing(insert);
        if (missing == 0) return;
        repairedRows.inc(missing);
        LOG.warn("ClickHouse had acknowledged the {} without {} of its rows; they were added. Rollups of its "
                + "table may count them twice.", insert, missing);
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
