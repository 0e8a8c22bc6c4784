"""lab/grid/run: play the grid of policies/cc-select, and judge what is learned from it (lab/grid/README.md)."""
import argparse
import json
import pathlib

import numpy as np
from evaluate.results import Results

from . import harm, kept, paths, play, report, whole, wifi, wifi_more

HARM = "harm.parquet"  # sessions of paths that seemed to lose


def judge(grid: dict, folder: pathlib.Path, jobs: int, again: bool) -> None:
    """Writes judged.json, trees.json and table.md beside the sessions. Without `again` what was played again has to be
    there.
    """

    def costs(of, choices: list[np.ndarray]) -> dict:
        wanted, file = harm.doubtful(of, choices), folder / HARM
        if again and wanted:
            kept.write(harm.again(grid, wanted, jobs), file)
        return {"doubtful": len(wanted), "paths": harm.judged(kept.read(file), wanted) if wanted else []}

    found = whole.whole(grid, kept.read(folder / kept.FILE.name), costs, jobs)
    (folder / "trees.json").write_text(json.dumps(whole.trees(grid, kept.read(folder / kept.FILE.name))) + "\n",
                                       encoding="utf-8")
    (folder / "judged.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(report.page(found), encoding="utf-8")
    print(report.markdown(report.aims(found)))


def main() -> None:
    p = argparse.ArgumentParser(prog="lab/grid/run", description=__doc__)
    p.add_argument("what", choices=("play", "judge", "all", "wifi", "more"), nargs="?", default="all",
                   help="play what was not played and keep it; judge what is kept, and play what seems to lose; all of"
                   " it; or, of what `lab/evaluate/aims cc-select` left in --folder, what a choice is worth in Wi-Fi;"
                   " more: beside it, of cells of an earlier run, BBR for all in scenarios that were not played for it")
    p.add_argument("--jobs", type=int, default=2, help="guests at once (2)")
    p.add_argument("--folder", type=pathlib.Path, default=play.BUILD / "results",
                   help="of sessions.parquet and what is made of it (build/grid/results)")
    p.add_argument("--no-harm", action="store_true", help="what seems to lose was played again: harm.parquet has it")
    args = p.parse_args()
    if args.what == "wifi":
        text = wifi.page(wifi.whole(Results.read(args.folder)))
        (args.folder / wifi.PAGE).write_text(text, encoding="utf-8")
        print(text)
        return
    if args.what == "more":
        text = wifi_more.page(wifi_more.tables(Results.read(wifi_more.EARLIER), Results.read(args.folder)))
        (args.folder / wifi_more.PAGE).write_text(text, encoding="utf-8")
        print(text)
        return
    grid = paths.load()
    if args.what != "judge":
        rows = play.rows(play.play(grid, args.jobs))
        print(f"grid: {kept.write(rows, args.folder / kept.FILE.name)} sessions")
    if args.what != "play":
        judge(grid, args.folder, args.jobs, not args.no_harm)


if __name__ == "__main__":
    main()
