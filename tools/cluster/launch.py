# SPDX-License-Identifier: BSD-3-Clause
"""How a job's ranks, or a command on each host, are started by what a site has."""
import os
import re
import shlex
import subprocess

from suites import Problem

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = os.path.join(HERE, "rank")


def which(program):
    if "/" in program:
        return program if os.access(program, os.X_OK) else None
    for folder in os.environ.get("PATH", "").split(":"):
        if os.access(os.path.join(folder, program), os.X_OK):
            return os.path.join(folder, program)
    return None


def said(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=30).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


HOST = re.compile(r"^\s*([A-Za-z0-9_.-]+)(?::(\d+))?((?:\s+(?:max[_-])?slots\s*=\s*\d+)*)\s*$")


class Host:
    def __init__(self, name, slots=None):
        self.name = name
        self.slots = slots  # None: as many as it has processors; the probe finds out

    def is_here(self):
        return self.name == "localhost" or self.name.split(".")[0] == os.uname().nodename.split(".")[0]


def read_hosts(text):
    """A file in the format of Open MPI's host files (name slots=N) or of a machine file (a line a slot), or a list:
    name[:slots],..."""
    lines = text.split(",")
    if os.path.isfile(text):
        with open(text) as file:
            lines = [line.split("#")[0].strip() for line in file]
    elif "/" in text:
        raise Problem("There is no host file %s." % text)
    hosts = {}
    for line in lines:
        if not line.strip():
            continue
        match = HOST.match(line)
        if not match:
            raise Problem('"%s" is no host: a host file has lines "NAME slots=N", a list is NAME[:SLOTS],...' %
                          line.strip())
        name = match.group(1)
        said = re.search(r"(?<![_-])slots\s*=\s*(\d+)", match.group(3))
        slots = match.group(2) or (said and said.group(1))
        if name in hosts:
            hosts[name].slots = (hosts[name].slots or 1) + int(slots or 1)
        else:
            hosts[name] = Host(name, int(slots) if slots else None)
    if not hosts:
        raise Problem("%s names no host." % text)
    return list(hosts.values())


