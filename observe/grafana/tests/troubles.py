"""Rows of everything that can be wrong, so that each alert rule has something to say. Times are from now."""

#: Readings every ten seconds of the last ten minutes; n is 0 at the oldest.
READINGS = "(SELECT number AS n, now64(3, 'UTC') - toIntervalSecond((60 - number) * 10) AS at FROM numbers(61))"


def statements() -> list[str]:
    batch = (
        "INSERT INTO batch (ap_id, site, ts, topic, boot_id, seq, ticks, ticks_missed, rows, bytes, kafka_ts,"
        " kafka_partition, kafka_offset) SELECT '{ap}', 'north', now64(6, 'UTC') - INTERVAL {ago} SECOND,"
        " 'ap.samples.v1', 7, {ago}, 63, {missed}, 100, 5000, now64(3, 'UTC') - INTERVAL {ago} SECOND, 0, {ago}"
    )
    return [
        batch.format(ap="ap-silent", ago=1800, missed=0),
        batch.format(ap="ap-slow", ago=20, missed=9),
        (
            "INSERT INTO late (ap_id, site, ts, topic, boot_id, seq, late_us, rows) SELECT 'ap-01', 'south', now64(6,"
            " 'UTC') - toIntervalSecond(number), 'ap.samples.v1', 7, number, 5000000, 10 FROM numbers(60)"
        ),
        (
            "INSERT INTO gap (ap_id, site, ts, topic, kind, boot_id, from_seq, to_seq, batches) SELECT 'ap-01',"
            " 'south', now64(6, 'UTC') - INTERVAL 60 SECOND, 'ap.samples.v1', 'missing', 7, 4, 6, 3"
        ),
        (
            "INSERT INTO dead_letter (ts, topic, key, reason, detail, bytes, payload) SELECT now64(3, 'UTC') -"
            " toIntervalSecond(number), 'ap.samples.v1', 'ap-01', if(number < 30, 'malformed', 'forged'), 'made for a"
            " test', 9, 'x' FROM numbers(40)"
        ),
        (
            "INSERT INTO prediction (ap_id, site, ts, boot_id, bundle, source, version, predicted, class_now, class,"
            " complete, features_match) SELECT 'ap-01', 'south', now64(6, 'UTC') - INTERVAL 60 SECOND, 7, 1, 'online',"
            " 1, 'Good', 'Good', 'Good', 1, 'differ'"
        ),
        # Ten minutes behind, and not silent.
        batch.format(ap="ap-clock", ago=25, missed=0).replace(
            "now64(6, 'UTC') - INTERVAL 25 SECOND", "now64(6, 'UTC') - INTERVAL 625 SECOND"),
        # A site that sends, and predicts no more.
        batch.format(ap="ap-mute", ago=30, missed=0).replace("'north'", "'west'"),
        (
            "INSERT INTO prediction (ap_id, site, ts, boot_id, bundle, source, version, predicted, class_now, class,"
            " complete, features_match) SELECT 'ap-mute', 'west', now64(6, 'UTC') - INTERVAL 3600 SECOND, 7, 1,"
            " 'online', 1, 'Good', 'Good', 'Good', 1, 'same'"
        ),
        (
            "INSERT INTO settled_transaction (ts, topic, partition, records, outcome) SELECT now64(6, 'UTC') -"
            " INTERVAL 60 SECOND, 'training.items.v1', 1, 9000, 'lost'"
        ),
        (
            "INSERT INTO feature_drift (ts, model, version, ap_id, feature, psi, items) SELECT now64(6, 'UTC') -"
            " toIntervalHour(number) - INTERVAL 1 MINUTE, 'congestion', 1, '', 'backlog_bytes', 0.4, 9000 FROM"
            " numbers(8)"
        ),
        # A registry model that warns whenever it should not, and never when it should.
        (
            "INSERT INTO prediction (ap_id, site, ts, boot_id, bundle, source, version, predicted, confidence_permille,"
            " congested_permille, class_now, class, complete, features_match) SELECT 'ap-02', 'north', now64(6, 'UTC')"
            " - toIntervalMillisecond(60000 + number * 100), 7, 2, 'registry', 9, if(number % 10 = 0, 'Good', 'Bad'),"
            " 800, if(number % 10 = 0, 0, 900), if(number % 10 = 0, 'Acceptable', 'Good'), if(number % 10 = 0, 'Poor',"
            " 'Good'), 1, 'same' FROM numbers(1000)"
        ),
        (
            "INSERT INTO rollout (ts, rollout, slot, scope, bundle, step, detail) SELECT now64(6, 'UTC') -"
            " toIntervalSecond(60 - number), 'r1', 'canary', 'fleet', 3, ['soaking', 'approved', 'stalled'][number"
            " + 1], 'in an emergency approved by admin: x' FROM numbers(3)"
        ),
        # It may act and has no reason to.
        (
            "INSERT INTO control (ap_id, ts, boot_id, backend, mode, clamps) SELECT 'ap-02', now64(6, 'UTC') -"
            " toIntervalSecond(number), 98, 3, 2, 0 FROM numbers(300)"
        ),
        (
            "INSERT INTO control (ap_id, ts, boot_id, backend, mode, clamps, guard_reverts) SELECT 'ap-03', now64(6,"
            " 'UTC') - toIntervalSecond((5 - number) * 60), 99, 3, 2, 1, number FROM numbers(6)"
        ),
        # Its ACKs come by under other names, or not at all.
        (
            "INSERT INTO control (ap_id, ts, boot_id, backend, mode, clamps) SELECT 'ap-01', now64(6, 'UTC') -"
            " toIntervalSecond(number), 97, 3, 2, 4 FROM numbers(120)"
        ),
        # Another policy than that of windows: a station was marked, then it was not.
        (
            "INSERT INTO action (ap_id, ts, boot_id, policy, kind, subject, mac, backend, class, reason, value,"
            " queue_us) SELECT 'ap-01', now64(6, 'UTC') - toIntervalSecond(60 - number), 97, 'mark', 2, 2199023255553,"
            " 2199023255553, 3, 255, 3, [1, 3, 0][number % 3 + 1], 21000 FROM numbers(30)"
        ),
        # Released, and made anew for another policy.
        (
            "INSERT INTO release (ts, source, slot, scope, action, model, version, bundle, reason) SELECT now64(6,"
            " 'UTC') - toIntervalSecond(120 - number), 'registry', 'champion', 'fleet', 'release', 'congestion', 9, 2,"
            " ['alias set', 'alias set; policy rwnd-fair/4'][number + 1] FROM numbers(2)"
        ),
        # A kill switch was on for two minutes.
        (
            "INSERT INTO control (ap_id, ts, boot_id, backend, mode, killed) SELECT 'ap-02', now64(6, 'UTC') -"
            " toIntervalSecond(300 - number), 96, 3, 0, number BETWEEN 60 AND 180 FROM numbers(240)"
        ),
        # The newest backup is two days old.
        (
            "INSERT INTO platform_metric (name, timestamp, tags, fields) VALUES ('backup',"
            " toUnixTimestamp64Milli(now64(3, 'UTC') - INTERVAL 48 HOUR), map('component', 'backup', 'host', 'm1',"
            " 'backup', '20261123T010000Z'), '{\"seconds\": 12.5}')"
        ),
    ]
