# SPDX-License-Identifier: BSD-3-Clause
"""A recipe for Spack: put this file into packages/contd/ of a repository of your own (spack repo create)."""
from spack.package import *


class Contd(CMakePackage):
    """contd runs a callback, a continuation, when an asynchronous operation completes: an MPI request, an operation of
    libfabric, an event of the program's, or a word in memory."""

    # No archive is published: "spack dev-build contd@0.2.0" in the source tree, or the archive that CPack makes
    # (docs/install.md) in a mirror.
    manual_download = True

    license("BSD-3-Clause")

    version("0.2.0")

    variant("mpi", default=True, description="Continuations of MPI requests, for the MPI that is chosen")
    variant("fabric", default=False, description="Continuations of libfabric operations")
    variant("fortran", default=False, when="+mpi", description="Fortran bindings")
    variant("man", default=True, description="Manual pages")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build", when="+man")
    depends_on("userspace-rcu")
    depends_on("mpi", when="+mpi")
    depends_on("libfabric", when="+fabric")

    conflicts("platform=darwin", msg="contd is for Linux")
    conflicts("platform=windows", msg="contd is for Linux")

    def cmake_args(self):
        openmpi = "+mpi" in self.spec and self.spec["mpi"].name == "openmpi"
        mpich = "+mpi" in self.spec and not openmpi  # MPICH and libraries derived from it
        args = [
            self.define("CONTD_MPI", openmpi),
            self.define("CONTD_MPICH", mpich),
            self.define("CONTD_ABI", False),
            self.define_from_variant("CONTD_FABRIC", "fabric"),
            self.define("CONTD_FORTRAN", "+fortran" in self.spec),
            self.define_from_variant("CONTD_MAN", "man"),
        ]
        args += [self.define(f"CONTD_{part}", False) for part in ("TESTS", "BENCH", "EXAMPLES", "APPS")]
        if mpich:
            # Its own wrapper: there may be others in PATH.
            args.append(self.define("MPICH_MPICC", self.spec["mpi"].prefix.bin.mpicc))
        return args