class Launcher:
    """Programs on one machine; the others are made from it."""
    name = "local"

    def __init__(self, options, build, folder):
        self.options = options
        self.build = build
        self.folder = folder
        self.hosts = self.find_hosts()
        self.more = options.launch_option

    def find_hosts(self):
        return [Host(os.uname().nodename)]

    def problems(self, flavours):
        for flavour in flavours:
            if not self.mpirun(flavour):
                yield self.no_mpirun(flavour)

    def no_mpirun(self, flavour):
        name = {"openmpi": "Open MPI", "mpich": "MPICH"}[flavour]
        return ("%s's mpirun (%s) is not here: load the module, or install the package, that contd was built with, or "
                "leave its tests out with --mpi %s." % (name, self.build.mpirun(flavour) or "mpirun",
                                                  "mpich" if flavour == "openmpi" else "openmpi"))

    def mpirun(self, flavour):
        program = self.build.mpirun(flavour)
        return which(program) if program else None

    def oversubscribe(self):
        return True

    def environment(self, test, nodes):
        """The test's variables, as far as they hold for a job over these hosts."""
        environment = dict(test.environment)
        if self.name != "local" and test.mpi:
            # Made for one machine: a launcher that reaches no other one, and the loopback.
            environment.pop("OMPI_MCA_plm", None)
            if nodes > 1 and environment.get("OMPI_MCA_btl_tcp_if_include") == "lo":
                del environment["OMPI_MCA_btl_tcp_if_include"]
            if not self.oversubscribe():
                environment.pop("OMPI_MCA_rmaps_base_oversubscribe", None)
        if test.mpi:
            if environment.get("OMPI_MCA_mtl", "").startswith("^"):
                del environment["OMPI_MCA_mtl"]  # left out there to start sooner; here it may be the site's network
            if nodes > 1 and test.mpi == "openmpi" and "tcp" in environment.get("OMPI_MCA_btl", "").split(","):
                for name, value in ONE_SIDED.items():
                    environment.setdefault(name, value)
            # A test that says what it wants was written for that.
            if not any(key in environment for key in ("OMPI_MCA_btl", "OMPI_MCA_pml")):
                for name, value in transport(self.options.transport, test.mpi).items():
                    environment.setdefault(name, value)
        if self.options.provider:
            environment["FI_PROVIDER"] = self.options.provider
        for entry in self.options.set:
            name, value = entry.split("=", 1)
            environment[name] = value
        return environment

    def job(self, flavour, ranks, nodes, file):
        program = self.mpirun(flavour)
        if flavour == "mpich":
            return [program] + self.more + ["-n", str(ranks), RANK, file]
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        return [program] + root + ["--oversubscribe", "--bind-to", "none"] + self.more + ["-n", str(ranks), RANK, file]

    def each(self, command, hosts=None):
        """[(indices of hosts, argv, environment)]: the shell's command on each of the hosts."""
        return [([i], self.on(host, i, command), {"CONTD_CLUSTER_INDEX": str(i)})
                for i, host in enumerate(self.hosts) if hosts is None or i in hosts]

    def on(self, host, index, command):
        return ["sh", "-c", command]

    def nodes(self, ranks, one_host):
        if one_host:
            return 1
        if self.options.ranks_per_node:
            return min(len(self.hosts), -(-ranks // self.options.ranks_per_node))
        return min(len(self.hosts), ranks)


class Agent(Launcher):
    """mpirun and an rsh-like agent."""
    name = "mpirun"

    def __init__(self, options, build, folder):
        super().__init__(options, build, folder)
        agent = options.agent or os.environ.get("OMPI_MCA_plm_rsh_agent") or os.environ.get("PRTE_MCA_plm_ssh_agent")
        if not agent:
            agent = "ssh -o BatchMode=yes -o ConnectTimeout=10" if which("ssh") else "rsh" if which("rsh") else ""
        self.agent = shlex.split(agent)

    def find_hosts(self):
        if self.options.hosts:
            return read_hosts(self.options.hosts)
        for name in ("OMPI_MCA_orte_default_hostfile", "PBS_NODEFILE"):
            if os.environ.get(name):
                return read_hosts(os.environ[name])
        return [Host(os.uname().nodename)]

    def problems(self, flavours):
        yield from super().problems(flavours)
        if not self.agent and not all(host.is_here() for host in self.hosts):
            yield ("No launcher reaches the other hosts: neither ssh nor rsh is installed here; install "
                   "openssh-client, or name a program that is called as AGENT HOST COMMAND with --agent.")
        elif self.agent and not which(self.agent[0]):
            yield "The agent %s is not there, or is no program: see --agent." % self.agent[0]

    def oversubscribe(self):
        return self.options.oversubscribe

    def host_file(self, flavour, nodes):
        path = os.path.join(self.folder, "hosts.%s.%d" % (flavour, nodes))
        if not os.path.exists(path):
            with open(path + ".new", "w") as file:
                for host in self.hosts[:nodes]:
                    file.write("%s%s%d\n" % (host.name, ":" if flavour == "mpich" else " slots=", host.slots or 1))
            os.rename(path + ".new", path)
        return path

    def job(self, flavour, ranks, nodes, file):
        program = self.mpirun(flavour)
        hosts = self.host_file(flavour, nodes)
        each = self.options.ranks_per_node
        if flavour == "mpich":
            command = [program, "-f", hosts, "-bind-to", "none", "-ppn", str(each or 1)]
            if self.agent:
                # Its ssh would be called with an unknown option.
                command += ["-launcher", "rsh", "-launcher-exec", self.wrapper()]
            return command + self.more + ["-n", str(ranks), RANK, file]
        command = [program, "--hostfile", hosts, "--bind-to", "none"]
        command += ["--map-by", "ppr:%d:node" % each if each and nodes > 1 else "node"]
        command += ["--allow-run-as-root"] if os.getuid() == 0 else []
        command += ["--oversubscribe"] if self.oversubscribe() else []
        if self.agent:
            command += ["--mca", "plm_rsh_agent", self.wrapper()]
        return command + self.more + ["-n", str(ranks), RANK, file]

    def wrapper(self):
        """Launchers take a program: an agent with options of its own becomes one."""
        if len(self.agent) == 1:
            return which(self.agent[0]) or self.agent[0]
        path = os.path.join(self.folder, "agent")
        if not os.path.exists(path):
            with open(path + ".new", "w") as file:
                file.write('#!/bin/sh\nexec %s "$@"\n' % " ".join(shlex.quote(word) for word in self.agent))
            os.chmod(path + ".new", 0o755)
            os.rename(path + ".new", path)
        return path

    def on(self, host, index, command):
        if host.is_here() and not self.options.agent:
            return ["sh", "-c", command]
        # Not NAME=VALUE alone in front: the user's shell there may be csh.
        return self.agent + [host.name, "env CONTD_CLUSTER_INDEX=%d sh -c %s" % (index, shlex.quote(command))]


class Prte(Agent):
    """PRRTE's prterun starts Open MPI's ranks, and those of every other MPI that asks PMIx."""
    name = "prterun"

    def mpirun(self, flavour):
        return which("prterun") if flavour == "openmpi" else super().mpirun(flavour)

    def no_mpirun(self, flavour):
        if flavour == "openmpi":
            return "prterun is not here: install PRRTE and put it into PATH, or choose another --launcher."
        return super().no_mpirun(flavour)

    def job(self, flavour, ranks, nodes, file):
        if flavour == "mpich":
            return super().job(flavour, ranks, nodes, file)
        each = self.options.ranks_per_node
        place = "ppr:%d:node" % each if each and nodes > 1 else "node"
        command = [self.mpirun(flavour), "--hostfile", self.host_file(flavour, nodes), "--bind-to", "none", "--map-by",
                   place + (":OVERSUBSCRIBE" if self.oversubscribe() else "")]
        command += ["--allow-run-as-root"] if os.getuid() == 0 else []
        if self.agent:
            command += ["--prtemca", "plm_ssh_agent", self.wrapper()]
        return command + self.more + ["-n", str(ranks), RANK, file]


class Slurm(Launcher):
    """srun, in an allocation."""
    name = "srun"

    def find_hosts(self):
        if not which("srun"):
            raise Problem("srun is not here: run this on a host that has Slurm's commands, or choose another "
                          "--launcher.")
        if not os.environ.get("SLURM_JOB_ID"):
            raise Problem("There is no allocation: start this with salloc or sbatch, for example salloc -N 2 -n 4 "
                          "tools/cluster-test.")
        names = said(["scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")]).split()
        counts = []
        text = os.environ.get("SLURM_TASKS_PER_NODE") or os.environ.get("SLURM_JOB_CPUS_PER_NODE") or ""
        for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
            counts += [int(count)] * int(times or 1)
        hosts = [Host(name, counts[i] if i < len(counts) else None) for i, name in enumerate(names)]
        if not hosts:
            raise Problem("Slurm does not tell the hosts of job %s: scontrol show hostnames failed." %
                          os.environ["SLURM_JOB_ID"])
        if self.options.hosts:
            wanted = read_hosts(self.options.hosts)
            missing = [host.name for host in wanted if host.name not in names]
            if missing:
                raise Problem("%s: not in the allocation of job %s, which has %s. Leave --hosts out, or allocate with "
                              "salloc -w." % (", ".join(missing), os.environ["SLURM_JOB_ID"], ", ".join(names)))
            keep = {host.name: host.slots for host in wanted}
            hosts = [Host(host.name, keep[host.name] or host.slots) for host in hosts if host.name in keep]
        return hosts

    def problems(self, flavours):
        kinds = said(["srun", "--mpi=list"])
        for flavour in flavours:
            kind = self.kind(flavour)
            if not re.search(r"\b%s\b" % kind, kinds):
                yield ("Slurm has no MPI plugin %s, which %s needs (srun --mpi=list: %s): install it, or name another "
                       "one with --slurm-mpi." % (kind, flavour, ", ".join(kinds.split()[-6:])))

    def kind(self, flavour):
        return self.options.slurm_mpi or {"openmpi": "pmix", "mpich": "pmi2"}[flavour]

    def mpirun(self, flavour):
        return which("srun")

    def oversubscribe(self):
        return self.options.oversubscribe

    def common(self, nodes, hosts=None):
        command = [which("srun"), "--nodes=%d" % nodes,
                   "--nodelist=" + ",".join(host.name for host in hosts or self.hosts[:nodes]), "--export=ALL",
                   "--kill-on-bad-exit=1", "--quiet"]
        version = re.search(r"(\d+)\.(\d+)", said(["srun", "--version"]))
        if version and (int(version.group(1)), int(version.group(2))) >= (20, 11):
            # The last test's step may still be ending.
            command += ["--overlap"]
        return command

    def job(self, flavour, ranks, nodes, file):
        command = self.common(nodes) + ["--mpi=" + self.kind(flavour), "--ntasks=%d" % ranks]
        if self.options.ranks_per_node and nodes > 1:
            command += ["--ntasks-per-node=%d" % self.options.ranks_per_node, "--distribution=block"]
        else:
            command += ["--distribution=cyclic"]
        if self.oversubscribe():
            command += ["--overcommit"]
        return command + self.more + [RANK, file]

    def each(self, command, hosts=None):
        count = 1 if hosts else len(self.hosts)
        start = ["--mpi=none", "--ntasks=%d" % count, "--ntasks-per-node=1", "--overcommit", "sh", "-c", command]
        if hosts:
            return [([i], self.common(1, [self.hosts[i]]) + start, {"CONTD_CLUSTER_INDEX": str(i)}) for i in hosts]
        return [(list(range(count)), self.common(count) + start, {})]


# Open MPI 4.1 has no built-in one-sided communication over TCP at MPI_THREAD_MULTIPLE; UCX has.
ONE_SIDED = {"OMPI_MCA_osc": "sm,ucx,pt2pt", "UCX_TLS": "self,tcp"}


def transport(name, flavour):
    """The variables that make an MPI use it."""
    if not name:
        return {}
    if flavour == "openmpi":
        if name == "ucx":
            return {"OMPI_MCA_pml": "ucx", "OMPI_MCA_osc": "ucx"}
        if name in ("ofi", "psm", "psm2"):
            return {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": name}
        names = [one for one in name.split(",") if one != "self"]
        chosen = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": ",".join(["self"] + names)}
        if "tcp" in names:
            chosen.update(ONE_SIDED)
        return chosen
    if name in ("vader", "sm", "shm"):
        return {"UCX_TLS": "self,sysv,posix", "FI_PROVIDER": "shm"}
    if name == "ucx":
        return {}
    if name == "ofi":
        return {}
    return {"UCX_TLS": "self," + name, "FI_PROVIDER": name}


def choose(options, build, folder):
    """The launcher that was asked for, or the one that fits where this runs."""
    name = options.launcher
    if not name:
        # Hosts that were named come before an allocation only where there is none.
        if os.environ.get("SLURM_JOB_ID") and which("srun"):
            name = "srun"
        elif options.hosts or options.agent or os.environ.get("PBS_NODEFILE") or \
                os.environ.get("OMPI_MCA_orte_default_hostfile"):
            name = "mpirun"
            if build.mpirun("openmpi") and not which(build.mpirun("openmpi")) and which("prterun"):
                name = "prterun"
        else:
            name = "local"
    if name == "local" and options.hosts:
        raise Problem("--launcher local knows one host, this one: leave --hosts out, or choose another launcher.")
    return {"local": Launcher, "mpirun": Agent, "prterun": Prte, "srun": Slurm}[name](options, build, folder)
