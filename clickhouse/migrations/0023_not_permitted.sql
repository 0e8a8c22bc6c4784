-- A bundle can be refused since its key may not sign it: the view names that reason too.
-- Which bundle does each access point have now? From its last reports, as far back as bundle_status_1d goes.
CREATE OR REPLACE VIEW v_bundle_state AS
SELECT
    ap_id, nullIf(in_force.2, 0) AS bundle, transform(in_force.3, [1, 2], ['registry', 'online'], 'unknown') AS source, if(in_force.2 > 0, in_force.4, NULL) AS version, if(in_force.2 > 0, in_force.5, NULL) AS serial, if(in_force.2 > 0, in_force.1, NULL) AS since,
    rejected.1 > in_force.1 AS rejected_since, if(rejected.2 > 0, rejected.2, NULL) AS last_rejected,
    if(rejected.1 > toDateTime64(0, 6, 'UTC'), transform(rejected.6, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], ['none', 'oversized', 'malformed', 'unsigned', 'unknown_key', 'bad_signature', 'unsupported_format',
        'wrong_target', 'replayed', 'bad_program', 'bad_tree', 'bad_window_model', 'bad_policy', 'feature_mismatch', 'golden_mismatch', 'no_memory', 'not_permitted'], 'unknown'), NULL) AS last_reason,
    waiting.1 > in_force.1 AS waits_for_activation, reports_applied, reports_rejected, last_report
FROM
(
    SELECT
        ap_id, maxIf(d.last, state IN (1, 3)) AS in_force, maxIf(d.last, state = 2) AS rejected, maxIf(d.last, state = 4) AS waiting, sumIf(d.reports, state = 1) AS reports_applied,
        sumIf(d.reports, state = 2) AS reports_rejected, max(d.last.1) AS last_report
    FROM bundle_status_1d AS d
    GROUP BY ap_id
)
ORDER BY ap_id;
