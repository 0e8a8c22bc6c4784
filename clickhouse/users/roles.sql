-- The users of analyst.xml, grafana.xml, ingest.xml and telegraf.xml as SQL, for a server with a writable access
-- storage (users.xml alone has none).
-- What names oal_shard or a setting distributed_… is for a cluster, and nothing to a single server.
-- Run once by an administrator, with the passwords' SHA-256 hashes as parameters:
--   clickhouse-client --param_analyst_sha256=… --param_ingest_sha256=… \
--     --param_telegraf_sha256=… --param_grafana_sha256=… --queries-file users/roles.sql

CREATE SETTINGS PROFILE IF NOT EXISTS oal_analyst SETTINGS
    readonly = 2,
    max_execution_time = 30 MIN 1 MAX 30,
    max_memory_usage = 2000000000 MIN 1 MAX 2000000000,
    max_threads = 2 MIN 1 MAX 2,
    max_rows_to_read = 2000000000 MIN 1 MAX 2000000000,
    max_bytes_to_read = 400000000000 MIN 1 MAX 400000000000,
    max_result_rows = 1000000 CONST,
    max_result_bytes = 1000000000 CONST,
    result_overflow_mode = 'throw' CONST,
    max_concurrent_queries_for_user = 8 CONST,
    distributed_product_mode = 'global',
    max_bytes_before_external_group_by = 1000000000,
    max_bytes_before_external_sort = 1000000000;

CREATE ROLE IF NOT EXISTS oal_analyst SETTINGS PROFILE 'oal_analyst';
GRANT SELECT ON oal.* TO oal_analyst;
GRANT SELECT ON oal_shard.* TO oal_analyst;
GRANT SELECT ON system.parts TO oal_analyst;
CREATE QUOTA IF NOT EXISTS oal_analyst FOR INTERVAL 1 hour MAX queries = 20000, execution_time = 3600 TO oal_analyst;
CREATE USER IF NOT EXISTS analyst IDENTIFIED WITH sha256_hash BY {analyst_sha256:String}
    DEFAULT ROLE oal_analyst DEFAULT DATABASE oal;
GRANT oal_analyst TO analyst;

CREATE SETTINGS PROFILE IF NOT EXISTS oal_ingest SETTINGS
    async_insert = 0,
    distributed_foreground_insert = 1,
    distributed_product_mode = 'global',
    deduplicate_blocks_in_dependent_materialized_views = 1,
    max_execution_time = 60,
    max_memory_usage = 2000000000;

CREATE ROLE IF NOT EXISTS oal_ingest SETTINGS PROFILE 'oal_ingest';
GRANT SELECT, INSERT ON oal.* TO oal_ingest;
GRANT SELECT, INSERT ON oal_shard.* TO oal_ingest;
CREATE USER IF NOT EXISTS ingest IDENTIFIED WITH sha256_hash BY {ingest_sha256:String}
    DEFAULT ROLE oal_ingest DEFAULT DATABASE oal;
GRANT oal_ingest TO ingest;

CREATE SETTINGS PROFILE IF NOT EXISTS oal_telegraf SETTINGS
    async_insert = 0,
    distributed_foreground_insert = 1,
    max_execution_time = 20,
    max_memory_usage = 500000000,
    max_threads = 1,
    max_concurrent_queries_for_user = 8;

CREATE ROLE IF NOT EXISTS oal_telegraf SETTINGS PROFILE 'oal_telegraf';
GRANT INSERT ON oal.platform_metric TO oal_telegraf;
GRANT INSERT ON oal_shard.platform_metric TO oal_telegraf;
GRANT SHOW TABLES ON oal.* TO oal_telegraf;
GRANT SHOW TABLES ON oal_shard.* TO oal_telegraf;
GRANT SELECT ON system.metrics TO oal_telegraf;
GRANT SELECT ON system.events TO oal_telegraf;
GRANT SELECT ON system.asynchronous_metrics TO oal_telegraf;
GRANT SELECT ON system.errors TO oal_telegraf;
GRANT SELECT ON system.disks TO oal_telegraf;
GRANT SELECT ON system.parts TO oal_telegraf;
GRANT SELECT ON system.mutations TO oal_telegraf;
GRANT SELECT ON system.replicas TO oal_telegraf;
GRANT SELECT ON system.server_settings TO oal_telegraf;
CREATE USER IF NOT EXISTS telegraf IDENTIFIED WITH sha256_hash BY {telegraf_sha256:String}
    DEFAULT ROLE oal_telegraf DEFAULT DATABASE oal;
GRANT oal_telegraf TO telegraf;

CREATE SETTINGS PROFILE IF NOT EXISTS oal_grafana SETTINGS
    readonly = 2,
    max_execution_time = 30 MIN 1 MAX 30,
    max_memory_usage = 1000000000 MIN 1 MAX 1000000000,
    max_threads = 2 MIN 1 MAX 2,
    max_rows_to_read = 1000000000 MIN 1 MAX 1000000000,
    max_bytes_to_read = 100000000000 MIN 1 MAX 100000000000,
    max_result_rows = 200000 CONST,
    max_result_bytes = 200000000 CONST,
    result_overflow_mode = 'throw' CONST,
    max_concurrent_queries_for_user = 32 CONST,
    distributed_product_mode = 'global',
    max_bytes_before_external_group_by = 500000000,
    max_bytes_before_external_sort = 500000000;

CREATE ROLE IF NOT EXISTS oal_grafana SETTINGS PROFILE 'oal_grafana';
GRANT SELECT ON oal.* TO oal_grafana;
GRANT SELECT ON oal_shard.* TO oal_grafana;
GRANT SELECT ON system.parts TO oal_grafana;
CREATE USER IF NOT EXISTS grafana IDENTIFIED WITH sha256_hash BY {grafana_sha256:String}
    DEFAULT ROLE oal_grafana DEFAULT DATABASE oal;
GRANT oal_grafana TO grafana;
-- For the alert rules: the same rights and password, a quota of its own. Quotas are of the users, not of their role.
CREATE USER IF NOT EXISTS grafana_alerts IDENTIFIED WITH sha256_hash BY {grafana_sha256:String}
    DEFAULT ROLE oal_grafana DEFAULT DATABASE oal;
GRANT oal_grafana TO grafana_alerts;
CREATE QUOTA OR REPLACE oal_grafana FOR INTERVAL 1 hour MAX queries = 200000, execution_time = 7200 TO grafana;
CREATE QUOTA IF NOT EXISTS oal_grafana_alerts FOR INTERVAL 1 hour MAX queries = 50000, execution_time = 7200
    TO grafana_alerts;
