"""Java: table and column specs, settings, derived tables, feature programs."""

from __future__ import annotations

from .emit_java_rows import NOTE, camel
from .model import BATCHES, Schema
from .program_file import program_hash


def _literal(word: int) -> str:
    return {-(1 << 63): "Long.MIN_VALUE", -(1 << 63) + 1: "Long.MIN_VALUE + 1", (1 << 63) - 1: "Long.MAX_VALUE"}.get(
        word, f"{word}L"
    )


def _doc(text: str, indent: str = "") -> str:
    return f"{indent}/** {text}. */"


def files(schema: Schema) -> dict[str, str]:
    """File name → text, all in package `oal.schema`."""
    out: dict[str, str] = {}

    def put(name: str, body: str) -> None:
        out[f"{name}.java"] = f"{NOTE}package oal.schema;\n\n{body}\n"

    put("Kind", "/** What a column is. */\npublic enum Kind { KEY, TICK, TIME_US, GAUGE, COUNTER, STATE, VALUE }")
    put(
        "Type",
        "/** How wide a column is: smallest and largest value. */\npublic enum Type {\n"
        + "  "
        + ", ".join(
            f"{t}({_literal(lo)}, {_literal(hi)})"
            for t, lo, hi in [
                ("U8", 0, 255),
                ("U16", 0, 65535),
                ("U32", 0, (1 << 32) - 1),
                ("U64", 0, (1 << 63) - 1),
                ("I8", -128, 127),
                ("I16", -32768, 32767),
                ("I32", -(1 << 31), (1 << 31) - 1),
                ("I64", -(1 << 63), (1 << 63) - 1),
                ("MAC", 0, (1 << 48) - 1),
                ("NAME", 0, 65535),
                ("FLOW", 0, 65535),
            ]
        )
        + ";\n\n  public final long min;\n  public final long max;\n\n  Type(long min, long max) {\n"
        "    this.min = min;\n    this.max = max;\n  }\n}",
    )
    put(
        "Topic",
        "/** Topics that access points write. */\npublic enum Topic {\n  "
        + ",\n  ".join(f'{t.upper()}("{n}")' for _, t, n in BATCHES)
        + ";\n\n  public final String kafkaName;\n\n  Topic(String kafkaName) {\n    this.kafkaName = kafkaName;\n  }\n"
        "}",
    )
    put(
        "ColumnSpec",
        "/** One column of a table; {@code optional} is its bit of run_absent, or -1 where it is always known. */\n"
        "public record ColumnSpec(\n    String name, int index, int field, Kind kind, Type type, int counterBits, "
        "boolean change, int optional) {}",
    )
    put(
        "ClickHouseColumn",
        "/** One ClickHouse column, in order of insertion. */\n"
        "public record ClickHouseColumn(String name, String type) {}",
    )
    put(
        "TableSpec",
        """import java.util.List;

/**
 * One table: its message field, limits, columns (keys first) and ClickHouse columns. Its rows are inserted into the
 * ClickHouse table {@code storedAs}, there in the columns {@code stored}, in the order of {@code clickhouse}.
 */
public record TableSpec(
    String name,
    int id,
    Topic topic,
    int field,
    boolean event,
    int maxRows,
    int maxRuns,
    int keys,
    List<ColumnSpec> columns,
    List<ClickHouseColumn> clickhouse,
    String storedAs,
    List<ClickHouseColumn> stored) {

  /** A table whose rows are stored under its own name. */
  public TableSpec(
      String name, int id, Topic topic, int field, boolean event, int maxRows, int maxRuns, int keys,
      List<ColumnSpec> columns, List<ClickHouseColumn> clickhouse) {
    this(name, id, topic, field, event, maxRows, maxRuns, keys, columns, clickhouse, name, clickhouse);
  }
}""",
    )

    o = ["import java.util.List;\n", "/** Every table of the contract. */\npublic final class Tables {"]
    for t in schema.tables:
        o.append(_doc(t.comment, "  "))
        o.append(
            f"  public static final TableSpec {t.name.upper()} =\n      new TableSpec(\n"
            f'          "{t.name}", {t.id}, Topic.{BATCHES[t.topic][1].upper()}, {t.field}, {str(t.event).lower()}, '
            f"{t.max_rows}, {t.max_runs}, {t.keys},\n          List.of("
        )
        o.append(
            ",\n".join(
                f'              new ColumnSpec("{c.name}", {c.index}, {c.field}, Kind.{c.kind}, Type.{c.type}, '
                f"{c.counter_bits}, {str(c.change).lower()}, {c.optional})"
                for c in t.columns
            )
            + "),"
        )
        o.append("          List.of(")
        o.append(
            ",\n".join(f'              new ClickHouseColumn("{n}", "{ty}")' for n, ty, _, _ in t.clickhouse())
            + (")" if t.stored_as == t.name else "),")
        )
        if t.stored_as != t.name:
            o.append(f'          "{t.stored_as}",\n          List.of(')
            o.append(
                ",\n".join(f'              new ClickHouseColumn("{n}", "{ty}")' for n, ty in schema.stored(t)) + ")"
            )
        o[-1] += ");"
        o.append(f"\n  /** Column indices of {t.name}. */\n  public static final class {camel(t.name, True)} {{")
        o += [f"    public static final int {c.name.upper()} = {c.index};" for c in t.columns]
        o.append(f"\n    private {camel(t.name, True)}() {{}}\n  }}\n")
    o.append(
        "  public static final List<TableSpec> ALL =\n      List.of("
        + ", ".join(t.name.upper() for t in schema.tables)
        + ");\n"
    )
    o.append("  private Tables() {}\n}")
    put("Tables", "\n".join(o))

    o = [
        "import java.util.List;\nimport java.util.Map;\n",
        "/** Tables that the stream jobs derive. */\npublic final class StreamTables {",
    ]
    for name, spec in schema.stream_tables.items():
        o.append(_doc(spec["comment"].rstrip("."), "  "))
        o.append(f"  public static final List<ClickHouseColumn> {name.upper()} =\n      List.of(")
        o.append(
            ",\n".join(f'          new ClickHouseColumn("{c["name"]}", "{c["type"]}")' for c in spec["columns"])
            + ");\n"
        )
    o.append("  /** Tables whose rows come as JSON, in records of platform.events.v1, by name. */")
    o.append("  public static final Map<String, List<ClickHouseColumn>> FROM_JSON =\n      Map.of(")
    o.append(
        ",\n".join(
            f'          "{name}", {name.upper()}' for name, spec in schema.stream_tables.items() if "topic" in spec
        )
        + ");\n"
    )
    o.append("  private StreamTables() {}\n}")
    put("StreamTables", "\n".join(o))

    o = ["/** Settings that several stages share. */\npublic final class Settings {"]
    for k, v in schema.settings.items():
        if isinstance(v, int):
            o.append(
                f"  public static final {'int' if v < 1 << 31 else 'long'} {k.upper()} = "
                f"{v}{'' if v < 1 << 31 else 'L'};"
            )
        elif isinstance(v[0], int):
            o.append(
                f"  private static final int[] {k.upper()} = {{{', '.join(map(str, v))}}};\n\n"
                f"  public static int[] {camel(k)}() {{\n    return {k.upper()}.clone();\n  }}\n"
            )
        else:
            o.append(
                f"  public static final java.util.List<String> {k.upper()} = "
                f"java.util.List.of({', '.join(chr(34) + x + chr(34) for x in v)});"
            )
    o.append("\n  private Settings() {}\n}")
    put("Settings", "\n".join(o))

    fields = ["/** Field numbers of the batch header and the flow dictionary. */\npublic final class Fields {"]
    fields += [f"  public static final int HEADER_{n.upper()} = {f};" for n, f, _ in schema.header]
    fields += [f"  public static final int FLOWS_{n.upper()} = {f};" for n, f in schema.flow_dictionary]
    fields.append(
        "  public static final int BATCH_HEADER = 1;\n  public static final int BATCH_FLOWS = 2;\n"
        "  public static final int RUN_ROWS = 1;\n  public static final int RUN_ABSENT = 2;\n\n  private Fields() {}\n}"
    )
    put("Fields", "\n".join(fields))

    put(
        "FeatureProgram",
        "/** A compiled feature program; twelve words a feature, see schema/README.md. */\n"
        "public record FeatureProgram(String name, long decisionIntervalUs, long[][] words, String[] names, byte[] "
        "hash) {}",
    )
    o = ["/** Feature programs that ship with this revision. */\npublic final class FeaturePrograms {"]
    for p in schema.programs[:1]:
        o.append(
            f"  public static final FeatureProgram {p.name.upper()} =\n      new FeatureProgram(\n"
            f'          "{p.name}",\n          {p.decision_interval_us}L,\n          new long[][] {{'
        )
        o.append(",\n".join("            {" + ", ".join(map(_literal, f.words)) + "}" for f in p.features))
        o.append("          },\n          new String[] {" + ", ".join(f'"{f.name}"' for f in p.features) + "},")
        o.append(
            "          new byte[] {"
            + ", ".join(str(b - 256 if b > 127 else b) for b in program_hash(p.words, p.decision_interval_us))
            + "});\n"
        )
    o.append("  private FeaturePrograms() {}\n}")
    put("FeaturePrograms", "\n".join(o))
    return out
