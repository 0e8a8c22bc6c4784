"""The command line."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from oal_schema.grant import ROLES, grant
from oal_schema.mode import MODES

from oal_registry.errors import RegistryError

DESCRIPTION = """MLflow server, packaging, signing, promotion and retraining of the models that APs run.

A VERSION is MODEL/NUMBER, as congestion/3. Commands that read MLflow take --config, the configuration file of
`serve`."""


def version_name(text: str) -> tuple[str, int]:
    """`congestion/3` → ("congestion", 3); for argparse."""
    match = re.fullmatch(r"([^/]+)/([1-9]\d{0,8})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"`{text}` is not MODEL/NUMBER, like congestion/3")
    return match[1], int(match[2])


def parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    top = argparse.ArgumentParser(
        prog="oal-registry", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, **options) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, **options)

    server = command("server", "Run the MLflow server: tracking, registry, web page, users.")
    server.add_argument("--config", required=True, metavar="FILE")
    serve = command(
        "serve", "Run promotion and retraining: aliases become releases, retrain=requested becomes a training run."
    )
    serve.add_argument("--config", required=True, metavar="FILE")

    package = command("package", "Make and sign the bundle of a version.")
    package.add_argument(
        "--config",
        required=True,
        metavar="FILE",
        help="configuration of `serve`, of which mlflow, signing_key and trusted_keys are used",
    )
    package.add_argument(
        "--version", required=True, type=version_name, metavar="VERSION", help="version of the congestion tree"
    )
    package.add_argument("--window", type=version_name, metavar="VERSION", help="version of the window model")
    package.add_argument("--target", default="fleet", help="fleet (default), site/SITE or ap/AP_ID")
    package.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="policy file; without it the one of the folder that applies to the target",
    )
    package.add_argument(
        "--rollback-to",
        action="append",
        default=[],
        metavar="HEX",
        help="hash of a bundle an AP may go back to; up to four",
    )
    package.add_argument("--out", required=True, metavar="FILE")

    export = command("export", "Print a tree as text records (or JSON).")
    export.add_argument(
        "tree", metavar="VERSION|FILE", help="version in MLflow, or file: signed bundle, JSON, text records"
    )
    export.add_argument("--config", metavar="FILE", help="configuration of `serve`; needed for a VERSION")
    export.add_argument("--json", action="store_true", help="the complete node table as JSON instead of text records")
    export.add_argument(
        "--view", action="store_true", help="for people: names, thresholds in units, shares of the classes"
    )
    export.add_argument("--picture", metavar="FILE.png", type=Path, help="draw it there instead, cut at --depth")
    export.add_argument("--depth", type=int, default=5, help="of the view and the picture (default 5)")
    export.add_argument("--numeric", action="store_true", help="names as numbers: features from 1, leaves 0")
    export.add_argument(
        "--program", default="congestion", metavar="NAME", help="feature program of text records (default: congestion)"
    )

    imported = command("import", "Check text records and print the tree as JSON, which `predict` and `export` take.")
    imported.add_argument("tree", metavar="FILE", help="text records; - is standard input")
    imported.add_argument(
        "--program",
        default="congestion",
        metavar="NAME",
        help="feature program that the names are of (default: congestion)",
    )

    predict = command(
        "predict", "Evaluate a tree on a CSV of features; prints leaf,class,class_name,congested_permille."
    )
    predict.add_argument("--tree", required=True, metavar="FILE", help="text records, JSON or a signed bundle")
    predict.add_argument(
        "--program", default="congestion", metavar="NAME", help="feature program of text records (default: congestion)"
    )
    predict.add_argument("--allow-absent", action="store_true", help="features without a column are missing values")
    predict.add_argument("csv", metavar="CSV", help="with a header of feature names; - is standard input")

    policies = command("policies", "Check the control policies that bundles carry.")
    actions = policies.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="Check every file, and say what it changes.",
        description="Check every file of a folder of policies, and say what it changes.",
    )
    check.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="folder (default: that of --config, or policies/in-force)"
    )
    check.add_argument(
        "--config", metavar="FILE", help="configuration of `serve`: say which releases in force would be made anew"
    )

    keys = command("keys", "Make, show and rotate the key that signs bundles.")
    actions = keys.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("make", "Make a key."),
        ("show", "Print the line by which APs trust a key."),
        ("rotate", "Replace a key, in three steps."),
    ):
        action = actions.add_parser(name, help=text, description=text)
        if name == "rotate":
            action.add_argument(
                "step",
                choices=("begin", "switch", "end"),
                help="begin: make and trust the next key; switch: sign with it; end: trust the old one no longer",
            )
        action.add_argument("key", type=Path, metavar="KEY", help="private key in PEM")
        action.add_argument(
            "--name",
            default=f"registry-{time.strftime('%Y-%m')}",
            help="name in the trusted file (default: registry-YEAR-MONTH)",
        )
        if name != "rotate":
            action.add_argument(
                "--role",
                choices=sorted(ROLES),
                default="registry",
                help="whose bundles it may sign (default: registry)",
            )
            action.add_argument(
                "--scope",
                default="fleet",
                metavar="SCOPE",
                help="nothing outside it: fleet (default), site/SITE or ap/AP_ID; an operator's is narrower than fleet",
            )
            action.add_argument(
                "--max-mode",
                choices=list(MODES),
                default="enforce",
                help="no policy above this mode (default: enforce)",
            )
        if name != "show":
            action.add_argument(
                "--trusted",
                type=Path,
                required=name == "rotate",
                metavar="FILE",
                help="file of trusted keys, which all APs get",
            )
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    options = parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options)
    except RegistryError as error:
        print(f"oal-registry {options.command}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1


def _server(options) -> int:
    from oal_registry import server

    server.serve(options.config)
    return 1


def _serve(options) -> int:
    from oal_registry import service

    return service.serve(options.config)


def _models(config_file: str, manifest):
    """The models of a policy in MLflow, and the configuration file's sections."""
    from oal_registry import config
    from oal_registry.mlflow_client import MlflowRegistry
    from oal_registry.models import Models

    top = config.Section(config.load(config_file), config_file)
    return Models(MlflowRegistry.of_section(top.section("mlflow")), manifest), top


