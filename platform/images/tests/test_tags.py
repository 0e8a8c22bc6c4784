"""tags.env is the one place for tags and bases."""
import hashlib
import os
import re
import subprocess
import sys
import zipfile

from docker_engine import IMAGES, OWN, ROOT, tags


def test_every_base_of_a_dockerfile_is_an_argument_named_in_tags_env():
    known = tags(standins=False)
    for name in OWN:
        text = (IMAGES / name / "Dockerfile").read_text()
        bases = re.findall(r"^FROM (\S+)", text, re.M)
        assert len(bases) >= 2, f"{name} is not built in stages"
        for base in bases:
            assert re.fullmatch(r"\$\{(\w+_IMAGE)\}", base), f"{name}: FROM {base} is not out of tags.env"
            assert base[2:-1] in known, f"{name}: tags.env has no {base[2:-1]}"
        assert not re.search(r"^ARG \w+_IMAGE=", text, re.M), f"{name}: a default would be a second place for a tag"


def test_every_tag_is_exact():
    for name, value in tags(standins=False).items():
        if name.endswith("_IMAGE"):
            tag = value.rpartition(":")[2]
            assert re.search(r"\d", tag) and not tag.startswith("latest"), f"{name}={value} does not say which"


def test_stand_ins_replace_only_what_there_is():
    names = set(re.findall(r"^([A-Z_]+)=", (IMAGES / "tags.standin.env").read_text(), re.M))
    assert names <= set(tags(standins=False))


def test_the_set_up_image_has_the_packages_that_local_and_security_are_tested_with():
    def pins(file):
        return dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / file).read_text(), re.M))

    mine, local, security = (pins(f) for f in ("platform/images/setup/requirements.txt",
                                               "platform/local/requirements.txt", "platform/security/requirements.txt"))
    assert {n: mine[n] for n in ("confluent-kafka", "PyYAML")} == {n: local[n] for n in ("confluent-kafka", "PyYAML")}
    assert {n: mine[n] for n in ("cryptography", "cffi", "pycparser")
            } == {n: security[n] for n in ("cryptography", "cffi", "pycparser")}


def test_no_dockerfile_needs_buildkit():
    for file in IMAGES.rglob("*Dockerfile"):
        text = file.read_text()
        assert not re.search(r"^# *syntax=|RUN --mount|RUN <<|COPY --(link|chmod|exclude|parents)|ADD --checksum", text,
                             re.M), file


SHA = "0123456789abcdef0123456789abcdef01234567"


def test_the_revision_of_a_checkout_is_found_without_git(tmp_path):
    """What the builder of oal-learning does: an image without it would retrain and never register."""
    def revision(*said) -> str:
        return subprocess.run([IMAGES / "revision", tmp_path, *said], capture_output=True, text=True,
                              check=True).stdout.strip()

    assert revision() == ""  # an archive without .git
    assert revision(SHA) == SHA
    (tmp_path / "HEAD").write_text("ref: refs/heads/some/branch\n")
    assert revision() == ""
    (tmp_path / "packed-refs").write_text(f"# pack-refs with: peeled\n{'f' * 40} refs/heads/main\n"
                                          f"{SHA} refs/heads/some/branch\n")
    assert revision() == SHA
    loose = tmp_path / "refs" / "heads" / "some" / "branch"
    loose.parent.mkdir(parents=True)
    loose.write_text("a" * 40 + "\n")
    assert revision() == "a" * 40  # newer than the packed one
    (tmp_path / "HEAD").write_text(SHA + "\n")
    assert revision() == SHA  # a tag was checked out


def test_a_builder_gets_no_more_of_git_than_the_revision_takes():
    """.git/config may hold a token, and objects all that was ever committed."""
    sent = re.findall(r"^!(\.git\S*)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert set(sent) == {".git/HEAD", ".git/packed-refs", ".git/refs/heads"}


def test_images_install_python_packages_by_hash_alone():
    """A changed file of a package on its index stops the build."""
    for file in IMAGES.rglob("*Dockerfile"):
        text = re.sub(r"\\\n\s*", " ", file.read_text())
        for command in re.findall(r"pip install [^&\n]*", text):
            assert "--require-hashes" in command and "-r /src/hashed.txt" in command, f"{file}: {command}"


def hashes(*locks, table=IMAGES / "hashes.txt") -> subprocess.CompletedProcess:
    return subprocess.run([IMAGES / "hashes", *locks], capture_output=True, text=True,
                          env=os.environ | {"OAL_HASHES": str(table)})


def test_every_package_of_an_image_has_hashes():
    for lock in ("training/requirements.txt", "platform/images/learning/postgresql.txt",
                 "platform/images/learning/s3.txt", "platform/images/setup/requirements.txt"):
        done = hashes(ROOT / lock)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == len(set((ROOT / lock).read_text().split()))
        assert all(re.fullmatch(r"\S+==\S+( --hash=sha256:[0-9a-f]{64})+", line) for line in done.stdout.splitlines())


def test_a_package_without_a_hash_is_an_error_and_nothing_is_printed(tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text("six==1.17.0\nunknown==1.0\n")
    done = hashes(lock)
    assert (done.returncode, done.stdout) == (1, "") and "no line of unknown==1.0" in done.stderr
    assert hashes(tmp_path / "absent.txt").returncode != 0


def test_pip_refuses_a_file_with_another_hash(tmp_path):
    """By pip itself, on a package that is made here."""
    archive = tmp_path / "oal_sample-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        about = "oal_sample-1.0.dist-info/"
        wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: oal-sample\nVersion: 1.0\n")
        wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(about + "RECORD", "")
    lock, table = tmp_path / "lock.txt", tmp_path / "hashes.txt"
    lock.write_text("oal-sample==1.0\n")
    for digest, wanted in ((hashlib.sha256(archive.read_bytes()).hexdigest(), True), ("0" * 64, False)):
        table.write_text(f"oal-sample==1.0 sha256:{digest}\n")
        (tmp_path / "hashed.txt").write_text(hashes(lock, table=table).stdout)
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-index", "--find-links", tmp_path,
                               "--no-deps", "--require-hashes", "-r", tmp_path / "hashed.txt",
                               "-d", tmp_path / f"out-{wanted}"], capture_output=True, text=True)
        assert ("THESE PACKAGES DO NOT MATCH THE HASHES" not in done.stderr) == wanted, done.stderr
        assert (done.returncode == 0) == wanted, done.stderr
