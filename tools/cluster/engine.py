# SPDX-License-Identifier: BSD-3-Clause
"""Runs the jobs of a run one after the other, and can go on with a run that was ended."""
import fcntl
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import launch
import preflight
import report
from suites import Problem

# Beyond a test's limit: ranks take their stacks first, and launchers have to start and end.
GRACE = 60
HERE = os.path.dirname(os.path.abspath(__file__))


class Stopped(Exception):
    pass


def save(path, what):
    with open(path + ".new", "w") as file:
        json.dump(what, file)
    os.rename(path + ".new", path)


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def signal_name(number):
    """Python names the first and the last of the real-time signals only; contd's own is one between."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIGRTMAX-%d" % (signal.SIGRTMAX - number) if number > signal.SIGRTMIN else "unknown"


class Engine:
    def __init__(self, folder, run, launcher, options):
        self.folder = folder
        self.run = run
        self.launcher = launcher
        self.options = options
        self.stopped = 0
        self.processes = []
        self.lock = open(os.path.join(folder, "lock"), "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Problem("Another cluster-test works in %s: wait for it, or choose another folder with --output." %
                          folder)
        self.width = 0

    # ------------------------------------------------------------------------------------------------------- processes

    def catch(self):
        """From here on signals end things in order."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.stop)

    def stop(self, number, frame):
        self.stopped = number

    def start(self, argv, environment, log):
        with open(log, "ab") as output:
            # A new session: the terminal's signals go to this program only, which ends the others in order.
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                    start_new_session=True, env=dict(environment, CONTD_CLUSTER_RUN=self.run["run"]))

    def end(self, processes):
        for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            for process in processes:
                try:
                    os.killpg(process.pid, number)
                except OSError:
                    pass
            end = time.monotonic() + seconds
            while time.monotonic() < end and any(process.poll() is None for process in processes):
                time.sleep(0.02)

    def sweep(self):
        """Whatever carries this run's name, on every host."""
        command = "exec python3 %s --sweep %s" % (shlex.quote(launch.RANK), self.run["run"])
        calls = []
        for _, argv, environment in self.launcher.each(command):
            try:
                calls.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, start_new_session=True,
                                              env=dict(os.environ, **environment)))
            except OSError:
                pass
        end = time.monotonic() + 30
        while time.monotonic() < end and any(call.poll() is None for call in calls):
            time.sleep(0.02)
        for call in calls:
            if call.poll() is None:
                os.killpg(call.pid, signal.SIGKILL)
                call.wait()

    def wait(self, processes, seconds):
        """Until they have ended: True. Raises Stopped."""
        end = time.monotonic() + seconds
        pause = 0.005
        while any(process.poll() is None for process in processes):
            if self.stopped:
                raise Stopped
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause * 1.3, 0.1)
        return True

    def execute(self, folder, job, calls, environment, seconds):
        """Starts a job's launchers and waits. (in time, their statuses)"""
        log = os.path.join(folder, "launcher.out")
        processes = []
        try:
            for _, argv, more in calls:
                processes.append(self.start(argv, dict(environment, **more), log))
            in_time = self.wait(processes, seconds)
        finally:
            if any(process.poll() is None for process in processes):
                self.end(processes)
                self.sweep()
        return in_time, [process.returncode for process in processes]

    # ------------------------------------------------------------------------------------------------------------ jobs

    def describe(self, test, ranks, segments, nodes, limit, kind):
        environment = self.launcher.environment(test, nodes)
        unset = []
        if self.launcher.name != "local" and kind == "ranks":
            # They are in the environment of this program where tools/lab or a site has set them for one host only.
            unset = [name for name in ("OMPI_MCA_btl_tcp_if_include",)
                     if nodes > 1 and os.environ.get(name) == "lo" and name not in environment]
        return {"run": self.run["run"], "kind": kind, "segments": segments, "environment": environment, "unset": unset,
                "folder": test.folder, "limit": limit, "skip": test.skip, "grace": 1.0,
                "hosts": [host.name for host in self.launcher.hosts]}

    def do(self, index, entry, test):
        folder = os.path.join(self.folder, "jobs", "%05d-%s" % (index, re.sub("[^A-Za-z0-9._-]", "_", entry["name"])))
        done = load(os.path.join(folder, "result.json"))
        if done:
            return done, False
        subprocess.call(["rm", "-rf", folder])
        os.makedirs(folder)
        ranks = entry["ranks"]  # of programs that are no job of ranks: hosts
        limit = self.options.time_limit or test.limit
        begin = time.time()
        path = os.path.join(folder, "job.json")
        turns = []
        if test.mpi:
            nodes = self.launcher.nodes(ranks, test.one_host)
            segments = [[ranks, test.segments[0][1]]] if len(test.segments) == 1 else test.segments
            job = self.describe(test, ranks, segments, nodes, limit, "ranks")
            if nodes > 1:
                # Files of MPI's are opened by all ranks. Not for launchers: names of sockets have to be short.
                job["scratch"] = os.path.join(folder, "tmp")
                os.mkdir(job["scratch"])
            save(path, job)
            calls = [([], self.launcher.job(test.mpi, ranks, nodes, path), {})]
            expected = ranks
        else:
            job = self.describe(test, 1, [[1, test.command]], 1, limit, "host")
            save(path, job)
            command = "exec python3 %s %s" % (shlex.quote(launch.RANK), shlex.quote(path))
            calls = self.launcher.each(command, [0] if ranks == 1 else None)
            expected = ranks
            if test.writes(self.launcher.build):
                turns = [self.launcher.each(command, [i]) for i in range(expected)]
        environment = dict(os.environ, **(job["environment"] if test.mpi else {}))
        for name in job["unset"]:
            environment.pop(name, None)
        in_time, statuses = True, []
        for turn in turns or [calls]:
            ended, codes = self.execute(folder, job, turn, environment, limit + GRACE)
            in_time, statuses = in_time and ended, statuses + codes
        result = self.judge(folder, test, job, expected, in_time, statuses)
        result.update(name=entry["name"], test=test.name, suite=test.suite, repeat=entry["repeat"], of=entry["of"],
                      kind=job["kind"], ranks=expected, seconds=time.time() - begin, folder=folder)
        if result["status"] == "failed":
            self.sweep()
        if result["status"] == "passed" and not self.options.keep:
            # Thousands of small files burden a shared file system.
            for name in glob.glob(os.path.join(folder, "rank.*")) + [path]:
                os.unlink(name)
            shutil.rmtree(job.get("scratch", folder + "/tmp"), ignore_errors=True)
        save(os.path.join(folder, "result.json"), result)
        return result, True

    def records(self, folder, expected, patient):
        end = time.monotonic() + (5 if patient else 0.5)
        while True:
            found = {}
            for rank in range(expected):
                record = load(os.path.join(folder, "rank.%d.json" % rank))
                if record:
                    found[rank] = record
            # Other hosts' files may be seen late.
            if len(found) == expected or time.monotonic() >= end:
                break
            time.sleep(0.1)
            os.listdir(folder)
        ranks = []
        for rank in range(expected):
            record = found.get(rank)
            if not record:
                record = load(os.path.join(folder, "rank.%d.begun" % rank)) or {"rank": rank, "host": "?"}
                record["status"] = "vanished" if "begin" in record else "not started"
            if "output" not in record:
                try:
                    with open(os.path.join(folder, "rank.%d.out" % rank), errors="replace") as file:
                        record["output"] = file.read()[-16384:]
                except OSError:
                    record["output"] = ""
            ranks.append(record)
        return ranks

    def judge(self, folder, test, job, expected, in_time, statuses):
        ranks = self.records(folder, expected, in_time and not any(statuses))
        said = ""
        try:
            with open(os.path.join(folder, "launcher.out"), errors="replace") as file:
                said = file.read().strip()
        except OSError:
            pass

        def told(status, reason, first=None):
            keys = ("rank", "host", "status", "code", "signal", "seconds", "note")
            slim = [{key: rank[key] for key in keys if key in rank} for rank in ranks]
            if first is not None and not first.get("output", "").strip() and said:
                first = dict(first, output=said[-4000:])
            return {"status": status, "reason": reason, "ranks_detail": slim,
                    "first": first if status == "failed" else None}

        def those(*statuses):
            return sorted((rank for rank in ranks if rank["status"] in statuses),
                          key=lambda rank: rank.get("begin", 0) + rank.get("seconds", 0))

        where = "host" if job["kind"] == "host" else "rank %d on"
        hung = those("hung")
        if hung:
            # Of several that wait for each other the first one is as good as any.
            first = min(hung, key=lambda rank: rank["rank"])
            # Then the test itself was through: some MPIs hang there without contd, too.
            late = all(re.search(r"^#\d.*\bP?MPI_Finalize\b", rank.get("stack", ""), re.M) for rank in hung)
            return told("failed", "%s %s hung%s: it had not ended after %g s" % (
                where % first["rank"] if "%" in where else where, first["host"], " in MPI_Finalize" if late else "",
                job["limit"]), first)
        if not in_time:
            first = (those("vanished", "not started") or ranks)[0]
            return told("failed", "the job had not ended %d s after its limit of %g s, and rank %d left no record" %
                        (GRACE, job["limit"], first["rank"]), first)
        own = those("failed", "signal")
        skipped = those("skipped")
        absent = those("vanished", "not started")
        if test.judge:
            # The test itself says whether its job ended as it should.
            status = ([rank["code"] for rank in own + skipped] + [code for code in statuses if code] + [0])[0]
            replay = 'cat %s/rank.*.out; exit %d' % (shlex.quote(folder), status & 0xff)
            done = subprocess.run(test.judge + ["sh", "-c", replay], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode == 0 and not those("not started"):
                return told("passed", "")
            if done.returncode != test.skip:
                words = done.stdout.decode(errors="replace").strip().splitlines()
                return told("failed", words[-1] if words else "status %d, and no word why" % done.returncode,
                            (own + absent + ranks)[0])
        if own:
            first = own[0]
            reason = first.get("note") or ("signal %d (%s)" % (first["signal"], signal_name(first["signal"]))
                                           if first["status"] == "signal" else "exit status %d" % first["code"])
            return told("failed", "%s %s: %s" % (where % first["rank"] if "%" in where else where, first["host"],
                                                 reason), first)
        if skipped and not (job["kind"] == "host" and absent):
            # Mostly one rank speaks for all.
            lines = next((rank["output"].strip().splitlines() for rank in skipped if rank["output"].strip()), [])
            return told("skipped", lines[-1].strip() if lines else "exit status %d, and no word why" % test.skip)
        if absent:
            # Launchers end the others at once, so who did it may have got no further than its last words.
            first = ([rank for rank in absent if rank["output"].strip()] + absent)[0]
            if first["status"] == "vanished":
                return told("failed", "rank %d on %s vanished: it began, and left no record of its end%s" %
                            (first["rank"], first["host"], "; the launcher: status %d, %s" % (
                                max(statuses), preflight.tail(said, 2)) if any(statuses) else ""), first)
            return told("failed", "rank %d never began: %s" % (first["rank"], preflight.tail(said) or "no word why"),
                        first)
        ended = those("ended")
        if ended:
            return told("failed", "rank %d on %s was ended from outside by signal %d" %
                        (ended[0]["rank"], ended[0]["host"], ended[0]["signal"]), ended[0])
        if job["kind"] == "ranks" and any(statuses):
            return told("failed", "all ranks passed, but the launcher ended with status %d: %s" %
                        (statuses[0], preflight.tail(said)), ranks[0])
        for rank in ranks:
            for pattern in test.bad:
                if re.search(pattern, rank["output"] + said):
                    return told("failed", 'rank %d on %s wrote what it must not: "%s"' %
                                (rank["rank"], rank["host"], pattern), rank)
        return told("passed", "")

    def smoke(self, flavour, ranks):
        """A rank on each host that does nothing: (what went wrong or None, the launcher's output)."""
        folder = os.path.join(self.folder, "jobs", "start-" + flavour)
        subprocess.call(["rm", "-rf", folder])
        os.makedirs(folder)
        path = os.path.join(folder, "job.json")
        test = type("Nothing", (), {"environment": {}, "mpi": flavour, "folder": "/", "skip": 77})
        job = self.describe(test, ranks, [[ranks, ["true"]]], ranks, 60, "ranks")
        save(path, job)
        call = ([], self.launcher.job(flavour, ranks, ranks, path), {})
        try:
            in_time, statuses = self.execute(folder, job, [call], dict(os.environ, **job["environment"]), 90)
        except Stopped:
            return "stopped", ""
        log = os.path.join(folder, "launcher.out")
        with open(log, errors="replace") as file:
            said = preflight.tail(file.read())
        if not in_time:
            return "no end after 90 s (%s)" % said, log
        if any(statuses):
            return "status %s (%s)" % (statuses[0], said), log
        ranks_seen = [record for record in self.records(folder, ranks, True) if record["status"] == "passed"]
        if len(ranks_seen) != ranks:
            return "%d of %d ranks were seen (%s)" % (len(ranks_seen), ranks, said or "no word why"), log
        return None, log

    # ------------------------------------------------------------------------------------------------------- whole run

    def progress(self, number, sums, text, result=None):
        if self.options.quiet:
            return
        head = "%d/%d" % (number, len(self.run["plan"]))
        if sys.stdout.isatty():
            if result and result["status"] == "failed":
                print("\r%-*s" % (self.width, "failed: %s: %s" % (report.title(result), result["reason"])))
            line = "%s  %d passed, %d failed, %d skipped  %s" % (head, sums["passed"], sums["failed"],
                                                                sums["skipped"], text)
            line = line[:119]
            print("\r%-*s" % (self.width, line), end="", flush=True)
            self.width = len(line)
        elif result:
            what = "%d hosts" % result["ranks"] if result["kind"] == "host" else "%d ranks" % result["ranks"]
            print("%s %s %s (%s, %.1f s)%s" % (head, result["status"], report.title(result), what, result["seconds"],
                                              ": " + result["reason"] if result["reason"] else ""), flush=True)

    def all(self, tests):
        by_name = {test.name: test for test in tests}
        results = []
        why = ""
        for index, entry in enumerate(self.run["plan"]):
            sums = report.counts(results)
            if not self.stopped:
                test = by_name.get(entry["test"])
                if test is None:
                    raise Problem("The build tree no longer has the test %s: build what it was, or begin anew without "
                                  "--resume." % entry["test"])
                self.progress(index, sums, entry["name"])
                try:
                    result, new = self.do(index, entry, test)
                    results.append(result)
                    if new:
                        self.progress(index + 1, report.counts(results), entry["name"], result)
                    continue
                except Stopped:
                    why = "stopped by %s" % signal.Signals(self.stopped).name
            results.append(self.not_run(entry))
        if sys.stdout.isatty() and not self.options.quiet:
            print("\r%-*s\r" % (self.width, ""), end="")
        if self.stopped and not why:
            why = "stopped by %s" % signal.Signals(self.stopped).name
        result = report.merge(self.run, results, why)
        return result, report.write(self.folder, result)

    @staticmethod
    def not_run(entry):
        return {"name": entry["name"], "test": entry["test"], "suite": entry["test"].split(".")[0], "status": "notrun",
                "reason": "", "ranks": entry["ranks"], "repeat": entry["repeat"], "of": entry["of"],
                "kind": entry["kind"], "seconds": 0, "ranks_detail": [], "first": None, "folder": ""}
