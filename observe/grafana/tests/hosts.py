"""Hosts at the other end: agents that tell of themselves, connections that are open, connections that have ended. Times
are from now.
"""

#: (host, number of its network, congestion control, connections a minute, speed in Mbit/s, round trip above the
#: smallest in ms, segments sent again of a thousand)
SERVED = (
    ("cache-1", 1, "cubic", 40, 18, 22, 14), ("cache-1", 1, "bbr", 20, 27, 9, 16),
    ("cache-1", 2, "cubic", 30, 60, 5, 2), ("cache-1", 2, "bbr", 15, 60, 5, 2),
    ("cache-1", 3, "cubic", 9, 30, 12, 6), ("cache-1", 3, "vegas", 1, 30, 12, 6),
    ("vpn-1", 1, "cubic", 14, 9, 40, 30), ("vpn-1", 1, "oal_lc", 12, 14, 35, 31),
    # What has nothing to be compared with: its host uses another one elsewhere.
    ("vpn-1", 4, "bbr", 2, 9, 40, 30),
)
HOSTS = ("cache-1", "vpn-1")
#: A host of bench/generate.py, which sends no batches there.
OTHER = "server"


def _ended(minutes: int, host: str, network: int, control: str, a_minute: int, mbps: int, above_ms: int,
           again: int) -> str:
    """Connections that differ by a third about their mean; the last of each twenty did not tell of its end."""
    spread = "(0.67 + (h % 1000) / 1500)"
    return (
        "INSERT INTO sender_session (ap_id, ts, boot_id, flow_id, client_addr, client_prefix, congestion_control,"
        " end_known, seen_us, rtt_looks, rtt_min_us, rtt_mean_us, rtt_p95_us, rtt_us, min_rtt_us, bytes_acked,"
        " segs_out, data_segs_out, retrans_pkts, delivered_pkts, delivered_ce_pkts, busy_us, rwnd_limited_us)"
        f" WITH cityHash64(number, '{host} {network} {control}') AS h, toUInt64(400000 + h % 4000000) AS sent"
        f" SELECT '{host}', now64(6, 'UTC') - toIntervalMillisecond(number * 60000 / {a_minute} + h % 900), 5, h,"
        f" toIPv6(concat('::ffff:198.51.{network}.', toString(1 + h % 200))), toInt64({(198 << 16) + (51 << 8)} +"
        f" {network}), '{control}', if(number % 20 = 19, 2, 1), 3000000, 30, 21000,"
        f" toUInt32(20000 + {above_ms} * 1000 * {spread}), toUInt32(20000 + {above_ms} * 2000 * {spread}), 24000,"
        f" 20000, sent, toUInt32(sent / 1400), toUInt32(sent / 1448),"
        f" toUInt32(sent / 1448 * {again} / 1000 * (h % 3)), toUInt32(sent / 1448), h % 3, toUInt64(sent * 8 / {mbps} /"
        f" {spread}), toUInt64(sent / {mbps} / 9) FROM numbers({a_minute * minutes})"
    )


def statements(minutes: int = 6) -> list[str]:
    """Of so many minutes until now."""
    made = [_ended(minutes, *served) for served in SERVED]
    for number, host in enumerate((*HOSTS, OTHER)):
        made += [
            (
                "INSERT INTO batch (ap_id, site, ts, topic, boot_id, seq, ticks, ticks_missed, rows, bytes, kafka_ts,"
                f" kafka_partition, kafka_offset) SELECT '{host}', 'core', now64(6, 'UTC') - toIntervalSecond(number),"
                f" 'ap.packets.v1', 5, {minutes * 60} - number, 63, number % 90 = 7, 80, 4100, now64(3, 'UTC') -"
                f" toIntervalSecond(number), 0, {minutes * 60} - number FROM numbers({minutes * 60})"
            ),
            (
                "INSERT INTO health (ap_id, ts, boot_id, version, ticks, cpu_us, rss_bytes, rows_sent, rows_dropped)"
                f" SELECT '{host}', now64(6, 'UTC') - toIntervalSecond(number), 5, '0.2.0', 250 * ({minutes * 60} -"
                f" number), 4000 * ({minutes * 60} - number), 9000000 + {number}, 80 * ({minutes * 60} - number),"
                f" {number} * 3 FROM numbers({minutes * 60})"
            ),
            (
                "INSERT INTO sender_tcp (ap_id, ts, boot_id, flow_id, client_addr, server_port, congestion_control,"
                " interval_ms, state, cwnd_bytes, mss_bytes, rtt_us, min_rtt_us, bytes_acked, data_segs_out)"
                f" WITH cityHash64(number, '{host}') AS h SELECT '{host}', now64(6, 'UTC') -"
                f" toIntervalMillisecond(number * {100 + 40 * number}), 5, h % 30, toIPv6('::ffff:198.51.1.7'), 443,"
                " if(h % 30 < 20, 'cubic', 'bbr'), 100, 1, 14480 + h % 90000, 1448, 24000 + h % 9000, 20000,"
                f" 9000000 - number, 6000 - number FROM numbers({minutes * 60000 // (100 + 40 * number)})"
            ),
        ]
    # A policy chose bbr for two networks, tried another one, and gave it up; of the other host it only says so.
    made += [
        (
            "INSERT INTO action (ap_id, ts, boot_id, policy, kind, subject, backend, class, reason, value) SELECT"
            f" '{host}', now64(6, 'UTC') - toIntervalSecond(3 + number * 4), 5, 'cc-select', 3,"
            f" {(198 << 16) + (51 << 8)} + 1 + number % 2, {backend}, if(number % 3 = 2, 255, number % 3),"
            f" [1, 13, 5][number % 3 + 1], [3, 4, 0][number % 3 + 1] FROM numbers({minutes})"
        ) for host, backend in (("cache-1", 3), ("vpn-1", 1))
    ]
    # Batches of one that never came, and records of it that nobody could use; another is silent since five minutes.
    made += [
        (
            "INSERT INTO gap (ap_id, site, ts, topic, kind, boot_id, from_seq, to_seq, batches) SELECT 'vpn-1', 'core',"
            " now64(6, 'UTC') - INTERVAL 60 SECOND, 'ap.packets.v1', 'missing', 5, 90, 93, 4"
        ),
        (
            "INSERT INTO dead_letter (ts, topic, key, reason, detail, bytes, payload) SELECT now64(3, 'UTC') -"
            " toIntervalSecond(60 + number), 'ap.packets.v1', 'vpn-1', 'time_range', 'made for a test', 9, '' FROM"
            " numbers(7)"
        ),
        (
            "INSERT INTO batch (ap_id, site, ts, topic, boot_id, seq, ticks, ticks_missed, rows, bytes, kafka_ts,"
            " kafka_partition, kafka_offset) SELECT 'cache-2', 'core', now64(6, 'UTC') - toIntervalSecond(300 +"
            " number), 'ap.packets.v1', 5, 60 - number, 63, 0, 80, 4100, now64(3, 'UTC'), 0, 60 - number FROM"
            " numbers(60)"
        ),
        (
            "INSERT INTO sender_session (ap_id, ts, boot_id, flow_id, client_addr, client_prefix, end_known,"
            " bytes_acked, data_segs_out) SELECT 'cache-2', now64(6, 'UTC') - toIntervalSecond(330 + number), 5,"
            " number, toIPv6('2001:db8:0:7::1'), reinterpretAsInt64(toUInt64(0x20010DB800000007)), 1, 500, 2 FROM"
            " numbers(9)"
        ),
    ]
    return made
