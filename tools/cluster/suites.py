# SPDX-License-Identifier: BSD-3-Clause
"""The tests of a build tree, as ctest tells of them, and which of them a run takes."""
import json
import os
import re
import subprocess
import zlib

# They look at the build or bring up their clusters: they do not depend on where they run.
LEFT_OUT = {"check", "valgrind", "models", "lab", "cluster", "slurm", "long-full"}
LABELS = {"check", "valgrind", "models"}  # those of them that are named in the report
PROVIDERS = {"tcp": "tcp", "rxm": "tcp", "udp": "udp", "rxd": "udp", "shm": "shm", "net": "net", "sockets": "sockets",
             "verbs": "verbs", "psm2": "psm2", "psm3": "psm3", "opx": "opx", "efa": "efa", "cxi": "cxi", "gni": "gni"}
MPIRUN = re.compile(r"^(mpirun|mpiexec|orterun|prterun)([._-][a-z0-9.]+)?$")


def mpi_of(program):
    """The MPI whose launcher this is, by its name, or by its folder's where that does not tell; or None."""
    name = os.path.basename(program)
    if not MPIRUN.match(name):
        return None
    for path in (name, program):
        if "mpich" in path or "hydra" in path:
            return "mpich"
        if "openmpi" in path or "orterun" in path or "prterun" in path:
            return "openmpi"
    return "openmpi"


class Problem(Exception):
    """What keeps the tests from being run, as a sentence that says what to do."""


class Test:
    def __init__(self, name, command, properties, build):
        self.name = name
        self.labels = properties.get("LABELS", [])
        self.suite = name.split(".", 1)[0]
        self.limit = float(properties.get("TIMEOUT", 600)) or 600
        self.folder = properties.get("WORKING_DIRECTORY", build.folder)
        self.skip = int(properties.get("SKIP_RETURN_CODE", 77))
        self.required = properties.get("REQUIRED_FILES", [])
        self.one_host = "one-host" in self.labels  # tests/CMakeLists.txt: ONE_HOST
        self.bad = properties.get("FAIL_REGULAR_EXPRESSION", [])
        self.environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []) if "=" in entry)
        self.command = command
        self.mpi = None          # openmpi or mpich: a job of ranks; None: a program that runs on a host
        self.judge = []          # what says whether a job ended as it should, where its status does not
        self.segments = []       # [ranks, command] in the order of ranks
        self.any_ranks = False   # it works with any number of ranks
        self.parse(build)

    def parse(self, build):
        at = 0
        # tests/conformance/expect HOW MPIRUN...: a job that must end abnormally.
        if len(self.command) > 4 and self.command[1].endswith("/conformance/expect") and \
                self.command[2] in ("aborts", "survives"):
            at = 3
        flavour = build.flavour(self.command[at])
        if not flavour:
            return
        self.judge = self.command[:at]
        rest = self.command[at + 1:]
        while rest:
            ranks = 1
            while rest and rest[0].startswith("-"):
                if rest[0] in ("-n", "-np", "--np", "-c"):
                    ranks = int(rest[1])
                    rest = rest[2:]
                elif rest[0] in ("--mca", "-genv"):
                    rest = rest[3:]
                elif rest[0] in ("-x", "--bind-to", "--map-by", "--rank-by", "-bind-to", "-ppn"):
                    rest = rest[2:]
                else:
                    rest = rest[1:]
            end = rest.index(":") if ":" in rest else len(rest)
            self.segments.append([ranks, rest[:end]])
            rest = rest[end + 1:]
        self.mpi = flavour

    @property
    def ranks(self):
        return sum(count for count, _ in self.segments)

    @property
    def provider(self):
        """The libfabric provider that the test names in its command."""
        if not {"fabric", "kvd"} & set(self.labels):
            return None
        for word in self.command[1:]:
            for part in re.split("[;+]", word):
                if part in PROVIDERS:
                    return PROVIDERS[part]
        return None

    def programs(self):
        """The files that have to be there for the test to run. Arguments may be names of files that it makes."""
        needed = list(self.required)
        for command in [command for _, command in self.segments] or [self.command]:
            at = 0
            # cmake -E env A=B PROGRAM
            if command[1:3] == ["-E", "env"]:
                at = next((i for i in range(3, len(command)) if "=" not in command[i]), 0)
            needed.append(command[at])
        return [word for word in needed if word.startswith("/")]

    def writes(self, build):
        """Whether it has a folder in the build tree for what it makes: several hosts would share that."""
        return any(word.startswith(build.folder) and not os.path.isfile(word) for word in self.command[1:])


