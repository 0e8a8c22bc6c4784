#!/usr/bin/env python3
"""`helm test`: ask every part of the platform what the others ask of it, print a line for each, and end with 1 when one
does not answer as it should. Reads only.

usage: ask_platform.py [--ca FILE] [--clickhouse URL --database NAME --password-file FILE]
                       [--kafka HOST:PORT,… --kafka-certificate PATH] [--flink URL --flink-certificate PATH] [URL…]
       PATH.crt and PATH.key are a client's certificate and key; a URL is one of health, which answers 2xx
"""
import argparse
import json
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

TIMEOUT_S = 10


def context(ca: str | None, certificate: str | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=ca)
    if certificate:
        made.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    return made


def get(url: str, tls: ssl.SSLContext, headers: dict[str, str] | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=TIMEOUT_S,
                                context=tls) as answer:
        return answer.read()


def ask_clickhouse(options) -> str:
    """The schema is there, and an analyst may read it."""
    query = f"SELECT count() FROM system.tables WHERE database = '{options.database}'"
    headers = {"X-ClickHouse-User": "analyst", "X-ClickHouse-Key": Path(options.password_file).read_text().strip()}
    url = f"{options.clickhouse}/?{urllib.parse.urlencode({'query': query})}"
    tables = int(get(url, context(options.ca), headers))
    if not tables:
        raise ValueError(f"database {options.database} has no tables: did the migrations run?")
    return f"{tables} tables and views of {options.database}"


def ask_kafka(options) -> str:
    """Topics are there, and our certificate is believed."""
    from confluent_kafka.admin import AdminClient
    client = AdminClient({
        "bootstrap.servers": options.kafka, "security.protocol": "ssl", "ssl.ca.location": options.ca,
        "ssl.certificate.location": f"{options.kafka_certificate}.crt",
        "ssl.key.location": f"{options.kafka_certificate}.key"
    })
    found = client.list_topics(timeout=TIMEOUT_S)
    if not found.topics:
        raise ValueError("no topic is there, or none may be seen: did Job topics run?")
    return f"{len(found.brokers)} brokers, {len(found.topics)} topics"


def ask_flink(options) -> str:
    """The job runs, every task of it. An open port says less."""
    jobs = json.loads(get(f"{options.flink}/jobs/overview", context(options.ca, options.flink_certificate)))["jobs"]
    running = [job for job in jobs if job["state"] == "RUNNING"]
    if len(running) != 1:
        raise ValueError(f"one job should run; there are {[(job['name'], job['state']) for job in jobs]}")
    tasks = running[0]["tasks"]
    if tasks["running"] != tasks["total"]:
        raise ValueError(f"{tasks['running']} of {tasks['total']} tasks run")
    return f"{tasks['running']} of {tasks['total']} tasks run"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("ca", "clickhouse", "database", "password-file", "kafka", "kafka-certificate", "flink",
                   "flink-certificate"):
        parser.add_argument(f"--{option}")
    parser.add_argument("health", nargs="*", metavar="URL")
    options = parser.parse_args()
    asked = [(what, ask) for what, ask in (("clickhouse", ask_clickhouse), ("kafka", ask_kafka), ("flink", ask_flink))
             if getattr(options, what)]
    asked += [(url, lambda o, url=url: f"{len(get(url, context(o.ca)))} bytes") for url in options.health]
    if not asked:
        parser.error("nothing to ask")
    failed = 0
    for what, ask in asked:
        try:
            print(f"ok    {what}: {ask(options)}", flush=True)
        except Exception as error:  # each library has its own; whatever it is, this part does not answer
            failed += 1
            said = f" {error.read(300).decode(errors='replace')}" if isinstance(error, urllib.error.HTTPError) else ""
            print(f"wrong {what}: {error}{said}", flush=True)
    print(f"{len(asked) - failed} parts answer, {failed} do not", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
