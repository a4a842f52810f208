"""The files of examples/slurm and examples/kubernetes, which users copy: each passes the checks of its own kind, and they
fit together and to what `kiln` takes.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLURM = ROOT / "examples/slurm"
KUBERNETES = ROOT / "examples/kubernetes"
SCRIPTS = sorted(SLURM.glob("*.sbatch"))
MANIFESTS = sorted(KUBERNETES.glob("*.yaml"))
KILN = pathlib.Path(os.environ["TESTED_KILN"])

sys.path.append(str(ROOT / "tests/docs"))
from pages import read  # noqa: E402
OLDEST_KUBERNETES = "1.33"  # what tune-job.yaml says


def manifests():
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing (scripts/setup)")
    return {path.name: yaml.safe_load(path.read_text()) for path in MANIFESTS}


def check(manifest):
    """Raises if the manifest is not what the API's schema has: unknown names are errors too."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing (scripts/setup)")
    kubernetes_validate.validate(manifest, OLDEST_KUBERNETES, strict=True)


def program(name, hint):
    beside = pathlib.Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing ({hint})")
    return found


def test_there_are_files():
    assert [path.name for path in SCRIPTS] == ["merge.sbatch", "tune.sbatch"]
    assert [path.name for path in MANIFESTS] == ["merge-job.yaml", "tune-job.yaml", "volume.yaml"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing(path):
    done = subprocess.run([program("shellcheck", "scripts/setup"), path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_array_has_as_many_tasks_as_parts():
    text = (SLURM / "tune.sbatch").read_text()
    last = int(re.search(r"^#SBATCH --array=0-(\d+)$", text, re.MULTILINE)[1])
    assert int(re.search(r"^parts=(\d+) ", text, re.MULTILINE)[1]) == last + 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_without_its_arguments_says_what_it_takes(script):
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: sbatch" in done.stderr


@pytest.mark.parametrize("name", [path.name for path in MANIFESTS])
def test_a_manifest_is_what_the_schema_of_kubernetes_has(name):
    check(manifests()[name])


def test_the_check_of_manifests_finds_a_wrong_name_and_a_wrong_type():
    for broken in ({"completions": "eight"}, {"completion": 8}):
        manifest = manifests()["tune-job.yaml"]
        manifest["spec"] |= broken
        with pytest.raises(Exception, match="complet"):
            check(manifest)


# Mistakes that a schema cannot see, and the API server refuses, or that would fail later.
def test_the_manifests_fit_together():
    files = manifests()
    tune, merge, volume = (files[name] for name in ("tune-job.yaml", "merge-job.yaml", "volume.yaml"))
    spec, pod = tune["spec"], tune["spec"]["template"]["spec"]
    container, merging = pod["containers"][0], merge["spec"]["template"]["spec"]["containers"][0]
    assert spec["completionMode"] == "Indexed"
    assert f"$(JOB_COMPLETION_INDEX)/{spec['completions']}" in container["args"]
    assert pod["restartPolicy"] == "Never", "podFailurePolicy demands it"
    assert spec["backoffLimitPerIndex"] >= 0, "a part that fails stops no other"
    for rule in spec["podFailurePolicy"]["rules"]:
        if codes := rule.get("onExitCodes"):
            assert codes["containerName"] == container["name"]
            assert codes["values"] == sorted(set(codes["values"]))
    assert pod["terminationGracePeriodSeconds"] >= 10
    assert container["image"] == merging["image"]
    assert merging["args"][-1] == container["args"][container["args"].index("--db-dir") + 1]
    for job in (tune, merge):
        its_pod = job["spec"]["template"]["spec"]
        claims = [each["persistentVolumeClaim"]["claimName"] for each in its_pod["volumes"] if "persistentVolumeClaim" in each]
        assert claims == [volume["metadata"]["name"]]
        mounted = {mount["name"] for mount in its_pod["containers"][0]["volumeMounts"]}
        assert mounted == {each["name"] for each in its_pod["volumes"]}
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_jobs_give_exit_codes_that_kiln_has():
    spec = manifests()["tune-job.yaml"]["spec"]
    known = set(map(int, re.findall(r"^\| (\d+) \|", (ROOT / "docs/command-line.md").read_text(), re.MULTILINE)))
    used = {code for rule in spec["podFailurePolicy"]["rules"] for code in rule.get("onExitCodes", {}).get("values", [])}
    assert used and used <= known


@pytest.fixture
def shell(tmp_path):
    """Runs a program in an empty folder, on the emulated device, with `kiln` in the path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment |= {"PATH": f"{KILN.parent}:{environment['PATH']}", "KILN_DRIVER": "emulator",
                    "XDG_CACHE_HOME": str(tmp_path / "cache"),
                    "KILN_KERNEL_STORE": os.environ.get("KILN_KERNEL_STORE", str(tmp_path / "kernels"))}

    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def layers_of_the_page():
    return next(block.text for block in read(ROOT / "docs/fleet.md")[1] if not block.language)


def tuned_layers(shell, database):
    listed = json.loads(shell("kiln", "cache", "list", "--db", database, "--json"))
    return [request["request"].split()[0] for request in listed["devices"][0]["requests"] if request["best"]]


def test_the_commands_of_the_page_do_what_it_says(shell, tmp_path):
    (tmp_path / "layers.txt").write_text(layers_of_the_page())
    for block in read(ROOT / "docs/fleet.md")[1]:
        if block.language == "sh":
            shell("bash", "-e", "-c", block.text)
    assert sorted(tuned_layers(shell, "all.db")) == ["gemm", "reduce", "softmax_forward"]
    assert "softmax_forward" in (tmp_path / "layers.pack").read_text()


def test_the_arguments_of_the_jobs_tune_and_merge(shell, tmp_path):
    files = manifests()
    (tmp_path / "model.onnx.txt").write_text(layers_of_the_page())

    def run(name, index="0"):
        arguments = files[name]["spec"]["template"]["spec"]["containers"][0]["args"]
        for old, new in (("/work/model.onnx", "model.onnx.txt"), ("/work", str(tmp_path)), ("$(JOB_COMPLETION_INDEX)", index)):
            arguments = [argument.replace(old, new) for argument in arguments]
        shell("kiln", *arguments, *(["--candidates", "1"] if name == "tune-job.yaml" else []))

    for index in range(files["tune-job.yaml"]["spec"]["completions"]):
        run("tune-job.yaml", str(index))
    run("merge-job.yaml")
    assert sorted(tuned_layers(shell, "tuned.db")) == ["gemm", "reduce", "softmax_forward"]


def test_hadolint_finds_nothing_in_the_container_file():
    done = subprocess.run([program("hadolint", "scripts/setup"), KUBERNETES / "Containerfile"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_hadolint_finds_a_fault(tmp_path):
    (tmp_path / "Containerfile").write_text((KUBERNETES / "Containerfile").read_text() + "RUN cd /tmp && sudo ls\n")
    done = subprocess.run([program("hadolint", "scripts/setup"), tmp_path / "Containerfile"], capture_output=True,
                          text=True, check=False)
    assert "DL3004" in done.stdout
