"""A Slurm cluster of two nodes on the loopback address, all of whose files are in one temporary folder.

munged, slurmctld and two slurmd are real, and need neither root nor cgroups. Each node has one GPU that is none
(/dev/null), so each runs one task at a time that asks for one. Whatever ends the process that holds the cluster, a
janitor ends the daemons and the jobs, and removes the folder.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel"]
NODES = ["n0", "n1"]
MARK = "TUNING_CLUSTER"  # in the environment of every process of the cluster

CONFIGURATION = """
ClusterName=kiln
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
# A task that is queued again waits for its old credential to end, two minutes by default.
AuthInfo=socket={folder}/socket/munge,cred_expire=20
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2
KillWait=10
ReturnToService=2
GresTypes=gpu
NodeName=n0 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 RealMemory=1000 Gres=gpu:1
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 RealMemory=1000 Gres=gpu:1
PartitionName=all Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
"""

SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])  # Debian's daemons are in sbin


def missing_programs():
    return [program for program in PROGRAMS if shutil.which(program, path=SEARCH_PATH) is None]


def free_ports(count):
    """Ports that are free now. Another program may take one before the daemons do: then they are started again."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(what, condition, seconds=60.0):
    """The first true value of `condition`, or an AssertionError that says what did not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")


def processes_of(folder):
    """The processes of the cluster in `folder`: identifier and words of the command line."""
    mark = f"{MARK}={folder}\0".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes() + b"\0":
                yield int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")


class Cluster:
    """Use in a `with` statement. `environment` is what jobs see, with the path of the cluster's own programs."""

    def __init__(self, environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-cluster-")).resolve()
        self.folder.chmod(0o755)  # munged refuses a socket that others cannot reach
        self.environment = {name: value for name, value in environment.items() if not name.startswith(("SLURM", "SBATCH"))}
        self.environment |= {"SLURM_CONF": str(self.folder / "slurm.conf"), MARK: str(self.folder)}
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self.daemons = {}
        self.janitor = None

    def __enter__(self):
        # Its standard input ends when this process does, however it does.
        self.janitor = subprocess.Popen(
            [sys.executable, __file__, self.folder], stdin=subprocess.PIPE, start_new_session=True)
        try:
            for name in ("state", "socket", *(f"spool-{node}" for node in NODES)):
                (self.folder / name).mkdir(mode=0o755)
            for attempt in range(3):
                if self._start():
                    return self
                print(f"attempt {attempt + 1}: a daemon ended or did not answer\n{self.logs()}", flush=True)
                self._end_daemons()
            raise AssertionError("the cluster does not start")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.janitor.stdin.close()
        self.janitor.wait()

    def _daemon(self, name, *command):
        with open(self.folder / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def _start(self):
        ports = free_ports(3)
        user = pwd.getpwuid(os.getuid()).pw_name
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(folder=self.folder, ports=ports, user=user))
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
        key = self.folder / "munge.key"
        key.unlink(missing_ok=True)
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        self._daemon("munged", "munged", "--foreground", "--num-threads=4", f"--key-file={key}",
                     f"--socket={self.folder}/socket/munge", f"--pid-file={self.folder}/munged.pid",
                     f"--seed-file={self.folder}/munged.seed", f"--log-file={self.folder}/munged.log")
        wait_until("munged", lambda: (self.folder / "socket/munge").exists() or not self._alive(), 20)
        self._daemon("slurmctld", "slurmctld", "-D", "-i")
        for node in NODES:
            self._daemon(f"slurmd-{node}", "slurmd", "-D", "-N", node)
        with contextlib.suppress(AssertionError):
            wait_until("the nodes", lambda: self._nodes_are_idle() or not self._alive(), 40)
        return self._alive() and self._nodes_are_idle()

    def _alive(self):
        return all(daemon.poll() is None for daemon in self.daemons.values())

    def _nodes_are_idle(self):
        asked = self.run("sinfo", "-h", "-N", "-o", "%T", check=False)
        return asked.returncode == 0 and asked.stdout.split() == ["idle"] * len(NODES)

    def _end_daemons(self):
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        self.daemons = {}

    def logs(self):
        parts = []
        for path in sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")]):
            parts.append(f"== {path.name}\n" + "".join(path.read_text(errors="replace").splitlines(True)[-15:]))
        return "\n".join(parts)

    def run(self, *command, check=True, seconds=300.0):
        """Runs a program in the cluster's folder, and returns what it wrote."""
        done = subprocess.run(command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def submit(self, *words):
        return self.run("sbatch", "--parsable", *words).stdout.strip()

    def states(self, job):
        """The state of the job, or of each task of the array by its index."""
        listed = self.run("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T").stdout.splitlines()
        states = dict(line.split() for line in listed)
        return states.get("N/A", states)

    def processes(self):
        return processes_of(self.folder)


def clean_up(folder):
    """Ends what is left of the cluster once nobody holds it, and removes its files."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end = time.monotonic() + 30
    while (left := [process for process, _ in processes_of(folder)]) and time.monotonic() < end:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    clean_up(sys.argv[1])
