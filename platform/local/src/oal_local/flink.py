"""Flink: a JobManager that runs one job (application mode), and a TaskManager."""
import hashlib
import json
import shutil
import urllib.request

from oal_local import checkpoints, classdata, clickhouse, distribution, jolokia, kafka, passwords, pki
from oal_local.errors import PlatformError
from oal_local.paths import CONFIG, REPO, State, write_private
from oal_local.settings import Settings, short_lived
from oal_local.template import fill

JOBMANAGER = "jobmanager"
TASKMANAGER = "taskmanager"
MANAGED_MIB = {"hashmap": 16, "rocksdb": 256}  # RocksDB's memory is Flink's managed memory
FRAMEWORK_HEAP_MIB = 128
#: What ../../../kafka/server.properties allows at most: the outage of ClickHouse that costs no item.
TRANSACTION_TIMEOUT_MS = 86_400_000
DIRECT_MIB = 128 + 64 + 96  # framework and task off-heap, network

QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # least CPU for what lives minutes
JOBMANAGER_JVM = ("-Xms64m", "-Xmx320m", *QUICK)
#: Where `settings.short_lived()`: in the minutes of a test the optimising compiler would take a third of the
#: TaskManager's CPU. It compiles what is hottest by far, and TLS at once.
SELDOM_COMPILED = ("-XX:+UseSerialGC", "-XX:Tier4InvocationThreshold=100000", "-XX:Tier4MinInvocationThreshold=20000",
                   "-XX:Tier4CompileThreshold=300000", "-XX:Tier4BackEdgeThreshold=800000",
                   "-XX:CompileCommand=quiet",
                   "-XX:CompileCommand=CompileThresholdScaling,com.sun.crypto.provider.*::*,0.05")

# What Flink's own start scripts open to itself: Kryo and the RPC layer reach into these.
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text",
                    "java.time", "java.util", "java.util.concurrent", "java.util.concurrent.atomic",
                    "java.util.concurrent.locks")
] + [
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED", "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
]


def rest_url(settings: Settings) -> str:
    return f"https://127.0.0.1:{settings.ports['flink_rest']}"


def render(state: State, settings: Settings) -> None:
    render_cluster(state, settings)
    write_private(state.job_properties, job_properties(state, settings))


def render_cluster(state: State, settings: Settings) -> None:
    if settings.state_backend not in MANAGED_MIB:
        raise PlatformError(f"state_backend must be one of {', '.join(MANAGED_MIB)}, not `{settings.state_backend}`")
    config = fill(CONFIG / "flink" / "config.yaml", pki=state.pki,
                  internal_password=(state.pki / "flink-internal.password").read_text(),
                  rest_password=(state.pki / "flink-rest.password").read_text(), rpc_port=settings.ports["flink_rpc"],
                  blob_port=settings.ports["flink_blob"], rest_port=settings.ports["flink_rest"],
                  taskmanager_rpc_port=settings.ports["taskmanager_rpc"], slots=settings.parallelism,
                  parallelism=settings.parallelism, state_backend=settings.state_backend,
                  checkpoint_interval=settings.checkpoint_interval, incremental=str(
                      settings.state_backend == "rocksdb").lower(), task_heap_mib=settings.taskmanager_heap_mib
                  - FRAMEWORK_HEAP_MIB, managed_mib=MANAGED_MIB[settings.state_backend])
    # Flink's YAML refuses a key given twice, so an option given replaces the template's line.
    lines = [line for line in config.splitlines() if line.split(":")[0] not in settings.flink]
    lines += [f"{key}: {value}" for key, value in settings.flink.items()]
    write_private(state.flink / "conf" / "config.yaml", "\n".join(lines) + "\n")


