"""The stand-in of ClickHouse takes what the chart gives the official image: --config-file of a projected volume, TLS,
and clickhouse-client with the client's own configuration."""
import time

from docker_engine import build, run, tags

CONFIG = """<clickhouse>
  <path>/var/lib/clickhouse/</path>
  <listen_host>0.0.0.0</listen_host>
  <https_port>8123</https_port>
  <tcp_port_secure>9000</tcp_port_secure>
  <openSSL>
    <server>
      <certificateFile>/run/secrets/oal/pki/clickhouse.crt</certificateFile>
      <privateKeyFile>/run/secrets/oal/pki/clickhouse.key</privateKeyFile>
    </server>
    <client>
      <caConfig>/run/secrets/oal/pki/clickhouse.crt</caConfig>
      <loadDefaultCAFile>false</loadDefaultCAFile>
      <verificationMode>strict</verificationMode>
    </client>
  </openSSL>
  <users_config>users.xml</users_config>
  <logger><level>warning</level><console>true</console></logger>
</clickhouse>
"""
USERS = """<clickhouse>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users><admin>
    <password>of-the-mount</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
  </admin></users>
</clickhouse>
"""
CLIENT = """<config>
  <host>localhost</host><port>9000</port><secure>1</secure>
  <openSSL><client><caConfig>/run/secrets/oal/pki/clickhouse.crt</caConfig></client></openSSL>
</config>
"""


def test_clickhouse_takes_the_configuration_that_is_named(engine, request, tmp_path):
    build("clickhouse")
    config, secrets = tmp_path / "config", tmp_path / "secrets"
    (config / "..now").mkdir(parents=True)
    for name, text in (("config.xml", CONFIG), ("users.xml", USERS), ("client.xml", CLIENT)):
        (config / "..now" / name).write_text(text)
        (config / name).symlink_to(f"..now/{name}")
    for part in ("pki", "secrets"):
        (secrets / part).mkdir(parents=True)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", secrets / "pki" / "clickhouse.key",
        "-out", secrets / "pki" / "clickhouse.crt", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost")
    (secrets / "secrets" / "clickhouse-admin.password").write_text("of-the-mount")
    run("chmod", "-R", "a+rX", tmp_path)
    name = f"oal-test-{tmp_path.name}".replace("_", "-")
    request.addfinalizer(lambda: engine.docker("rm", "-f", "-v", name, check=False))
    engine.docker("run", "-d", "--name", name, "--read-only", "--tmpfs", "/tmp", "--user", "101:101", "--cap-drop",
                  "ALL", "--network", "none", "-v", f"{config}:/etc/oal/clickhouse:ro", "-v",
                  f"{secrets}:/run/secrets/oal:ro", tags()["CLICKHOUSE_IMAGE"],
                  "--config-file=/etc/oal/clickhouse/config.xml")

    def ask(password: str, query: str = "SELECT currentUser()") -> str:
        return engine.docker("exec", name, "clickhouse-client", "--config-file", "/etc/oal/clickhouse/client.xml", "-u",
                             "admin", "--password", password, "-q", query, check=False)

    deadline = time.monotonic() + 180
    while "admin" not in (said := ask("of-the-mount")).splitlines():
        assert time.monotonic() < deadline, said + engine.docker("logs", "--tail", "20", name)
        time.sleep(0.5)
    assert "Authentication failed" in ask("another")
    plain = engine.docker("exec", name, "wget", "-q", "-T", "5", "-t", "1", "-O", "-",
                          "http://localhost:8123/ping", check=False)
    assert "Ok." not in plain  # TLS alone, as configured
    # As one server of a cluster asks another.
    other = "SELECT currentUser() FROM {}('localhost:9000', system.one, 'admin', 'of-the-mount')"
    assert ask("of-the-mount", other.format("remoteSecure")).strip() == "admin"
    assert ask("of-the-mount", other.format("remote")).strip() != "admin"
