#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the other scripts; run by itself it does the same and ends.
set -euo pipefail

deps_usage() {
	cat <<'EOF'
usage: deps.sh [--check]          or, in a bash script:  source scripts/deps.sh

Sees to it that what contd is built and tested with is there. Looks for the programs and libraries themselves; if some
are missing and this is Debian or a relative of it, installs their packages with apt-get, as root or through sudo -n.
Otherwise prints which packages are missing and exits with 1. If nothing is missing, apt is not called.

In CI (the variable CI is set) it installs Slurm, clang-format and groff as well, where it can: without them the tests that need
them are skipped.

  --check   only look, install nothing

Environment: CONTD_CORE=1, nothing of MPI or libfabric is needed; CONTD_DEMO=1, only what scripts/demo needs: what is built
with Open MPI alone, and no tests. CONTD_DEPS, what is needed besides: PROGRAM:PACKAGE...

Sets (when sourced): MPIRUN, Open MPI's mpirun; the OMPI_* variables that let root run it and share cores.
EOF
}

# deps_programs, deps_modules: what is needed, as program:package or pkg-config's module:package.
deps_programs() {
	echo cmake:cmake ninja:ninja-build pkg-config:pkg-config
	if [[ ${CONTD_DEMO:-0} == 1 ]]; then
		echo cc:gcc
		return
	fi
	echo cc:build-essential c++:build-essential make:build-essential spin:spin python3:python3
	[[ ${CONTD_CORE:-0} != 1 ]] || return 0
	# For tools/lab the last four.
	echo gfortran:gfortran ip:iproute2 nsenter:util-linux mount:mount hostname:hostname
}
deps_modules() {
	echo liburcu-memb:liburcu-dev
	[[ ${CONTD_CORE:-0} == 1 ]] || echo ompi-c:libopenmpi-dev
	[[ ${CONTD_DEMO:-0} != 1 ]] || return 0
	echo criterion:libcriterion-dev libuv:libuv1-dev glib-2.0:libglib2.0-dev tbb:libtbb-dev
	[[ ${CONTD_CORE:-0} == 1 ]] || echo mpich:libmpich-dev libfabric:libfabric-dev
}

# deps_missing: prints the Debian packages whose contents are missing, one a line.
deps_missing() {
	local entry have=1
	for entry in $(deps_programs); do
		command -v "${entry%%:*}" >/dev/null || echo "${entry#*:}"
	done
	for entry in ${CONTD_DEPS:-}; do
		PATH=$PATH:/usr/sbin command -v "${entry%%:*}" >/dev/null || echo "${entry#*:}"
	done
	# gcc without the headers of the C library, which it only recommends.
	[[ -e /usr/include/stdio.h ]] || echo libc6-dev
	command -v pkg-config >/dev/null || have=0
	for entry in $(deps_modules); do
		if ((!have)) || ! pkg-config --exists "${entry%%:*}"; then
			echo "${entry#*:}"
		fi
	done
	[[ ${CONTD_CORE:-0} != 1 ]] || return 0
	[[ -n $(deps_mpirun) ]] || echo openmpi-bin
	# On Debian both MPIs are installed side by side, MPICH's programs with a suffix.
	[[ ${CONTD_DEMO:-0} == 1 ]] || command -v mpirun.mpich >/dev/null || command -v mpiexec.hydra >/dev/null || echo mpich
}

# deps_optional: prints the packages without which tests are skipped.
deps_optional() {
	local entry
	[[ ${CONTD_CORE:-0} != 1 && ${CONTD_DEMO:-0} != 1 ]] || return 0
	for entry in srun:slurm-wlm munged:munge clang-format:clang-format groff:groff-base; do
		PATH=$PATH:/usr/sbin command -v "${entry%%:*}" >/dev/null || echo "${entry#*:}"
	done
}

# deps_mpirun: prints Open MPI's mpirun. Where MPICH is installed too, plain mpirun may be MPICH's.
deps_mpirun() {
	local name
	for name in mpirun.openmpi orterun mpirun; do
		if command -v "$name" >/dev/null && "$name" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
			command -v "$name"
			return
		fi
	done
}

deps_main() {
	local check=0 missing as_root=()
	while (($#)); do
		case $1 in
		-h | --help)
			deps_usage
			exit 0
			;;
		--check) check=1 ;;
		*)
			echo "deps.sh: unknown argument $1 (see --help)" >&2
			exit 2
			;;
		esac
		shift
	done

	mapfile -t missing < <(deps_missing | sort -u)
	if ((${#missing[@]})); then
		if ((check)) || ! command -v apt-get >/dev/null; then
			echo "missing packages (Debian's names): ${missing[*]}" >&2
			exit 1
		fi
		if (($(id -u) != 0)); then
			if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
				echo "missing packages: ${missing[*]}; to install them:" >&2
				echo "  apt-get install ${missing[*]}" >&2
				exit 1
			fi
			as_root=(sudo -n)
		fi
		echo "installing: ${missing[*]}" >&2
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install \
			"${missing[@]}" >&2
		mapfile -t missing < <(deps_missing | sort -u)
		if ((${#missing[@]})); then
			echo "still missing after the installation: ${missing[*]}" >&2
			exit 1
		fi
	fi

	mapfile -t missing < <(deps_optional)
	if ((${#missing[@]} && !check && $(id -u) == 0)) && [[ -n ${CI:-} ]] && command -v apt-get >/dev/null; then
		echo "installing, if possible: ${missing[*]}" >&2
		if ! { env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
			env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } >&2; then
			echo "tests that need ${missing[*]} will be skipped" >&2
		fi
	fi

	local version
	version=$(cmake --version | sed -n 's/^cmake version //p')
	if [[ $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) != 3.25 ]]; then
		echo "cmake 3.25 or newer is needed, this is $version" >&2
		exit 1
	fi
}

deps_environment() {
	MPIRUN=$(deps_mpirun)
	export MPIRUN
	if (($(id -u) == 0)); then
		export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	fi
	# Demo and tests start more ranks than a small machine has cores.
	export OMPI_MCA_rmaps_base_oversubscribe=1
	# Open MPI 4 stops when its default launcher finds neither ssh nor rsh, even to start local processes.
	if ! command -v ssh >/dev/null && ! command -v rsh >/dev/null; then
		export OMPI_MCA_plm=isolated
	fi
	# Containers refuse to read another process's memory; Open MPI would try, complain, and go on without.
	export OMPI_MCA_btl_vader_single_copy_mechanism=none
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	deps_main "$@"
else
	deps_main
	deps_environment
fi