def job_properties(state: State, settings: Settings) -> str:
    """What the job gets with --config. Everything below `kafka.` is a Kafka client option with that prefix taken off.
    """
    values = {f"kafka.{key}": value for key, value in kafka.java_client(state, settings, "stream-jobs").items()}
    values |= {
        "kafka.transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "clickhouse.url": clickhouse.url(settings),
        "clickhouse.database": clickhouse.DATABASE,
        "clickhouse.user": "ingest",
        "clickhouse.password.file": passwords.file(state, "ingest"),
        "mac.keys.file": state.mac_masters,
        "policies.file": REPO / "schema" / "generated" / "policies.json",
        **settings.job_properties,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def prepare_jobmanager(state: State, settings: Settings) -> None:
    _empty(state.flink / "tmp" / JOBMANAGER)


def prepare_taskmanager(state: State, settings: Settings) -> None:
    _empty(state.flink / "tmp" / TASKMANAGER)


def _empty(folder) -> None:
    """What a process that was killed left behind (blobs, spilled data) is of no use to the next one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def job_id(settings: Settings) -> str:
    """The same in every run, so that a TaskManager that lives on recognises its job in the new JobManager."""
    return hashlib.md5(settings.job_class.encode(), usedforsecurity=False).hexdigest()


def _java(state: State, service: str, job_jar: str, *options: str) -> list[str]:
    """The job is on the class path of both processes: sent from one to the other, as Flink would, it takes many seconds
    of encryption at every start."""
    log4j = f"file:{CONFIG / 'flink' / 'log4j2.properties'}"
    return [
        "java", *options, "-XX:MaxMetaspaceSize=256m", *classdata.options(service), *jolokia.options(state, service),
        *OPENS, f"-Dlog4j2.configurationFile={log4j}", f"-Dlog4j.configurationFile={log4j}",
        f"-Djava.io.tmpdir={state.flink / 'tmp' / service}", "-cp",
        ":".join(filter(None, (distribution.class_path("flink"), job_jar)))
    ]


def _common(state: State, service: str) -> list[str]:
    return ["--configDir", str(state.flink / "conf"), f"-Dio.tmp.dirs={state.flink / 'tmp' / service}"]


def jobmanager_command(state: State, settings: Settings) -> list[str]:
    """Begin a run from the newest complete checkpoint, so that a JobManager killed at any moment goes on by itself."""
    run, resumed = checkpoints.begin_run(state.checkpoints)
    if resumed:
        print(f"jobmanager: {run.name} resumes from {resumed}", flush=True)
    else:
        print(f"jobmanager: {run.name} starts without a checkpoint", flush=True)
    return [*_java(state, JOBMANAGER, settings.job_jar, *JOBMANAGER_JVM),
            "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint", *_common(state, JOBMANAGER),
            f"-Dexecution.checkpointing.dir=file://{run}",
            "--job-id", job_id(settings), "--job-classname", settings.job_class,
            *(["--fromSavepoint", f"file://{resumed}"] if resumed else []),
            "--",  # without it Flink takes the job's --config for an abbreviation of its own --configDir
            "--config", str(state.job_properties), *settings.job_args]


def session_command(state: State, settings: Settings) -> list[str]:
    """A JobManager without a job, for recording its classes."""
    return [*_java(state, JOBMANAGER, settings.job_jar, *JOBMANAGER_JVM),
            "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint", *_common(state, JOBMANAGER)]


def taskmanager_command(state: State, settings: Settings) -> list[str]:
    heap = settings.taskmanager_heap_mib
    compiler = SELDOM_COMPILED if short_lived() else ("-XX:+UseG1GC",)
    return [
        *_java(state, TASKMANAGER, settings.job_jar, f"-Xms{heap}m", f"-Xmx{heap}m",
               f"-XX:MaxDirectMemorySize={DIRECT_MIB}m", *compiler),
        "org.apache.flink.runtime.taskexecutor.TaskManagerRunner", *_common(state, TASKMANAGER)
    ]


def jobmanager_files(state: State, settings: Settings) -> list:
    return [
        state.flink / "conf" / "config.yaml",
        jolokia.config_file(state, JOBMANAGER), state.job_properties, settings.job_jar, *stores(state),
        *pki.files(state, "stream-jobs", "flink-rest")
    ]


def taskmanager_files(state: State, settings: Settings) -> list:
    return [
        state.flink / "conf" / "config.yaml",
        jolokia.config_file(state, TASKMANAGER), settings.job_jar, *stores(state), *pki.files(state, "stream-jobs")
    ]


def stores(state: State) -> list:
    """Both processes need the same: they trust each other by it."""
    return [state.pki / "flink-internal.p12", state.pki / "flink-rest.p12", state.pki / "flink-rest-trust.p12"]


def get(state: State, settings: Settings, path: str):
    """A GET of Flink's REST interface, decoded, with the certificate of an operator."""
    with urllib.request.urlopen(rest_url(settings) + path, timeout=5, context=kafka.tls(state, "operator")) as answer:
        return json.load(answer)


def taskmanagers(state: State, settings: Settings) -> int:
    """How many have registered; 0 while the JobManager does not answer."""
    try:
        return get(state, settings, "/overview")["taskmanagers"]
    except (OSError, ValueError):
        return 0


def jobmanager_ready(state: State, settings: Settings) -> bool:
    """The job is accepted (its graph built); it waits for a TaskManager from here on."""
    try:
        return bool(get(state, settings, "/jobs/overview")["jobs"])
    except (OSError, ValueError):
        return False


def taskmanager_ready(state: State, settings: Settings) -> bool:
    """Every task of every job runs."""
    try:
        jobs = get(state, settings, "/jobs/overview")["jobs"]
        return bool(jobs) and all(job["state"] == "FINISHED" or (job["state"] == "RUNNING" and job["tasks"]["running"]
                                                                 + job["tasks"]["finished"] == job["tasks"]["total"])
                                  for job in jobs)
    except (OSError, ValueError):
        return False
