"""platform/setup/gotool: what it builds is as new as what it is built from."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_changed_program_of_the_folder_is_built_again(tmp_path):
    tool = tmp_path / "tool"
    tool.mkdir()
    (tool / "go.mod").write_text("module example/tool\n\ngo 1.26.0\n")
    (tool / "go.sum").write_text("")

    def said(word: str) -> str:
        (tool / "main.go").write_text(f'package main\n\nfunc main() {{ print("{word}") }}\n')
        done = subprocess.run([ROOT / "platform/setup/gotool", tool], capture_output=True, text=True,
                              env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TOOLS": "."})
        assert done.returncode == 0, done.stderr
        return subprocess.run([Path(done.stdout.strip()) / "tool"], capture_output=True, text=True, check=True).stderr

    assert [said("first"), said("second"), said("first")] == ["first", "second", "first"]
