"""The contract as Python objects, read from the `.proto` files, `settings.yaml`, `stream_tables.yaml`, `messages.yaml`
and `policies/`.

Everything generated is derived from `load()`; nothing else reads those files.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from . import manifest, messages, policy_list
from .bundle_law import RWND_FAIR
from .program_compile import Program, compile_program
from .program_file import program_hash
from .tables import TYPES, Column, SchemaError, Table

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"
FILES = [
    "oal/options.proto",
    "oal/samples.proto",
    "oal/packets.proto",
    "oal/events.proto",
    "oal/batch.proto",
    "oal/bundle.proto",
]
#: `absent` of a row has 32 bits
MAX_OPTIONAL = 32
BATCHES = [
    ("SampleBatch", "samples", "ap.samples.v1"),
    ("PacketBatch", "packets", "ap.packets.v1"),
    ("EventBatch", "events", "ap.events.v1"),
]


@dataclass
class Schema:
    tables: list[Table]
    header: list[tuple[str, int, str]]  #: (name, field number, comment)
    flow_dictionary: list[tuple[str, int]]
    settings: dict
    stream_tables: dict
    policy: dict  #: numbers.yaml of rwnd-fair, with field numbers
    messages: list[messages.Message]  #: messages.yaml
    manifests: list[manifest.Manifest] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)  #: of each manifest; the first is the default

    def table(self, name: str) -> Table:
        for t in self.tables:
            if t.name == name:
                return t
        raise SchemaError(f"no table {name}; there are {', '.join(t.name for t in self.tables)}")

    def stored(self, t: Table) -> list[tuple[str, str]]:
        """(name, type) of the columns of ClickHouse's table `t.stored_as` that take those of `t.clickhouse()`, in its
        order.
        """
        renamed = {c.name: c.stored_as for c in t.columns}
        type_of = {name: type_ for name, type_, _, _ in self.table(t.stored_as).clickhouse()}
        return [(renamed.get(name, name), type_of[renamed.get(name, name)]) for name, _, _, _ in t.clickhouse()]

    def shared(self, t: Table) -> list[dict]:
        """Columns that only the rows of `stream_tables.yaml` have, of a ClickHouse table that takes those of both."""
        own = {name for name, _, _, _ in t.clickhouse()}
        return [c for c in self.stream_tables.get(t.name, {"columns": []})["columns"] if c["name"] not in own]


def descriptors():
    """FileDescriptorSet of the `.proto` files, with comments (protoc, from grpcio-tools)."""
    import grpc_tools
    from google.protobuf import descriptor_pb2
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "set.bin"
        include = Path(grpc_tools.__file__).parent / "_proto"
        if protoc.main(
            [
                "protoc",
                f"-I{PROTO}",
                f"-I{include}",
                "--include_source_info",
                "--include_imports",
                f"--descriptor_set_out={out}",
                *FILES,
            ]
        ):
            raise SchemaError("protoc refused schema/proto; its message is above")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def _options(descriptor_set):
    """Parse the custom options through a descriptor pool of our own, so that no generated Python module is needed."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for f in descriptor_set.file:
        pool.Add(f)
    classes = message_factory.GetMessageClassesForFiles([f.name for f in descriptor_set.file], pool)
    return pool, classes


def _default_codec(kind: str, type_: str) -> str:
    if type_ == "NAME":
        return "ZSTD(1)"
    size = TYPES[type_][0]
    if kind == "COUNTER" and size >= 2:
        return f"Delta({size}), ZSTD(1)"
    if kind == "GAUGE":
        return "T64, ZSTD(1)" if size >= 2 else "ZSTD(1)"
    return "ZSTD(1)"


def _comments(file_descriptor) -> dict[tuple[int, ...], str]:
    return {
        tuple(l.path): " ".join(l.leading_comments.split())
        for l in file_descriptor.source_code_info.location
        if l.leading_comments
    }


def _check_stored_as(t: Table, tables: dict[str, Table]) -> None:
    """SchemaError unless the table's rows fit the ClickHouse table that takes them."""
    if t.stored_as not in tables or tables[t.stored_as].stored_as != t.stored_as:
        raise SchemaError(f"{t.name}: stored as {t.stored_as}, which is no table that stores itself")
    of = {c.name: TYPES[c.type][2] for c in tables[t.stored_as].columns}
    for c in t.columns:
        if c.stored_as not in of or TYPES[c.type][0] > tables[t.stored_as].column(c.stored_as).size:
            raise SchemaError(
                f"{t.name}.{c.name}: stored as {t.stored_as}.{c.stored_as}, which is not there or narrower"
            )


def _check_shared(schema: Schema) -> None:
    """SchemaError unless rows of `stream_tables.yaml` fit a table that access points send rows of, too."""
    for t in schema.tables:
        own = {name: type_ for name, type_, _, _ in t.clickhouse()}
        for c in schema.stream_tables.get(t.name, {"columns": []})["columns"]:
            if own.get(c["name"], c["type"]) != c["type"]:
                raise SchemaError(
                    f"{t.name}.{c['name']}: {own[c['name']]} in proto/, {c['type']} in stream_tables.yaml"
                )
        for c in schema.shared(t):
            if "default" not in c:
                raise SchemaError(f"{t.name}.{c['name']}: proto/ has no such column, so it needs a default")