class Build:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.cache = {}
        try:
            with open(os.path.join(self.folder, "CMakeCache.txt")) as file:
                for line in file:
                    match = re.match(r"([A-Za-z0-9_]+):[A-Z]+=(.*)", line)
                    if match:
                        self.cache[match.group(1)] = match.group(2)
        except OSError:
            pass

    def mpirun(self, flavour):
        return self.cache.get({"openmpi": "OpenMPI_MPIRUN", "mpich": "MPICH_MPIRUN"}[flavour], "")

    def flavour(self, program):
        for flavour in ("openmpi", "mpich"):
            if program and program == self.mpirun(flavour):
                return flavour
        return mpi_of(program)

    def version(self):
        try:
            with open(os.path.join(self.folder, "contd-config-version.cmake")) as file:
                return re.search(r'PACKAGE_VERSION "([^"]*)"', file.read()).group(1)
        except (OSError, AttributeError):
            return ""

    def checksum(self, programs):
        """Of the libraries and these programs of the tree, as they are now."""
        value = 0
        libraries = [os.path.join(self.folder, name) for name in os.listdir(self.folder)
                     if re.match(r"libcontd.*\.so", name)]
        for path in sorted(set(libraries) | {path for path in programs if path.startswith(self.folder + os.sep)}):
            try:
                with open(path, "rb") as file:
                    value = zlib.crc32(file.read(), zlib.crc32(path[len(self.folder):].encode(), value))
            except OSError:
                pass  # what is missing is told elsewhere
        return value

    def commands(self):
        """What CMake wrote for ctest: each test's command."""
        found = {}
        word = r'\[(=*)\[(.*?)\]\1\]|"((?:[^"\\]|\\.)*)"'
        for folder, folders, files in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in ("CMakeFiles", "Testing", "cluster-test")]
            if "CTestTestfile.cmake" not in files:
                continue
            with open(os.path.join(folder, "CTestTestfile.cmake")) as file:
                for line in re.findall(r"^add_test\((.*)\)$", file.read(), re.M):
                    words = [plain or re.sub(r"\\(.)", r"\1", quoted) for _, plain, quoted in re.findall(word, line)]
                    found[words[0]] = words[1:]
        return found

    def tests(self):
        if not os.path.exists(os.path.join(self.folder, "CTestTestfile.cmake")):
            raise Problem("%s is not a built tree of contd: configure and build it (cmake --preset release && cmake "
                          "--build --preset release), or name another one with --build." % self.folder)
        try:
            # Not --test-dir: ctest knows it from 3.20 on, and this works before.
            said = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        except OSError:
            raise Problem("ctest is not installed here: it comes with cmake, and tells what tests there are.")
        try:
            listed = json.loads(said.stdout.decode())["tests"]
        except (ValueError, KeyError):
            raise Problem("ctest does not tell the tests of %s: %s" % (self.folder, said.stderr.decode().strip()))
        written = None
        tests = []
        for entry in listed:
            properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
            if properties.get("DISABLED"):
                continue
            if not entry.get("command"):
                # ctest leaves it out where the first word is no program: not built, or an mpirun that is not here.
                written = self.commands() if written is None else written
                entry["command"] = written.get(entry["name"]) or [os.path.join(self.folder, entry["name"])]
            tests.append(Test(entry["name"], entry["command"], properties, self))
        counts = {}
        for test in tests:
            if test.mpi:
                counts.setdefault(test.key(), set()).add(test.ranks)
        for test in tests:
            # tests/CMakeLists.txt runs a program with 1, 2 and 4 ranks unless its source names other counts.
            test.any_ranks = bool(test.mpi) and len(test.segments) == 1 and not test.judge and \
                {1, 2, 4} <= counts[test.key()]
        return tests


def _key(self):
    """The same for one program with several numbers of ranks, on any MPI."""
    command = self.segments[0][1]
    names = [re.sub("^(mpich|mpi)_", "", os.path.basename(word)) for word in command]
    return (re.sub(r"\.(native|portable|mpich)?\.?\d+$", "", self.name), tuple(names))


Test.key = _key


def select(tests, options):
    """The tests that a run takes: [(test, ranks)], and what was left out, as [(sentence, number)]."""
    taken, left, seen = [], {}, set()

    def leave(why):
        left[why] = left.get(why, 0) + 1

    for test in tests:
        labels = set(test.labels)
        if options.label:
            if not any(re.search(one, label) for one in options.label for label in labels):
                continue
        elif labels & LEFT_OUT:
            leave("checks of the build (labels %s)" % ", ".join(sorted(LEFT_OUT & LABELS)))
            continue
        if options.filter and not any(re.search(one, test.name) for one in options.filter):
            continue
        if any(re.search(one, test.name) for one in options.exclude):
            continue
        if options.mpi and test.mpi and test.mpi != options.mpi:
            leave("tests of the other MPI")
            continue
        if options.mpi and not test.mpi and \
                any(build_flavour == {"mpich": "openmpi", "openmpi": "mpich"}[options.mpi]
                    for build_flavour in test_starts(test)):
            leave("tests of the other MPI")
            continue
        if options.provider and test.provider and test.provider != base(options.provider):
            leave("tests of providers other than %s" % options.provider)
            continue
        ranks = test.ranks
        if options.ranks and test.any_ranks:
            # One of those with 1, 2 and 4 ranks stands for all.
            ranks = options.ranks
            one = (test.key(), tuple(sorted(test.environment.items())), test.mpi)
            if one in seen:
                leave("the same programs with other numbers of ranks")
                continue
            seen.add(one)
        if options.between_hosts and (not test.mpi or test.one_host or ranks <= (options.ranks_per_node or 1)):
            leave("tests that stay on one host")
            continue
        taken.append((test, ranks))
    return taken, sorted(left.items())


def test_starts(test):
    """The MPIs whose launchers stand somewhere in the test's command."""
    return {mpi_of(word) for word in test.command if mpi_of(word) and word.startswith("/")}


def base(provider):
    """tcp of tcp;ofi_rxm."""
    name = re.split("[;+]", provider)[0]
    return PROVIDERS.get(name, name)