def _package(options) -> int:
    from oal_schema import bundle, keys
    from oal_schema.nodes import BundleError

    from oal_registry import package, registered, signing_keys

    manifest = registered.manifest_of(options.version[0], "class")
    if options.window:
        if manifest.role("window") is None:
            raise RegistryError(f"policy {manifest.name} has no window model")
        manifest = registered.renamed(manifest, "window", options.window[0])
    models, top = _models(options.config, manifest)
    compiled = [models.compiled(manifest.role("class"), options.version[1])]
    if options.window:
        compiled.append(models.compiled(manifest.role("window"), options.window[1]))
    policy = _policy(options, top, manifest.name)
    try:
        back = [bytes.fromhex(text) for text in options.rollback_to]
        if any(len(digest) != 32 for digest in back) or len(back) > package.MAX_ROLLBACK:
            raise ValueError("hashes are 64 hexadecimal digits, at most four")
        key = keys.load(top.get("signing_key", str))
    except (OSError, ValueError) as error:
        raise RegistryError(str(error)) from None
    made = package.build(
        manifest,
        compiled,
        target=options.target,
        serial=time.time_ns() // 1000,
        rollback_to=back,
        key=key,
        policy=policy,
    )
    try:
        bundle.open_signed(made.signed, signing_keys.trusted_file(top.get("trusted_keys", str)).keys, None, None)
    except BundleError as error:
        raise RegistryError(f"no reader would accept it: {error}") from None
    Path(options.out).write_bytes(made.signed)
    bound = f", window model within {compiled[1].error_bound:.0f} bytes of the original" if options.window else ""
    print(
        f"{options.out}: {len(made.signed)} bytes, {made.nodes} nodes, hash {made.hash.hex()}, serial {made.serial},"
        f" policy {policy}{bound}"
    )
    return 0


def _policy(options, top, policy: str):
    from oal_schema.policy_file import PolicyError, load, read

    try:
        if options.policy:
            return read(options.policy).policy
        return load(_policy_folder(top)).of_policy(policy).of(options.target)
    except PolicyError as error:
        raise RegistryError(f"policy: {error}") from None


