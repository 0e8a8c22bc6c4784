-- Of hosts: congestion controls of connections that begin (action cc). Columns as schema/ has them.
ALTER TABLE sender_session ADD COLUMN IF NOT EXISTS `cc` UInt8 COMMENT 'Congestion control as a number, for feature programs: policy.congestion_controls; 0: none of these' CODEC(ZSTD(1)) AFTER mss_bytes;
ALTER TABLE action MODIFY COLUMN `kind` UInt8 DEFAULT 1 COMMENT 'What is done: policy.actions (1 rwnd: the receive window in ACKs is lowered; 2 mark: packets with ECT get CE; 3 cc: connections that begin get a congestion control)' CODEC(ZSTD(1));
ALTER TABLE action MODIFY COLUMN `subject` UInt64 COMMENT 'What it is done to: a flow\'s id as in FlowDictionary, without the highest bit; a station\'s MAC; 0: the access point; of cc a network as in sender_session.client_prefix, without the highest bit' CODEC(ZSTD(1));
ALTER TABLE action MODIFY COLUMN `class` UInt8 COMMENT 'Predicted class at that moment: 0 Good … 3 Bad, of cc the place in its law\'s values; 255: none' CODEC(ZSTD(1));
ALTER TABLE action MODIFY COLUMN `value` UInt64 COMMENT 'What is in force from here on, in the action\'s own unit (rwnd: the window that ACKs carry at most, bytes; mark: 1 packets with ECT(1), 2 with ECT(0), 3 both; cc: policy.congestion_controls); 0: it was given up' CODEC(ZSTD(1));

-- As 0037, which knew no action but rwnd and mark.
-- What did which policy do, to what, and why? Figures as in v_rewrites. `value` is in the action's own unit (rwnd: bytes; mark: 1 packets with ECT(1), 2 with ECT(0), 3 both; cc: congestion_control says it in words); 0: it was given up.
-- `subject` is a flow's number as in `flow`, a station's address, a network (of cc), or empty for the access point. `policy` is the folder in policies/; `in_force` is
-- the file in policies/in-force/ that was in the bundle, with its version.
CREATE OR REPLACE VIEW v_actions AS
SELECT
    r.ts AS ts, p.site AS site, r.ap_id AS ap_id, r.policy AS policy, transform(r.kind, [0, 1, 2, 3], ['none', 'rwnd', 'mark', 'cc'], 'unknown') AS action,
    multiIf(r.kind = 3 AND r.subject < 16777216, concat(IPv4NumToString(toUInt32(r.subject * 256)), '/24'),
        r.kind = 3, concat(IPv6NumToString(toFixedString(unhex(leftPad(hex(r.subject), 16, '0')), 16)), '/64'),
        f.flow_id > 0, lower(hex(f.flow_id)), r.subject = 0, '', r.subject = r.mac, MACNumToString(r.subject), lower(hex(r.subject))) AS subject, if(greatest(r.mac, f.mac) > 0, MACNumToString(greatest(r.mac, f.mac)), NULL) AS station,
    nullIf(f.client, '') AS client, nullIf(f.server, '') AS server,
    transform(r.reason, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], ['none', 'class', 'probability', 'queue', 'hold', 'released', 'guard', 'killed', 'off', 'no_capacity', 'unknown_scale', 'bundle', 'failed', 'explore'], 'unknown') AS reason,
    transform(r.backend, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS backend, if(r.kind = 3 AND r.class < 255, concat('class ', toString(r.class)), transform(r.class, [0, 1, 2, 3, 255], ['Good', 'Acceptable', 'Poor', 'Bad', 'none'], 'unknown')) AS class,
    r.value AS value, if(r.kind = 3, transform(r.value, [0, 1, 2, 3, 4, 5, 6, 7, 8], ['none', 'cubic', 'reno', 'bbr', 'vegas', 'westwood', 'illinois', 'dctcp', 'oal_lc'], 'unknown'), NULL) AS congestion_control, r.cwnd_bytes AS cwnd_bytes, r.rate_kbps AS rate_kbps, r.share_kbps AS share_kbps, r.capacity_kbps AS capacity_kbps, r.queue_us AS queue_us,
    r.bundle AS bundle, b.last.3 AS model, b.last.4 AS version, b.last.5 AS in_force, b.last.6 AS in_force_version
FROM
(
    SELECT * FROM action WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
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
            AND (ap_id, bitAnd(flow_id, 9223372036854775807)) IN (SELECT ap_id, subject FROM action WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')})
    ) AS x
    GROUP BY ap_id, id
) AS f ON r.ap_id = f.ap_id AND r.subject = f.id
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
    WHERE bundle IN (SELECT bundle FROM action WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')})
    GROUP BY bundle
) AS b ON r.bundle = b.bundle
ORDER BY ts, ap_id, policy, subject;
