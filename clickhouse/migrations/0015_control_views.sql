-- Questions about control. A clamp is in force when the mode is enforce; in shadow mode `clamps` counts what would have been clamped.
-- Names of modes, backends and reasons are those of schema/policy.yaml.

-- Is control on, and what does it do now? Access points with a policy in force that reported in the last ten minutes.
CREATE OR REPLACE VIEW v_control AS
SELECT
    p.site AS site, c.ap_id AS ap_id, transform(now.2, [0, 1, 2], ['off', 'shadow', 'enforce'], 'unknown') AS mode, now.3 AS killed,
    transform(now.4, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS backend, b.last.5 AS policy, b.last.6 AS policy_version,
    now.5 AS clamps, nullIf(now.6, 0) AS capacity_kbps, now.7 AS queue_us, reverts_10m, now.8 AS reverts, now.9 AS set_errors, now.1 AS last_report,
    dateDiff('second', last_report, now64(6, 'UTC')) AS age_s
FROM
(
    SELECT ap_id, max(last) AS now, sum(reverted) AS reverts_10m
    FROM
    (
        SELECT
            ap_id, boot_id, max(tuple(ts, r.mode, r.killed, r.backend, r.clamps, r.capacity_kbps, r.queue_us, r.guard_reverts, r.set_errors)) AS last,
            max(r.guard_reverts) - min(r.guard_reverts) AS reverted
        FROM control AS r
        WHERE ts >= now64(6, 'UTC') - INTERVAL 10 MINUTE
        GROUP BY ap_id, boot_id
    )
    GROUP BY ap_id
) AS c
LEFT JOIN (SELECT ap_id, argMax(x.site, x.ts) AS site FROM batch AS x WHERE ts >= now64(6, 'UTC') - INTERVAL 10 MINUTE GROUP BY ap_id) AS p ON c.ap_id = p.ap_id
LEFT JOIN (SELECT ap_id, ifNull(bundle, 0) AS bundle FROM v_bundle_state) AS s ON c.ap_id = s.ap_id
LEFT JOIN (SELECT bundle, max(x.last) AS last FROM bundle_release AS x WHERE bundle IN (SELECT bundle FROM v_bundle_state) GROUP BY bundle) AS b ON s.bundle = b.bundle
ORDER BY site, ap_id;

-- The same per minute, with what the counters grew by. What they grew by since the minute before is in it, unless that is over ten minutes ago.
CREATE OR REPLACE VIEW v_control_1m AS
SELECT
    p.site AS site, c.ap_id AS ap_id, t, backend, seconds, shadow_s, enforce_s, killed_s, clamped_s, clamps_avg, clamps_max, capacity_kbps_avg, queue_us_avg, queue_us_max,
    steps, sets, set_errors, releases, guard_reverts, acks_seen, acks_clamped, acks_skipped, round(acks_clamped / nullIf(acks_seen, 0), 4) AS clamped_ratio, step_max_ns
FROM
(
    SELECT
        ap_id, t, transform(d.backend, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS backend, sum(d.rows) AS seconds, sum(d.shadow_rows) AS shadow_s, sum(d.enforce_rows) AS enforce_s,
        sum(d.killed_rows) AS killed_s, sum(d.clamped_rows) AS clamped_s, round(sum(d.clamps_sum) / seconds, 2) AS clamps_avg, max(d.clamps_max) AS clamps_max,
        round(sum(d.capacity_kbps_sum) / nullIf(sum(d.capacity_rows), 0)) AS capacity_kbps_avg, round(sum(d.queue_us_sum) / seconds) AS queue_us_avg, max(d.queue_us_max) AS queue_us_max,
        sum(d.grown[1]) AS steps, sum(d.grown[2]) AS sets, sum(d.grown[3]) AS set_errors, sum(d.grown[4]) AS releases, sum(d.grown[5]) AS guard_reverts, sum(d.grown[6]) AS acks_seen,
        sum(d.grown[7]) AS acks_clamped, sum(d.grown[8]) AS acks_skipped, max(d.step_max_ns) AS step_max_ns
    FROM
    (
        SELECT *, arrayMap((high, before) -> high - before, highs, if(follows, lagInFrame(highs, 1) OVER run, lows)) AS grown
        FROM
        (
            SELECT *, t - lagInFrame(t, 1, toDateTime(0, 'UTC')) OVER run <= 600 AS follows
            FROM
            (
                SELECT
                    ap_id, boot_id, m.backend AS backend, t, sum(m.rows) AS rows, sum(m.shadow_rows) AS shadow_rows, sum(m.enforce_rows) AS enforce_rows, sum(m.killed_rows) AS killed_rows,
                    sum(m.clamped_rows) AS clamped_rows, sum(m.clamps_sum) AS clamps_sum, max(m.clamps_max) AS clamps_max, sum(m.capacity_kbps_sum) AS capacity_kbps_sum,
                    sum(m.capacity_rows) AS capacity_rows, sum(m.queue_us_sum) AS queue_us_sum, max(m.queue_us_max) AS queue_us_max, max(m.step_max_ns) AS step_max_ns,
                    [max(m.steps), max(m.sets), max(m.set_errors), max(m.releases), max(m.guard_reverts), max(m.acks_seen), max(m.acks_clamped), max(m.acks_skipped)] AS highs,
                    [min(m.steps_first), min(m.sets_first), min(m.set_errors_first), min(m.releases_first), min(m.guard_reverts_first), min(m.acks_seen_first), min(m.acks_clamped_first),
                        min(m.acks_skipped_first)] AS lows
                FROM control_1m AS m
                WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')}) - INTERVAL 10 MINUTE AND t < {to:DateTime64(6, 'UTC')}
                GROUP BY ap_id, boot_id, backend, t
            )
            WINDOW run AS (PARTITION BY ap_id, boot_id, backend ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
        )
        WINDOW run AS (PARTITION BY ap_id, boot_id, backend ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    ) AS d
    WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')})
    GROUP BY ap_id, t, backend
) AS c
LEFT JOIN
(
    SELECT ap_id, any(l.site) AS site
    FROM label_1m AS l
    WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND t < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id
) AS p ON c.ap_id = p.ap_id
ORDER BY site, ap_id, t, backend;

-- Which windows were set, and why? Joined with the flow (addresses are kept for seven days) and with the bundle whose policy said so.
-- A flow's number in `rewrite` lacks the highest bit of the one in `flow`.
CREATE OR REPLACE VIEW v_rewrites AS
SELECT
    r.ts AS ts, p.site AS site, r.ap_id AS ap_id, lower(hex(if(f.flow_id > 0, f.flow_id, r.flow_id))) AS flow, if(greatest(r.mac, f.mac) > 0, MACNumToString(greatest(r.mac, f.mac)), NULL) AS station,
    nullIf(f.client, '') AS client, nullIf(f.server, '') AS server,
    transform(r.reason, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], ['none', 'class', 'probability', 'queue', 'hold', 'released', 'guard', 'killed', 'off', 'no_capacity', 'unknown_scale', 'bundle', 'failed'], 'unknown') AS reason,
    transform(r.backend, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS backend, transform(r.class, [0, 1, 2, 3, 255], ['Good', 'Acceptable', 'Poor', 'Bad', 'none'], 'unknown') AS class,
    r.window_bytes AS window_bytes, r.cwnd_bytes AS cwnd_bytes, r.rate_kbps AS rate_kbps, r.share_kbps AS share_kbps, r.capacity_kbps AS capacity_kbps, r.queue_us AS queue_us,
    r.bundle AS bundle, b.last.3 AS model, b.last.4 AS version, b.last.5 AS policy, b.last.6 AS policy_version
FROM
(
    SELECT * FROM rewrite WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
) AS r
LEFT JOIN
(
    SELECT
        ap_id, bitAnd(x.flow_id, 9223372036854775807) AS id, any(x.flow_id) AS flow_id, max(x.station_mac) AS mac,
        any(concat(replaceOne(toString(x.client_addr), '::ffff:', ''), ' ', toString(x.client_port))) AS client, any(concat(replaceOne(toString(x.server_addr), '::ffff:', ''), ' ', toString(x.server_port))) AS server
    FROM
    (
        SELECT * FROM flow_1m
        WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')}) - INTERVAL 2 MINUTE AND t < {to:DateTime64(6, 'UTC')} + INTERVAL 1 MINUTE
            AND (ap_id, bitAnd(flow_id, 9223372036854775807)) IN (SELECT ap_id, flow_id FROM rewrite WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')})
    ) AS x
    GROUP BY ap_id, id
) AS f ON r.ap_id = f.ap_id AND r.flow_id = f.id
LEFT JOIN
(
    SELECT ap_id, any(l.site) AS site
    FROM label_1m AS l
    WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND t < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id
) AS p ON r.ap_id = p.ap_id
LEFT JOIN
(
    SELECT bundle, max(x.last) AS last
    FROM bundle_release AS x
    WHERE bundle IN (SELECT bundle FROM rewrite WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')})
    GROUP BY bundle
) AS b ON r.bundle = b.bundle
ORDER BY ts, ap_id, flow;

-- What does control do to throughput, loss and round trips? Seconds of an access point are told apart by whether a clamp was in force, and by
-- mode and policy. `per` says of what a row tells: 'ap, minute' of an access point's minute, 'site, policy' of a policy at a site, over the range.
-- Throughput is payload offered for the first time (label windows that do not overlap and lack nothing); round trips are those between access
-- point and receiver, over rows of `flow`. Clamps are set because of congestion: that seconds with clamps are worse than seconds without is no
-- sign of harm. Compare access points, sites or spans of time that differ in mode.
CREATE OR REPLACE VIEW v_control_effect AS
SELECT
    if(grouping(ap_id) = 0, 'ap, minute', 'site, policy') AS per, site, ap_id, t, policy, policy_version, mode, clamped, count() AS seconds,
    round(sum((s.offered_bytes - least(s.lost_bytes, s.offered_bytes)) * 8) / 1000 / seconds) AS throughput_kbps, sum(s.offered_pkts) AS offered_pkts,
    round(sum(s.congestion_lost_pkts) / nullIf(sum(s.offered_pkts), 0), 5) AS congestion_loss_ratio, sum(length(s.rtts)) AS rtt_rows,
    if(rtt_rows > 0, round(quantileExactArray(0.5)(s.rtts) / 1000, 1), NULL) AS rtt_p50_ms, if(rtt_rows > 0, round(quantileExactArray(0.95)(s.rtts) / 1000, 1), NULL) AS rtt_p95_ms,
    round(avg(s.clamps), 2) AS clamps_avg
FROM
(
    SELECT
        l.site AS site, l.ap_id AS ap_id, toStartOfMinute(l.second) AS t, b.last.5 AS policy, b.last.6 AS policy_version, transform(c.mode, [0, 1, 2], ['off', 'shadow', 'enforce'], 'unknown') AS mode,
        c.mode = 2 AND c.clamps > 0 AS clamped, c.clamps AS clamps, l.offered_pkts AS offered_pkts, l.offered_bytes AS offered_bytes, l.lost_bytes AS lost_bytes,
        l.congestion_lost_pkts AS congestion_lost_pkts, f.rtts AS rtts
    FROM
    (
        SELECT site, ap_id, toDateTime(x.ts, 'UTC') AS second, offered_pkts, offered_bytes, lost_bytes, congestion_lost_pkts
        FROM label AS x
        WHERE x.ts >= {from:DateTime64(6, 'UTC')} AND x.ts < {to:DateTime64(6, 'UTC')} AND toUnixTimestamp64Micro(x.ts) % window_us = 0 AND complete = 1
    ) AS l
    LEFT JOIN
    (
        SELECT ap_id, toDateTime(x.ts, 'UTC') AS second, max(x.mode) AS mode, max(x.clamps) AS clamps
        FROM control AS x
        WHERE x.ts >= {from:DateTime64(6, 'UTC')} AND x.ts < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, second
    ) AS c ON l.ap_id = c.ap_id AND l.second = c.second
    LEFT JOIN
    (
        SELECT ap_id, toDateTime(x.ts, 'UTC') AS second, argMax(x.bundle, x.ts) AS bundle
        FROM decision AS x
        WHERE x.ts >= {from:DateTime64(6, 'UTC')} AND x.ts < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, second
    ) AS d ON l.ap_id = d.ap_id AND l.second = d.second
    LEFT JOIN
    (
        SELECT bundle, max(x.last) AS last
        FROM bundle_release AS x
        WHERE bundle IN (SELECT bundle FROM decision WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')})
        GROUP BY bundle
    ) AS b ON d.bundle = b.bundle
    LEFT JOIN
    (
        SELECT ap_id, toDateTime(x.ts, 'UTC') AS second, groupArray(x.rtt_down_us) AS rtts
        FROM flow AS x
        WHERE x.ts >= {from:DateTime64(6, 'UTC')} AND x.ts < {to:DateTime64(6, 'UTC')} AND direction = 0 AND rtt_down_us > 0
        GROUP BY ap_id, second
    ) AS f ON l.ap_id = f.ap_id AND l.second = f.second
) AS s
GROUP BY GROUPING SETS ((site, ap_id, t, policy, policy_version, mode, clamped), (site, policy, policy_version, mode, clamped))
ORDER BY per, site, ap_id, t, policy, policy_version, mode, clamped;
