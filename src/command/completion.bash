# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash of the command contd.
_contd() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "run info dump --help --version" -- "$word")
		return
	fi
	if [[ ${COMP_WORDS[1]} == info && $word == -* && $before != --time-limit ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--json --no-measures --no-mpi-init --time-limit --help" -- "$word")
	fi
	if [[ ${COMP_WORDS[1]} == dump && $before != --limit ]]; then
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--json --limit --help" -- "$word")
		elif [[ $word =~ ^[0-9]*$ ]]; then
			mapfile -t COMPREPLY < <(cd /proc && compgen -G "${word}[0-9]*" | grep -E "^[0-9]+\$"; compgen -G "$word")
		fi
	fi
	[[ ${COMP_WORDS[1]} == run ]] || return
	# Behind the program's name: what completes the program's own arguments.
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--allow | --mpi | --agent | --budget) ((++i)) ;;
		--) ((++i < COMP_CWORD)) && break ;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i < COMP_CWORD)); then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		return
	fi
	case $before in
	--allow) mapfile -t COMPREPLY < <(compgen -W "user-code" -- "$word") ;;
	--mpi) mapfile -t COMPREPLY < <(compgen -W "openmpi mpich abi" -- "$word") ;;
	--agent) mapfile -t COMPREPLY < <(compgen -W "caller region tick block spin" -- "$word") ;;
	--budget) ;;
	*)
		if [[ $word == -* && $before != -- ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--progress --report --allow --ring --mpi --agent --budget --verbose --help" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
		fi
		;;
	esac
}
complete -o default -F _contd contd