def _policy_folder(top) -> Path:
    from oal_schema.policy_folder import SHIPPED

    return Path(top.get("policies", str, str(SHIPPED)))


def _policies(options) -> int:
    from oal_schema.policy_folder import SHIPPED

    from oal_registry import config, policies_check

    top = config.Section(config.load(options.config), options.config) if options.config else None
    folder = options.folder or (_policy_folder(top) if top else SHIPPED)
    if top is None:
        return policies_check.check(folder, None)
    return policies_check.check(folder, top.get("kafka", dict), top.get("trusted_keys", str))


def _export(options) -> int:
    from oal_registry import json_tree, registered, text_tree, tree_file

    if re.fullmatch(r"[^/]+/[1-9]\d*", options.tree) and not Path(options.tree).exists():
        if not options.config:
            raise RegistryError(
                f"{options.tree} is no file; for a version in MLflow, name the configuration of `serve` with --config"
            )
        name, number = version_name(options.tree)
        manifest = registered.manifest_of(name, "class")
        models, _ = _models(options.config, manifest)
        compiled = models.compiled(manifest.role("class"), number)
        tree, program = compiled.table, compiled.program
    else:
        tree, program = tree_file.load(options.tree, options.program)
    if options.json:
        sys.stdout.write(json_tree.dumps(tree, program))
        return 0
    if options.view or options.picture:
        from oal_schema.settings import settings
        from oal_training.batch import tree_view

        seen = tree_view.of_compiled(tree, program.features, program.units, tuple(settings()["class_names"]))
        if options.view:
            sys.stdout.write(tree_view.text(seen, options.depth))
        if options.picture:
            tree_view.draw(options.picture, seen, options.depth, options.tree)
        return 0
    for lost in text_tree.lost_in_text(tree):
        print(
            (
                f"oal-registry export: text records do not hold {lost}"
                if not lost[0].isdigit()
                else f"oal-registry export: {lost}"
            ),
            file=sys.stderr,
        )
    sys.stdout.write(text_tree.dumps(tree, program.features, options.numeric))
    return 0


def _import(options) -> int:
    from oal_registry import json_tree, tree_file

    tree, program = tree_file.load_text(options.tree, options.program)
    sys.stdout.write(json_tree.dumps(tree, program))
    print(f"oal-registry import: {tree.n_nodes} nodes over the features of {program.name}", file=sys.stderr)
    return 0


def _predict(options) -> int:
    from oal_registry import features_csv, tree_file

    tree, program = tree_file.load(options.tree, options.program)
    try:
        with sys.stdin if options.csv == "-" else open(options.csv, encoding="utf-8", newline="") as file:
            features_csv.write_predictions(
                tree, features_csv.read(file, program.features, options.allow_absent), sys.stdout
            )
    except OSError as error:
        raise RegistryError(f"cannot read {options.csv}: {error.strerror}") from None
    return 0


def _keys(options) -> int:
    from oal_registry import signing_keys

    if options.action != "rotate":
        try:
            may = grant(options.role, options.scope, options.max_mode)
        except ValueError as error:
            raise RegistryError(str(error)) from None
    if options.action == "make":
        print(signing_keys.make(options.key, options.name, options.trusted, may))
    elif options.action == "show":
        print(signing_keys.show(options.key, options.name, may))
    elif options.step == "begin":
        print(signing_keys.begin(options.key, options.trusted, options.name))
        print(f"next: bring {options.trusted} to every AP, then `keys rotate switch`", file=sys.stderr)
    elif options.step == "switch":
        old = signing_keys.switch(options.key, options.trusted)
        print(
            f"{old:016x} signs no more. Next: restart `serve`, promote anew so that every AP holds a bundle of the new"
            " key, then `keys rotate end`",
            file=sys.stderr,
        )
    else:
        old = signing_keys.end(options.key, options.trusted)
        print(f"{old:016x} is trusted no more. Next: bring {options.trusted} to every AP", file=sys.stderr)
    return 0


COMMANDS = {
    "server": _server,
    "serve": _serve,
    "package": _package,
    "export": _export,
    "import": _import,
    "predict": _predict,
    "policies": _policies,
    "keys": _keys,
}
