"""examples/slurm as a user runs it, on a real cluster of two nodes that are both here: an array of eight tasks over the
layers of resnet18 on emulated devices, of which one is killed, one cancelled and one told to end; then the merge job.

The database that comes out is compared with that of one process which tuned the whole model: the same records, by
device, request, algorithm, algorithm's digest and configuration, with the same outcome and the same modelled time to
the bit (the emulated device's clock depends on nothing else), and the same winner of each request.

usage: slurm_test.py ROOT KILN DEEP_LIST [TIMEOUT_SCALE]
"""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from deep import UNCHANGED, is_due, passed  # noqa: E402
from reports import skip  # noqa: E402
from slurm_cluster import Cluster, missing_programs, wait_until  # noqa: E402

PARTS = 8


class Fleet:
    """The array, and what happens to its tasks."""

    def __init__(self, cluster, root, scale):
        self.cluster = cluster
        self.scripts = root / "examples/slurm"
        self.model = root / "examples/models/resnet18.onnx"
        self.patience = 240 * scale
        self.array = ""

    def submit(self):
        self.array = self.cluster.submit(self.scripts / "tune.sbatch", self.model, "tuned", "--candidates", "1")

    def state(self, task):
        return self.cluster.states(self.array)[str(task)]

    def wait_for_state(self, task, state):
        wait_until(f"task {task} to be {state}", lambda: self.state(task) == state, self.patience)

    def tuner_of(self, tasks):
        """A process that tunes the part of one of these tasks, stopped where it is, and its task."""
        for process, words in self.cluster.processes():
            if pathlib.Path(words[0]).name == "kiln" and "--shard" in words:
                task = int(words[words.index("--shard") + 1].split("/")[0])
                if task in tasks:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGSTOP)
                        return process, task
        return None

    def wait_for_tuner(self, tasks):
        return wait_until(f"one of the tasks {tasks} to tune", lambda: self.tuner_of(tasks), self.patience)

    def records(self, task):
        path = self.cluster.folder / f"tuned/shard-{task}-of-{PARTS}.db"
        return len(records_of(path)) if path.exists() else 0

    def restarts(self, task):
        shown = self.cluster.run("scontrol", "show", "job", f"{self.array}_{task}").stdout
        return int(shown.split("Restarts=")[1].split()[0])

    def step_of(self, task):
        """The running step of the task. Signals to a task of an array are sent again until it has ended, and longer."""
        return self.cluster.run("squeue", "-h", "-j", f"{self.array}_{task}", "-o", "%A.0").stdout.strip()

    def kill_one(self, tasks):
        """As the kernel does it where memory runs out: the task has failed."""
        process, task = self.wait_for_tuner(tasks)
        os.kill(process, signal.SIGKILL)
        self.wait_for_state(task, "FAILED")
        return task

    def cancel_one(self, tasks):
        """As a person does it: the task must not come back by itself."""
        process, task = self.wait_for_tuner(tasks)
        self.cluster.run("scancel", f"{self.array}_{task}")
        os.kill(process, signal.SIGCONT)
        self.wait_for_state(task, "CANCELLED")
        return task

    def end_one(self, tasks):
        """As Slurm does it before the time limit (--signal): what was measured is kept, and the task is queued again."""
        while tasks:
            process, task = self.wait_for_tuner(tasks)
            tasks = tasks - {task}
            os.kill(process, signal.SIGCONT)
            wait_until("a record", lambda task=task: self.records(task) > 0, self.patience)
            kept = self.records(task)
            self.cluster.run("scancel", "--signal=TERM", self.step_of(task), check=False)
            wait_until("the task to end", lambda task=task: self.state(task) not in ("RUNNING", "COMPLETING"), self.patience)
            if self.restarts(task) == 1:  # else it was through with its part already
                assert self.records(task) >= kept
                return task
        raise AssertionError("no task was ended at work")


def records_of(path):
    """Facts of each record that the database holds, without those that say when and by whom it was made."""
    query = ("SELECT device, request, algorithm, algorithm_digest, config, outcome, kind, microseconds, workspace, usable"
             " FROM candidates")
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        return sorted(database.execute(query))
    except sqlite3.OperationalError:
        return []  # it is being made
    finally:
        database.close()


def winners_of(cluster, kiln, path):
    listed = json.loads(cluster.run(kiln, "cache", "list", "--db", path, "--json").stdout)
    return {(device["device"], request["request"]): request["best"]
            for device in listed["devices"] for request in device["requests"]}


def test(cluster, root, kiln, scale):
    alone = cluster.folder / "alone.db"
    start = time.monotonic()
    fleet = Fleet(cluster, root, scale)
    cluster.run(kiln, "tune", fleet.model, "--candidates", "1", "--db", alone, "--quiet", seconds=300 * scale)
    print(f"one process: {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    fleet.submit()
    tasks = set(range(PARTS))
    killed = fleet.kill_one(tasks)
    cancelled = fleet.cancel_one(tasks - {killed})
    assert fleet.restarts(cancelled) == 0
    ended = fleet.end_one(tasks - {killed, cancelled})
    for task in (killed, cancelled):
        cluster.run("scontrol", "requeue", f"{fleet.array}_{task}")
    merge = cluster.submit(
        f"--dependency=afterany:{fleet.array}", fleet.scripts / "merge.sbatch", "tuned", "merged.db")
    wait_until("the merge job", lambda: cluster.states(merge) not in ("PENDING", "RUNNING", "COMPLETING"), fleet.patience)
    assert cluster.states(merge) == "COMPLETED", cluster.states(merge)
    assert set(fleet.cluster.states(fleet.array).values()) == {"COMPLETED"}, cluster.states(fleet.array)
    assert [fleet.restarts(task) for task in (killed, cancelled, ended)] == [1, 1, 1]
    print(f"{PARTS} tasks, of which {killed} was killed, {cancelled} cancelled and {ended} told to end, and the merge:"
          f" {time.monotonic() - start:.0f} s", flush=True)

    expected, merged = records_of(alone), records_of(cluster.folder / "merged.db")
    assert expected
    assert merged == expected, f"{len(merged)} records, of which {len(set(merged) & set(expected))} are those of one process"
    winners = winners_of(cluster, kiln, alone)
    assert all(winners.values())
    assert winners_of(cluster, kiln, "merged.db") == winners
    print(f"{len(expected)} records and {len(winners)} winners are those of one process")


def main():
    root, kiln, deep_list = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    scale = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
    if not is_due(deep_list, "slurm_test"):
        return skip("slurm_test", UNCHANGED)
    if missing := missing_programs():
        return skip("slurm_test", f"{', '.join(missing)}: not installed (scripts/setup --slurm)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    environment = {**os.environ, "KILN_DRIVER": "emulator", "PATH": f"{kiln.parent}:{os.environ['PATH']}"}
    for name in ("KILN_CACHE", "KILN_PACK_PATH", "KILN_BUNDLE_PATH"):
        environment.pop(name, None)
    with Cluster(environment) as cluster:
        cluster.environment["KILN_KERNEL_STORE"] = os.environ.get("TEST_KERNEL_STORE", str(cluster.folder / "kernels"))
        cluster.environment["XDG_CACHE_HOME"] = str(cluster.folder / "cache")
        try:
            test(cluster, root, kiln, scale)
        except BaseException:
            print(cluster.logs(), flush=True)
            raise
    assert not cluster.folder.exists(), "files are left"
    assert not list(cluster.processes()), "processes are left"
    passed(deep_list, "slurm_test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