def load() -> Schema:
    """Read the whole contract. Raises SchemaError when its files contradict each other."""
    fds = descriptors()
    pool, classes = _options(fds)
    field_options = classes["google.protobuf.FieldOptions"]
    message_options = classes["google.protobuf.MessageOptions"]
    col_ext = pool.FindExtensionByName("oal.col")
    table_ext = pool.FindExtensionByName("oal.table")
    kinds = {v.number: v.name for v in pool.FindEnumTypeByName("oal.Kind").values}
    types = {v.number: v.name for v in pool.FindEnumTypeByName("oal.Type").values}
    by_name = {}
    for f in fds.file:
        comments = _comments(f)
        for i, m in enumerate(f.message_type):
            by_name[m.name] = (m, comments, i)

    tables: list[Table] = []
    for topic, (batch, _, _) in enumerate(BATCHES):
        for fd in by_name[batch][0].field:
            name = fd.type_name.rsplit(".", 1)[-1]
            if not name.endswith("Columns"):
                continue
            m, comments, index = by_name[name]
            options = message_options.FromString(m.options.SerializeToString()).Extensions[table_ext]
            columns, n_optional = [], 0
            for j, c in enumerate(m.field):
                if c.name in ("run_rows", "run_absent"):
                    continue
                o = field_options.FromString(c.options.SerializeToString()).Extensions[col_ext]
                kind, type_ = kinds[o.kind], types[o.type]
                comment = comments.get((4, index, 2, j), "").rstrip(".")
                if kind == "KIND_UNSPECIFIED" or type_ == "TYPE_UNSPECIFIED" or not comment:
                    raise SchemaError(f"{name}.{c.name}: a column needs a kind, a type and a comment")
                if kind == "COUNTER" and not o.counter_bits:
                    raise SchemaError(f"{name}.{c.name}: a counter needs counter_bits")
                columns.append(
                    Column(
                        c.name,
                        len(columns),
                        c.number,
                        kind,
                        type_,
                        o.unit,
                        o.change,
                        (o.absent_bit - 1 if o.absent_bit else n_optional) if o.optional else -1,
                        o.counter_bits,
                        o.source,
                        comment,
                        o.codec or _default_codec(kind, type_),
                        o.stored_as or c.name,
                        o.normal,
                    )
                )
                n_optional += o.optional and not o.absent_bit
            bits = sorted(c.optional for c in columns if c.optional >= 0)
            if bits != list(range(len(bits))) or len(bits) > MAX_OPTIONAL:
                raise SchemaError(
                    f"{name}: absent_bit of its optional columns: {[b + 1 for b in bits]}; each once, without a gap, "
                    f"at most {MAX_OPTIONAL}"
                )
            order = [c.kind == "KEY" for c in columns]
            if order != sorted(order, reverse=True):
                raise SchemaError(f"{name}: KEY columns come first")
            tables.append(
                Table(
                    options.name,
                    options.id,
                    topic,
                    fd.number,
                    options.event,
                    options.max_rows,
                    options.max_runs,
                    tuple(columns),
                    comments.get((4, index), "").rstrip("."),
                    options.stored_as or options.name,
                )
            )
    tables.sort(key=lambda t: t.id)
    if [t.id for t in tables] != list(range(len(tables))):
        raise SchemaError(f"tables: ids {[t.id for t in tables]}; 0, 1, 2, … each once")
    for t in tables:
        _check_stored_as(t, {other.name: other for other in tables})
    header, hc, hi = by_name["Header"]
    flows = by_name["FlowDictionary"][0]
    settings = yaml.safe_load((ROOT / "settings.yaml").read_text())
    stream_tables = yaml.safe_load((ROOT / "stream_tables.yaml").read_text())
    try:
        numbers = (manifest.POLICIES / RWND_FAIR / "numbers.yaml").read_text()
        policy = policy_list.read(numbers, [(f.name, f.number) for f in by_name["Policy"][0].field])
        json_messages = messages.read(yaml.safe_load((ROOT / "messages.yaml").read_text()))
        manifests = manifest.load()
    except (policy_list.PolicyListError, messages.MessageError, manifest.ManifestError) as e:
        raise SchemaError(str(e)) from None
    schema = Schema(
        tables,
        [(f.name, f.number, hc.get((4, hi, 2, j), "")) for j, f in enumerate(header.field)],
        [(f.name, f.number) for f in flows.field],
        settings,
        stream_tables,
        policy,
        json_messages,
        manifests,
    )
    _check_shared(schema)
    schema.programs = [program_of(schema, m) for m in manifests]
    _check_programs_differ(schema)
    return schema


def _check_programs_differ(schema: Schema) -> None:
    """SchemaError when two policies compute the same vector: a decision names its program, not its policy, so their
    predictions could not be told apart.
    """
    seen: dict[bytes, manifest.Manifest] = {}
    for m, p in zip(schema.manifests, schema.programs):
        first = seen.setdefault(program_hash(p.words, p.decision_interval_us), m)
        if first is not m:
            raise SchemaError(
                f"features.yaml of policies {first.name} and {m.name} compute the same, so their predictions could "
                f"not be told apart: in one of them add a feature, leave one out, or change the order"
            )


def program_of(schema: Schema, m: manifest.Manifest) -> Program:
    """The compiled feature program of a policy. SchemaError names file and feature."""
    where = f"{m.name}/features.yaml"
    try:
        source = manifest.read_yaml(manifest.POLICIES / m.name / "features.yaml")
    except manifest.ManifestError as e:
        raise SchemaError(str(e)) from None
    if (
        not isinstance(source, dict)
        or sorted(source) != ["features", "name"]
        or not isinstance(source["features"], list)
    ):
        raise SchemaError(f"{where}: a program is a name and a list of features")
    if source["name"] != m.program:
        raise SchemaError(f"{where}: name {source['name']} is not the manifest's program, {m.program}")
    if not source["features"] or not all(isinstance(f, dict) for f in source["features"]):
        raise SchemaError(f"{where}: features is a list of {{name: …, op: …}}, and not empty")
    return compile_program(source, schema.table, schema.settings["decision_interval_us"], where)
