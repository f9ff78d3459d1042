# SPDX-License-Identifier: BSD-3-Clause
"""What would make tests fail for reasons that are not contd's: found before the first, all at once, each said in a
sentence that says what to do."""
import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import threading

import launch

PROBE_SECONDS = 30


def tail(text, lines=4):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-lines:] if line.strip())


def programs(taken):
    missing = sorted({word for test, _ in taken for word in test.programs() if not os.path.exists(word)})
    if missing:
        yield ("Not built: %d programs of these tests are missing, the first is %s. Build the whole tree: cmake "
               "--build --preset release." % (len(missing), missing[0]))


def slots(launcher, taken, options):
    """Before the probe, as far as the host file says it; again after it."""
    if launcher.oversubscribe() or any(host.slots is None for host in launcher.hosts):
        return
    total = sum(host.slots for host in launcher.hosts)
    first = launcher.hosts[0].slots
    advice = ("Give them more in --hosts (NAME:SLOTS), choose fewer with --ranks, leave those tests out with "
              "--exclude, or share processors with --oversubscribe.")
    for alone, most in ((False, total), (True, first)):
        many = [(ranks, test.name) for test, ranks in taken if test.mpi and test.one_host == alone and ranks > most]
        if many:
            yield ("More ranks than slots: %d tests (the first is %s) need up to %d ranks%s, the hosts have %d slots "
                   "(%s). %s" % (len(many), many[0][1], max(many)[0], " on one host" if alone else "", total,
                    ", ".join("%s:%d" % (host.name, host.slots) for host in launcher.hosts), advice))
    each = options.ranks_per_node
    if each and any(host.slots < each for host in launcher.hosts):
        few = [host for host in launcher.hosts if host.slots < each][0]
        yield ("More ranks than slots: --ranks-per-node is %d, but %s has %d slots. Give it more in --hosts, or share "
               "processors with --oversubscribe." % (each, few.name, few.slots))
    if options.ranks and each and options.ranks > each * len(launcher.hosts):
        yield ("More ranks than places: --ranks %d with --ranks-per-node %d needs %d hosts, there are %d." %
               (options.ranks, each, -(-options.ranks // each), len(launcher.hosts)))


def probe(launcher, build, folder, flavours, options):
    """What each host says of itself: {index: {key: value}}, and what the launcher or agent said."""
    nonce = os.path.join(folder, "nonce")
    secret = "%016x" % random.SystemRandom().getrandbits(64)
    with open(nonce, "w") as file:
        file.write(secret + "\n")
    quote = shlex.quote
    command = [
        'i=@${CONTD_CLUSTER_INDEX:-${SLURM_PROCID:-0}}@',
        'echo "${i}name=$(uname -n)"', 'echo "${i}cpus=$(nproc)"',
        'echo "${i}nonce=$(cat %s 2>/dev/null)"' % quote(nonce),
        'echo "${i}version=$(sed -n \'s/.*PACKAGE_VERSION "\\(.*\\)".*/\\1/p\' %s/contd-config-version.cmake '
        '2>/dev/null | head -n 1)"' % quote(build.folder),
        'echo "${i}contd=$(cat %s/libcontd*.so 2>/dev/null | cksum)"' % quote(build.folder),
    ]
    for flavour in flavours:
        if build.mpirun(flavour):
            command.append('echo "${i}%s=$(%s --version 2>&1 | head -n 3 | tr \'\\n\' \' \')"' %
                           (flavour, quote(build.mpirun(flavour))))
    rank = quote(launch.RANK)
    command.append('if command -v python3 >/dev/null; then echo "${i}python=yes"; '
                   'if [ -r %s ]; then echo "${i}$(python3 %s --probe %s)"; fi; fi' %
                   (rank, rank, quote(options.provider) if options.provider else ""))
    found, errors = {}, {}

    def ask(indices, argv, environment):
        try:
            # A separate session: an agent may be a script, and what it has started must end with it.
            with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  start_new_session=True, env=dict(os.environ, **environment)) as process:
                try:
                    said, error = process.communicate(timeout=PROBE_SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
            said, error = said.decode(errors="replace"), error.decode(errors="replace").strip()
            error = error or "it ended with status %d" % process.returncode
        except subprocess.TimeoutExpired:
            said, error = "", "no answer within %d s" % PROBE_SECONDS
        except OSError as failure:
            said, error = "", str(failure)
        for index, key, value in re.findall(r"^@(\d+)@([a-z]+)=(.*)$", said, re.M):
            found.setdefault(int(index), {})[key] = value.strip()
        for index in indices:
            if index not in found:
                errors[index] = tail(error)

    threads = [threading.Thread(target=ask, args=call) for call in launcher.each("; ".join(command))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return secret, found, errors


def known(name):
    try:
        socket.getaddrinfo(name, None)
        return True
    except OSError:
        return False


def hosts(launcher, build, folder, flavours, options, notes):
    secret, found, errors = probe(launcher, build, folder, flavours, options)
    names = [host.name for host in launcher.hosts]
    reached = sorted(index for index in found if index < len(names))
    for index, name in enumerate(names):
        if index in found:
            continue
        error = errors.get(index, "no answer")
        if not known(name):
            yield ("Wrong host name: %s is not known here (%s). Look for a slip in the host file, or enter it in "
                   "/etc/hosts or the DNS." % (name, error))
        elif launcher.name == "srun":
            yield ("Unreachable: %s does not answer (%s). See sinfo -N -l; a node that is down goes back with scontrol "
                   "update nodename=%s state=resume." % (name, error, name))
        else:
            yield ("Unreachable: %s does not answer (%s). It must let you run a command without a password: try %s %s "
                   "true." % (name, error, " ".join(getattr(launcher, "agent", ["ssh"])), name))
    lacking = [names[i] for i in reached if found[i].get("nonce") != secret]
    if lacking:
        yield ("No shared file system: %s not see %s, which was written just now. Put the build on a file system that "
               "all hosts share, and name a folder there with --output." %
               (", ".join(lacking) + (" does" if len(lacking) == 1 else " do"), os.path.join(folder, "nonce")))
    for key, what in (("contd", "contd"), ("openmpi", "Open MPI"), ("mpich", "MPICH")):
        sorts = {}
        for i in reached:
            value = found[i].get(key, "")
            if key == "contd":
                value = "%s, checksum %s" % (found[i].get("version") or "none", value.split(" ")[0])
            sorts.setdefault(value, []).append(names[i])
        if len(sorts) > 1:
            told = "; ".join("%s on %s" % (value, ", ".join(where)) for value, where in sorted(sorts.items()))
            yield ("Different versions of %s: %s. %s" %
                   (what, told, "Build it once, on a file system that all hosts share." if key == "contd" else
                    "Ranks of two versions do not understand each other: install the same one everywhere."))
    without = [names[i] for i in reached if found[i].get("python") != "yes"]
    if without:
        yield "python3 is missing on %s: each rank is started through it; install it there." % ", ".join(without)
    for i in reached:
        try:
            more = json.loads(found[i].get("probe", "{}"))
        except ValueError:
            more = {}
        if options.provider and more and more.get("provider") is not True:
            yield ("The libfabric provider %s is not on %s: %s. Install it there, or choose another one with "
                   "--provider (fi_info lists them)." % (options.provider, names[i], more.get("provider")))
        elif options.provider and not more and found[i].get("python") == "yes" and found[i].get("nonce") == secret:
            yield ("Whether the libfabric provider %s is on %s can't be told, as the program that looks for it fails: "
                   "try python3 %s --probe %s there." % (options.provider, names[i], launch.RANK,
                                                         shlex.quote(options.provider)))
        if launcher.hosts[i].slots is None:
            launcher.hosts[i].slots = max(1, int(found[i].get("cpus") or 1))
        said = found[i].get("name", "")
        if said.split(".")[0] != names[i].split(".")[0] and not re.match(r"^[0-9.:]+$|^localhost$", names[i]):
            notes.append("%s calls itself %s" % (names[i], said))


def transport(launcher, options, build, flavours):
    if not options.transport or "openmpi" not in flavours:
        return
    program = os.path.join(os.path.dirname(launch.which(build.mpirun("openmpi")) or ""), "ompi_info")
    text = launch.said([program, "--parsable", "--all"]) if launch.which(program) else ""
    if not text:
        return
    for name, value in launch.transport(options.transport, "openmpi").items():
        framework = name[len("OMPI_MCA_"):]
        if framework not in ("pml", "btl", "mtl"):
            continue
        for component in value.split(","):
            if "mca:%s:%s:" % (framework, component) not in text:
                yield ("Open MPI has no %s %s here, which --transport %s needs: see ompi_info; its name is one of tcp, "
                       "vader (shared memory), ucx, ofi." % (framework, component, options.transport))


def smoke(launcher, flavours, folder, start):
    """A rank on each host that does nothing, by each MPI's launcher: what fails here would fail in every test."""
    for flavour in flavours:
        status, said = start(flavour, len(launcher.hosts))
        if status:
            yield ("The launcher does not start ranks of %s on %s: %s. Its output is in %s." %
                   (flavour, ", ".join(host.name for host in launcher.hosts), status, said))
