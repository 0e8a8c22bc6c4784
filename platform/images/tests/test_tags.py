"""tags.env is the one place for tags and bases."""
import re
import subprocess

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
