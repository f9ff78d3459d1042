# SPDX-License-Identifier: BSD-3-Clause
#
# The graph of scripts/check-call-graph, for any POSIX awk. Its input is what that script has collected of each object:
# a line "=OBJECT path marked", then "=SYMBOLS", "=CODE", "=DATA", "=LINES section", "=STACK" and "=COMPILER", each with
# the output of one tool behind it. In the environment: CG_ALLOW (allow files, one a line), CG_IMPORTS (list of symbols),
# CG_STACK (bytes), CG_IMPORT_STACK, CG_ROOT (folder that file names are given from), CG_REPORT, CG_DOT, CG_TITLE, and
# CG_MACHINE (x86-64, aarch64 or riscv64).
#
# Each symbol is a function: number f; fname, funit, ... Its sites are the calls and jumps that leave it. Where the
# debugging information tells of functions that were inlined, a site's chain names them, the one with symbol first: so
# the lines of the allow file are about functions as they are written, whatever the compiler made of them.

function hex(s,    i, v) {
	v = 0
	s = tolower(s)
	sub(/^0x/, "", s)
	for (i = 1; i <= length(s); i++)
		v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
	return v
}

function base(symbol) {
	sub(/\.(part|isra|constprop|cold|lto_priv|llvm|localalias)(\..*)?$/, "", symbol)
	return symbol
}

function tail_of(path) {
	sub(/^.*\//, "", path)
	return path
}

function shorter(path) {
	if (index(path, ROOT "/") == 1)
		return substr(path, length(ROOT) + 2)
	return path
}

function complain(text, advice) {
	if ((text, "said") in said)
		return
	said[text, "said"] = 1
	errors++
	error_text[errors] = text (advice == "" ? "" : "\n    " advice)
}

# ------------------------------------------------------------------------------------------------------- allow files

# A function's name in an allow file: NAME, or FILE.c:NAME where the name alone is not clear.
function fits(spec, name, file,    at) {
	at = index(spec, ":")
	if (!at)
		return spec == name
	return substr(spec, at + 1) == name && substr(spec, 1, at - 1) == tail_of(file)
}

function allow_read(file,    line, n, w, why, at, i, number) {
	while ((getline line < file) > 0) {
		number++
		at = index(line, "#")
		why = at ? substr(line, at + 1) : ""
		if (at)
			line = substr(line, 1, at - 1)
		gsub(/^[ \t]+|[ \t]+$/, "", why)
		n = split(line, w, /[ \t]+/)
		if (n && w[n] == "")
			n--
		if (n && w[1] == "") {
			for (i = 1; i < n; i++)
				w[i] = w[i + 1]
			n--
		}
		if (!n)
			continue
		if (why == "")
			complain(shorter(file) ":" number ": no reason given", "end the line with # and why it is so")
		lines++
		line_text[lines] = shorter(file) ":" number ": " line
		if (w[1] == "root" && n >= 2) {
			roots++
			root_name[roots] = w[2]
			root_line[roots] = lines
			for (i = 3; i <= n; i++) {
				if (w[i] == "handler")
					root_handler[roots] = 1
				else if (w[i] == "callback")
					root_callback[roots] = 1
				else
					complain(shorter(file) ":" number ": root takes handler and callback, not " w[i])
			}
		} else if (w[1] == "pointer" && n >= 3) {
			pointer[w[2]] = 1
			for (i = 3; i <= n; i++) {
				behind[w[2]] = behind[w[2]] " " w[i]
				if (w[i] == "*outside")
					outside_why[w[2]] = why
			}
		} else if (w[1] == "calls" && n >= 3) {
			callss++
			calls_name[callss] = w[2]
			calls_line[callss] = lines
			calls_pointers[callss] = ""
			for (i = 3; i <= n; i++)
				calls_pointers[callss] = calls_pointers[callss] " " w[i]
		} else if (w[1] == "taken" && n >= 2) {
			for (i = 2; i <= n; i++)
				taken_name[++takens] = w[i]
		} else if (w[1] == "edge" && n == 3) {
			edges++
			edge_from[edges] = w[2]
			edge_to[edges] = w[3]
			edge_line[edges] = lines
		} else if (w[1] == "never" && (n == 3 || (n == 5 && w[4] == "below"))) {
			nevers++
			never_from[nevers] = w[2]
			never_to[nevers] = w[3]
			never_line[nevers] = lines
			never_why[nevers] = why
			never_below[nevers] = 0
			if (n == 5) {
				for (i = 1; i <= belows && below_name[i] != w[5]; i++)
					;
				if (i > belows)
					below_name[++belows] = w[5]
				never_below[nevers] = i
			}
		} else if (w[1] == "again" && n == 4 && w[4] ~ /^[0-9]+$/) {
			agains++
			again_from[agains] = w[2]
			again_to[agains] = w[3]
			again_times[agains] = w[4] + 0
			again_line[agains] = lines
			again_why[agains] = why
		} else if (w[1] == "import" && n >= 2) {
			if (n == 2)
				import_ok[w[2]] = 1
			for (i = 3; i <= n; i++)
				import_for[w[2]] = import_for[w[2]] " " w[i]
		} else {
			complain(shorter(file) ":" number ": not understood: " line, "see the head of src/signal/call-graph.allow")
		}
	}
	close(file)
	return number
}

function imports_read(file,    line, w) {
	while ((getline line < file) > 0) {
		sub(/#.*/, "", line)
		if (!split(line, w, /[ \t]+/) || w[1] == "")
			continue
		if (sub(/\*$/, "", w[1]))
			import_family[++families] = w[1]
		else
			import_ok[w[1]] = 1
	}
	close(file)
}

BEGIN {
	ROOT = ENVIRON["CG_ROOT"]
	MACHINE = ENVIRON["CG_MACHINE"]
	LIMIT = ENVIRON["CG_STACK"] + 0
	IMPORT_STACK = ENVIRON["CG_IMPORT_STACK"] + 0
	nfiles = split(ENVIRON["CG_ALLOW"], files, "\n")
	for (k = 1; k <= nfiles; k++) {
		if (files[k] == "")
			continue
		last_allow = files[k]
		if (!allow_read(files[k]))
			complain("cannot read " files[k])
	}
	imports_read(ENVIRON["CG_IMPORTS"])
	IMPORTS = shorter(ENVIRON["CG_IMPORTS"])
	ALLOW = shorter(last_allow)
	PROGRAM = -1
}

# ------------------------------------------------------------------------------------------------------------ reading

/^=/ {
	part = $1
	if (part == "=OBJECT") {
		object++
		object_unit[object] = $2
		object_marked[object] = $3
			f = 0
	} else if (part == "=LINES") {
		section = $2
		at = ""
	}
	next
}

function function_new(section, value, size, name,    key) {
	key = object SUBSEP section SUBSEP value
	if (key in function_at)
		return function_at[key]
	functions++
	function_at[key] = functions
	fname[functions] = name
	fobject[functions] = object
	fsection[functions] = section
	fstart[functions] = value
	fsize[functions] = size
	in_section[object, section] = in_section[object, section] " " functions
	return functions
}

# VALUE FLAGS SECTION<tab>SIZE [.hidden] NAME
part == "=SYMBOLS" && /^[0-9a-f]+ / {
	flags = substr($0, 18, 7)
	n = split(substr($0, 26), halves, "\t")
	if (n < 2)
		next
	section = halves[1]
	n = split(halves[2], w, " ")
	name = w[n]
	if (section == "*UND*")
		next
	defined[substr(flags, 1, 1) == "l" ? object SUBSEP name : name] = 1
	if (index(flags, "F")) {
		value = hex($1)
		id = function_new(section, value, hex(w[1]), name)
		if (substr(flags, 1, 1) == "l") {
			local_function[object, name] = id
		} else {
			global_function[name] = id
			if (!index(fname[id], ".") && base(name) == name)
				fname[id] = name
		}
	}
	next
}

part == "=CODE" && /^Disassembly of section/ {
	section = $4
	sub(/:$/, "", section)
	f = 0
	next
}
part == "=CODE" && /^[0-9a-f]+ <.*>:$/ {
	name = $2
	gsub(/^<|>:$/, "", name)
	value = hex($1)
	if ((object, section, value) in function_at || !f || value >= fstart[f] + fsize[f]) { # else a label within it
		f = function_new(section, value, 0, name)
		add_reg = table = called = ""
	}
	next
}

# A site: kind c (call), j (jump), t (address taken), d (data or unknown symbol); what: a symbol, or @section:address.
function site_new(kind, what, indirect) {
	sites[f]++
	site_kind[f, sites[f]] = kind
	site_what[f, sites[f]] = what
	site_indirect[f, sites[f]] = indirect
	site_at[f, sites[f]] = address
}

# "symbol", "symbol+0x10", "symbol-0x4", ".text+0x10": the symbol, or the place in its section.
function reloc_target(r,    at, plus, sign) {
	plus = 0
	if (match(r, /[+-]0x[0-9a-f]+$/)) {
		sign = substr(r, RSTART, 1) == "-" ? -1 : 1
		plus = sign * hex(substr(r, RSTART + 1))
		r = substr(r, 1, RSTART - 1)
	}
	if (r ~ /^\./)
		return "@" r ":" plus
	return r
}

# What follows an instruction's operands: its relocations. The last of these patterns counts.
function reloc_read(pattern, ignored,    i) {
	reloc = reloc_type = ""
	for (i = 3; i < cells; i++)
		if (cell[i] ~ pattern && !(ignored != "" && cell[i] ~ ignored)) {
			reloc_type = cell[i]
			sub(/^.*R_(X86_64|AARCH64|RISCV)_/, "", reloc_type)
			reloc = cell[i + 1]
			gsub(/[ \t]/, "", reloc)
		}
}

function outside_function(value) {
	return value < fstart[f] || (fsize[f] && value >= fstart[f] + fsize[f])
}

# The address of a relocation's target is taken. relative: x86-64 counts from the end of the four bytes.
function address_taken(relative,    t, w) {
	t = reloc_target(reloc)
	if (t ~ /^@\.text/) {
		split(t, w, ":")
		site_new("t", w[1] ":" (w[2] + relative), 0)
	} else if (t !~ /^@/) {
		site_new("d", t, 0)
	} else if (t ~ /^@\.rodata/) {
		table = t
		steps = 0
	}
}

# A direct call or jump without a relocation: within the section.
function direct(kind, value) {
	if (kind == "c" || outside_function(value))
		site_new(kind, "@" section ":" value, 0)
}

function code_x86_64(    w, t, kind, mnemonic, target, instruction) {
	instruction = cell[2]
	reloc_read("R_X86_64_", "")
	while (sub(/^(bnd|notrack|data16|rex\.W|rex|addr32|cs|ds|es|lock|rep|repz|repnz) +/, "", instruction))
		;
	split(instruction, w, " ")
	mnemonic = w[1]
	target = w[2]
	if (mnemonic ~ /^(call|lcall|jmp|ljmp|j[a-z]+|loop[a-z]*|xbegin)$/ || mnemonic ~ /^(call|jmp|lcall|ljmp)[qw]$/) {
		kind = mnemonic ~ /^l?call/ ? "c" : "j"
		if (target ~ /^\*/ && !(reloc_type ~ /GOTPC/ && target ~ /\(%rip\)$/)) {
			if (kind == "j" && target == "*" add_reg && table != "" && steps < 16)
				; # a switch: the place was added to the address of the table
			else
				site_new(kind, "", 1)
		} else if (reloc != "") {
			t = reloc_target(reloc)
			if (t ~ /^@/) {
				split(t, w, ":")
				t = w[1] ":" (w[2] + 4)
			}
			site_new(kind, t, 0)
		} else if (target ~ /^[0-9a-f]+$/) {
			direct(kind, hex(target))
		} else {
			site_new(kind, "", 1)
		}
		return
	}
	if (reloc != "" && (mnemonic == "lea" || reloc_target(reloc) !~ /^@\.rodata/)) {
		address_taken(reloc_type ~ /PC32|PLT32/ ? 4 : 0)
	} else if (mnemonic == "lea" && instruction ~ /\(%rip\).*# [0-9a-f]+ </) {
		t = instruction
		sub(/^.*# /, "", t)
		sub(/ .*$/, "", t)
		site_new("t", "@" section ":" hex(t), 0)
	}
	add_reg = ""
	if (mnemonic ~ /^addq?$/ && match(target, /^%r[a-z0-9]+,%r[a-z0-9]+$/)) {
		add_reg = target
		sub(/^.*,/, "", add_reg)
	}
}

# The address that objdump has written before "<symbol>" in the operands; -1: none.
function written_address(operands) {
	if (!match(operands, /[0-9a-f]+ </))
		return -1
	return hex(substr(operands, RSTART, RLENGTH - 2))
}

function code_aarch64(    kind, mnemonic, operands) {
	mnemonic = cell[2]
	gsub(/ /, "", mnemonic)
	operands = cells > 2 && cell[3] !~ /R_AARCH64_/ ? cell[3] : ""
	reloc_read("R_AARCH64_", "")
	if (mnemonic ~ /^(blr|br)(aa|ab|aaz|abz)?$/) {
		kind = mnemonic ~ /^bl/ ? "c" : "j"
		if (reloc_type == "TLSDESC_CALL") { # of the loader's, which allocates for a thread's first access
			site_new("c", "__tls_get_addr", 0)
			return
		}
		sub(/[ ,].*$/, "", operands)
		if (kind == "j" && operands == add_reg && table != "" && steps < 16)
			return # a switch, as on x86-64
		site_new(kind, "", 1)
	} else if (mnemonic ~ /^(bl|b|b\.[a-z]+|bc\.[a-z]+|cbz|cbnz|tbz|tbnz)$/) {
		kind = mnemonic == "bl" ? "c" : "j"
		if (reloc != "")
			site_new(kind, reloc_target(reloc), 0)
		else if (written_address(operands) >= 0)
			direct(kind, written_address(operands))
		else
			site_new(kind, "", 1)
	} else {
		if (reloc != "")
			address_taken(0)
		else if (mnemonic == "adr" && written_address(operands) >= 0 && outside_function(written_address(operands)))
			site_new("t", "@" section ":" written_address(operands), 0)
		if (mnemonic == "add" && operands ~ /^x[0-9]+, x[0-9]+, w[0-9]+, sxt[bhw]/) {
			add_reg = operands
			sub(/,.*$/, "", add_reg)
		} else if (add_reg != "" && operands ~ "^" add_reg ",") {
			add_reg = ""
		}
	}
}

# Targets within a function are local labels, because the linker moves the code: objdump writes the address, too.
function code_riscv64(    kind, mnemonic, operands, w) {
	mnemonic = cell[2]
	gsub(/ /, "", mnemonic)
	sub(/^c\./, "", mnemonic)
	operands = cells > 2 && cell[3] !~ /R_RISCV_/ ? cell[3] : ""
	reloc_read("R_RISCV_", "R_RISCV_RELAX|R_RISCV_ALIGN")
	if (reloc_type ~ /^CALL/) { # auipc; the jump stands behind it
		called = reloc_target(reloc)
		return
	}
	if (mnemonic ~ /^(jalr|jr|ret)$/) {
		kind = mnemonic == "jr" || operands ~ /^zero,/ ? "j" : "c"
		if (mnemonic == "ret") {
			called = ""
		} else if (called != "") {
			site_new(kind, called, 0)
			called = ""
		} else {
			sub(/^ra, *|^zero, */, "", operands)
			sub(/[ ,#].*$/, "", operands)
			if (!(kind == "j" && operands == add_reg && table != "" && steps < 24))
				site_new(kind, "", 1)
		}
		return
	}
	if (mnemonic ~ /^(jal|j|beq|bne|blt|bge|bltu|bgeu|beqz|bnez|blez|bgez|bltz|bgtz|bgt|ble|bgtu|bleu)$/) {
		kind = mnemonic == "jal" ? "c" : "j"
		if (reloc != "" && reloc !~ /^\.L/)
			site_new(kind, reloc_target(reloc), 0)
		else if (written_address(operands) >= 0)
			direct(kind, written_address(operands))
		else
			site_new(kind, "", 1)
		return
	}
	if (reloc_type ~ /^(PCREL_HI20|GOT_HI20|HI20)$/) {
		if (reloc ~ /^\.L/) { # data, perhaps the table of a switch
			table = reloc
			steps = 0
		} else {
			address_taken(0)
		}
	}
	if (mnemonic == "add" && split(operands, w, /, */) >= 2)
		add_reg = w[1]
	else if (add_reg != "" && operands ~ "^" add_reg ",")
		add_reg = ""
}

part == "=CODE" && /^ +[0-9a-f]+:\t/ {
	if (!f)
		next
	cells = split($0, cell, "\t")
	address = cell[1]
	gsub(/[ :]/, "", address)
	address = hex(address)
	function_of[object, section, address] = f
	if (MACHINE == "aarch64")
		code_aarch64()
	else if (MACHINE == "riscv64")
		code_riscv64()
	else
		code_x86_64()
	steps++
	next
}

# Functions in tables: OFFSET TYPE VALUE, under "RELOCATION RECORDS FOR [section]:".
part == "=DATA" && /^RELOCATION RECORDS FOR/ {
	section = $4
	gsub(/[\[\]:]/, "", section)
	next
}
part == "=DATA" && $2 ~ /^R_(X86_64_64|AARCH64_ABS64|RISCV_64)$/ && section !~ /^\.(debug|eh_frame|text|stab|note)/ {
	data_takes++
	data_take[data_takes] = reloc_target($3)
	data_take_object[data_takes] = object
	next
}

# addr2line -a -f -i: the address, then the functions there, each with its place in the source, innermost first.
part == "=LINES" && /^0x[0-9a-f]+$/ {
	at = object SUBSEP section SUBSEP hex($0)
	frame = ""
	next
}
part == "=LINES" && at != "" {
	if (frame == "") {
		frame = $0
		next
	}
	place = $0
	sub(/ \(discriminator [0-9]+\)$/, "", place)
	line = place
	sub(/^.*:/, "", line)
	sub(/:[^:]*$/, "", place)
	if (frame != "??") {
		chain[at] = frame "|" place "|" line (chain[at] == "" ? "" : ">" chain[at])
		if (line ~ /^[0-9]+$/ && line > 0)
			debug_lines[object]++
	}
	frame = ""
	next
}

# FILE:LINE:COLUMN:NAME<tab>BYTES<tab>KIND
part == "=STACK" {
	n = split($0, cell, "\t")
	if (n < 3)
		next
	name = cell[1]
	sub(/^.*:/, "", name)
	if (!((object, name) in stack_of) || stack_of[object, name] < cell[2] + 0)
		stack_of[object, name] = cell[2] + 0
	# Clones go by several names ("set.isra" of set.isra.0): of a name's all the deepest, where the exact one is not there.
	if (!((object, base(name)) in stack_base) || stack_base[object, base(name)] < cell[2] + 0)
		stack_base[object, base(name)] = cell[2] + 0
	stack_seen[object] = 1
	if (cell[3] == "dynamic")
		stack_dynamic[object, base(name)] = 1
	next
}

# edge: { sourcename: "..." targetname: "__indirect_call" label: "file:line:column" }
part == "=COMPILER" && /__indirect_call/ && /^edge:/ {
	split($0, cell, "\"")
	name = cell[2]
	sub(/^.*:/, "", name)
	compiled++
	compiled_object[compiled] = object
	compiled_name[compiled] = name
	compiled_place[compiled] = cell[6]
	sub(/:[0-9]+$/, "", compiled_place[compiled])
	next
}

# ---------------------------------------------------------------------------------------------------------- resolving

# The function that a site's target names, 0: none of ours.
function find(o, what,    w, n, i, list, value, best) {
	if (what !~ /^@/) {
		if ((o, what) in local_function)
			return local_function[o, what]
		return what in global_function ? global_function[what] : 0
	}
	split(substr(what, 2), w, ":")
	value = w[2] + 0
	n = split(in_section[o, w[1]], list, " ")
	best = 0
	for (i = 1; i <= n; i++)
		if (fstart[list[i]] <= value && (!best || fstart[list[i]] > fstart[best]))
			best = list[i]
	return best
}

# The function that a name of the allow file means; 0: none, -1: several.
function named(spec,    id, found, exact) {
	found = 0
	for (id = 1; id <= functions; id++) {
		if (!fits(spec, base(fname[id]), object_unit[fobject[id]]))
			continue
		exact = base(fname[id]) == fname[id]
		if (found && (base(fname[found]) == fname[found]) == exact)
			return -1
		if (!found || exact)
			found = id
	}
	return found
}

function show(id) {
	if (id == PROGRAM)
		return "(program)"
	return base_count[base(fname[id])] > 1 ? tail_of(object_unit[fobject[id]]) ":" fname[id] : fname[id]
}

function frame_of(id,    c) {
	c = fname[id]
	if ((fobject[id], c) in stack_of)
		return stack_of[fobject[id], c]
	if (c ~ /\.cold(\.|$)/)
		return 0 # runs on the frame of the function that it is a part of
	if ((fobject[id], base(c)) in stack_base)
		return stack_base[fobject[id], base(c)]
	return -1
}

function source_line(file, number,    line, n) {
	if (!(file in source_read)) {
		n = 0
		while ((getline line < file) > 0)
			source_text[file, ++n] = line
		close(file)
		source_read[file] = n
	}
	return (file, number + 0) in source_text ? source_text[file, number + 0] : ""
}

# Does this line call through the pointer of this name (its last component)?
function line_calls(text, name,    last, at, before) {
	last = name
	sub(/^.*(->|\.)/, "", last)
	while ((at = index(text, last)) > 0) {
		before = at == 1 ? "" : substr(text, at - 1, 1)
		text = substr(text, at + length(last))
		if (before !~ /[A-Za-z0-9_]/ && text ~ /^\)*\(/)
			return 1
	}
	return 0
}

# The function whose definition the line is in, by the look of the source; "": unknown. Debugging information sometimes
# names the function around the one that was inlined.
function enclosing(file, number,    text) {
	for (number = number + 0; number > 0; number--) {
		text = source_line(file, number)
		if (text ~ /^[A-Za-z_].*[A-Za-z0-9_]\(/ && text !~ /;[ \t]*$/) {
			match(text, /[A-Za-z0-9_]+\(/)
			return substr(text, RSTART, RLENGTH - 1)
		}
	}
	return ""
}

# Through which pointers does a site of this innermost function call? A list of names; complains where it is unclear.
function pointers_of(name, file, line, place,    k, n, w, i, text, found, declared, around) {
	text = source_line(file, line)
	for (;;) {
		declared = found = ""
		for (k = 1; k <= callss; k++)
			if (fits(calls_name[k], name, file)) {
				declared = declared calls_pointers[k]
				line_used[calls_line[k]] = 1
			}
		n = split(declared, w, " ")
		for (i = 1; i <= n; i++)
			if (line_calls(text, w[i]))
				found = found " " w[i]
		if (found != "")
			return found
		if (text == "" && declared != "")
			return declared # the source is not there to look at
		around = enclosing(file, line)
		if (around == "" || around == name)
			break
		name = around
	}
	if (declared == "")
		complain(place ": indirect call in " name "() that nothing declares",
			"add to " ALLOW ": \"calls " name " POINTER # why\" and \"pointer POINTER FUNCTION... # why\"")
	else
		complain(place ": indirect call in " name "(), but this line calls through none of" declared,
			"it reads: " text "\n    add the pointer to the line \"calls " name "\" in " ALLOW)
	return ""
}

# ------------------------------------------------------------------------------------------------------------ walking

function below_bits(state, name, file,    i) {
	for (i = 1; i <= belows; i++)
		if (fits(below_name[i], name, file) && !index(state, "<" i ">"))
			state = state "<" i ">"
	return state
}

function is_never(state, from, from_file, to, to_file,    i) {
	for (i = 1; i <= nevers; i++)
		if (fits(never_from[i], from, from_file) && fits(never_to[i], to, to_file) &&
		    (!never_below[i] || index(state, "<" never_below[i] ">"))) {
			line_used[never_line[i]] = 1
			return 1
		}
	return 0
}

function edge_note(from, to, kind) {
	if (!((from, to) in edge_seen)) {
		edge_seen[from, to] = kind
		callers[to] = callers[to] (callers[to] == "" ? "" : " ") show(from)
		edge_list[++edge_count] = from SUBSEP to
	}
}

function import_reached(symbol, id, name, file, place,    w, n, i) {
	import_seen[symbol] = 1
	if (!((symbol, id) in import_by)) {
		import_by[symbol, id] = 1
		import_callers[symbol] = import_callers[symbol] " " show(id)
	}
	for (i = 1; i <= families && !(symbol in import_ok); i++)
		if (index(symbol, import_family[i]) == 1)
			import_ok[symbol] = 1
	if (symbol in import_ok)
		return
	n = split(import_for[symbol], w, " ")
	for (i = 1; i <= n; i++)
		if (fits(w[i], name, file))
			return
	complain(place ": " name "() uses " symbol ", which is neither of the library nor in " IMPORTS \
		(path_text == "" ? "" : "; reached by " path_text),
		"if it is async-signal-safe add it there; if only this function may use it where it cannot be reached by a " \
		"handler: \"import " symbol " " name " # why\" in " ALLOW)
}

# Which line of the allow file bounds this edge; 0: none.
function is_again(from, from_file, to, to_file,    i) {
	for (i = 1; i <= agains; i++)
		if (fits(again_from[i], from, from_file) && fits(again_to[i], to, to_file)) {
			line_used[again_line[i]] = 1
			return i
		}
	return 0
}

# One step from a site's innermost function into `to`; returns the stack that it needs, -1: not taken.
function step(id, to, state, name, file, place, declared, bound,    i, to_name, to_unit) {
	to_name = base(fname[to])
	to_unit = object_unit[fobject[to]]
	if (is_never(state, name, file, to_name, to_unit))
		return -1
	if (fobject[to] != fobject[id] && !object_marked[fobject[to]] && !declared) {
		for (i = 1; i <= edges; i++)
			if (fits(edge_from[i], name, file) && fits(edge_to[i], to_name, to_unit))
				break
		if (i > edges)
			complain(place ": " name "() calls " to_name "() of " to_unit ", a unit that is not marked as reached by handlers" \
				(path_text == "" ? "" : "; reached by " path_text),
				"move it to a unit of CONTD_AS_SOURCES, or add to " ALLOW ": \"edge " name " " to_name " # why\"")
		else
			line_used[edge_line[i]] = 1
	}
	# bound: the edge that is bounded was inlined above this one.
	i = is_again(name, file, to_name, to_unit)
	if (!i)
		i = bound
	if (i) {
		if (!((i, to, state) in again_seen)) {
			again_seen[i, to, state] = 1
			again_queue[++again_waiting] = i SUBSEP to SUBSEP state
		}
		edge_note(id, to, "again")
		return -1
	}
	edge_note(id, to, declared ? "pointer" : "call")
	return walk(to, state)
}

# The program's own code, a callback: it may call some of the roots in its turn.
function walk_program(state,    r, d, most, key) {
	key = PROGRAM SUBSEP state
	if (key in deepest)
		return deepest[key]
	deepest[key] = 0
	most = 0
	for (r = 1; r <= roots; r++)
		if (root_callback[r] && root_id[r] > 0) {
			edge_note(PROGRAM, root_id[r], "pointer")
			d = walk(root_id[r], state)
			if (d > most) {
				most = d
				deepest_next[key] = root_id[r] SUBSEP state
			}
		}
	return deepest[key] = most
}

# How much stack the function needs with all below it. state: which of the `below` functions are above it.
function walk(id, state,    key, i, n, k, m, w, fr, st, at, name, file, line, place, what, to, d, most, own, blocked, bound,
		p, pn, pw, q, qn, qw, via, cold, saved_path) {
	key = id SUBSEP state
	if (walking[key]) {
		cycle_report(id, state)
		return 0
	}
	if (key in deepest)
		return deepest[key]
	walking[key] = 1
	stack_top++
	stack_id[stack_top] = id
	saved_path = path_text
	path_text = path_text (path_text == "" ? "" : " -> ") show(id)
	reached[id] = 1
	own = frame_of(id)
	if (own < 0) {
		if (stack_seen[fobject[id]])
			complain(object_unit[fobject[id]] ": " fname[id] "() has no stack usage recorded",
				"assembler functions cannot be reckoned: write it in C, or keep it off the handler's path")
		own = 0
	}
	if ((fobject[id], base(fname[id])) in stack_dynamic)
		complain(object_unit[fobject[id]] ": " fname[id] "() has a stack frame without a bound (alloca, variable array)")
	most = 0
	for (i = 1; i <= sites[id]; i++) {
		at = fobject[id] SUBSEP fsection[id] SUBSEP site_at[id, i]
		name = base(fname[id])
		file = object_unit[fobject[id]]
		line = ""
		st = below_bits(state, name, file)
		blocked = bound = 0
		if (at in chain) {
			n = split(chain[at], w, ">")
			for (k = 1; k <= n; k++) {
				split(w[k], fr, "|")
				if (k > 1 && is_never(st, name, file, fr[1], fr[2]))
					blocked = 1
				if (k > 1 && !bound)
					bound = is_again(name, file, fr[1], fr[2])
				name = fr[1]
				file = fr[2]
				line = fr[3]
				st = below_bits(st, name, file)
			}
		}
		place = line == "" || line == "?" ? object_unit[fobject[id]] : shorter(file) ":" line
		if (site_indirect[id, i])
			explained[fobject[id], id, file ":" line] = 1
		if (blocked)
			continue
		if (site_indirect[id, i]) {
			pn = split(pointers_of(name, file, line, place), pw, " ")
			for (p = 1; p <= pn; p++) {
				if (!(pw[p] in pointer)) {
					complain(place ": nothing says what may be behind " pw[p],
						"add to " ALLOW ": \"pointer " pw[p] " FUNCTION... # why\", or *outside, or *program")
					continue
				}
				pointer_sites[pw[p]] = pointer_sites[pw[p]] " " show(id)
				pointer_reached[pw[p]] = 1
				qn = split(behind[pw[p]], qw, " ")
				for (q = 1; q <= qn; q++) {
					if (qw[q] == "*outside" || qw[q] == "*part")
						continue
					if (qw[q] == "*program") {
						edge_note(id, PROGRAM, "pointer")
						d = walk_program(st)
						to = PROGRAM
					} else {
						to = named(qw[q])
						if (to <= 0)
							continue # said at the beginning
						d = step(id, to, st, name, file, place, 1, bound)
						if (d < 0)
							continue
					}
					if (site_kind[id, i] == "c")
						d += own
					if (d > most) {
						most = d
						deepest_next[key] = to SUBSEP st
					}
				}
			}
			continue
		}
		what = site_what[id, i]
		to = find(fobject[id], what)
		if (site_kind[id, i] == "t" || site_kind[id, i] == "d") {
			# Functions whose address is taken are dealt with in taken_check.
			if (site_kind[id, i] == "d" && !to && !((fobject[id], what) in defined) && !(what in defined))
				import_reached(what, id, name, file, place)
			continue
		}
		if (!to) {
			if (!((fobject[id], what) in defined) && !(what in defined)) {
				import_reached(what, id, name, file, place)
				d = IMPORT_STACK + (site_kind[id, i] == "c" ? own : 0)
				if (d > most) {
					most = d
					delete deepest_next[key]
					deepest_import[key] = what
				}
			}
			continue
		}
		if (to == id && site_kind[id, i] == "j")
			continue
		# A part of the same function that was put elsewhere.
		cold = fname[to] ~ /\.cold(\.|$)/ || (fname[id] ~ /\.cold(\.|$)/ && base(fname[id]) == fname[to])
		if (cold && base(fname[to]) == base(fname[id]) && site_kind[id, i] == "j") {
			if (fname[id] ~ /\.cold(\.|$)/)
				continue # and back
			edge_note(id, to, "call")
			d = own + walk(to, state)
		} else {
			d = step(id, to, st, name, file, place, 0, bound)
			if (d < 0)
				continue
			if (site_kind[id, i] == "c")
				d += own
		}
		if (d > most) {
			most = d
			deepest_next[key] = to SUBSEP st
			delete deepest_import[key]
		}
	}
	if (own > most)
		most = own
	walking[key] = 0
	stack_top--
	path_text = saved_path
	if (most > function_deepest[id])
		function_deepest[id] = most
	return deepest[key] = most
}

function cycle_report(id, state,    i, text, from) {
	text = show(id)
	for (i = stack_top; i >= 1; i--) {
		text = show(stack_id[i]) " -> " text
		if (stack_id[i] == id)
			break
	}
	from = stack_id[stack_top]
	complain("recursion: " text, "if something bounds it add to " ALLOW ": \"again " base(fname[from]) " " base(fname[id]) \
		" TIMES # what bounds it\" for one of its edges, or \"never ... # why\" for one that is not taken here")
}

# ------------------------------------------------------------------------------------------------------ address taken

# A function with its address taken might be called through a pointer: each must be behind a declared one, or be given
# to code that no handler reaches.
function taken_check(    id, i, what, to, k, n, w, p, ok) {
	for (id = 1; id <= functions; id++)
		for (i = 1; i <= sites[id]; i++)
			if (site_kind[id, i] == "t" || site_kind[id, i] == "d") {
				to = find(fobject[id], site_what[id, i])
				if (!to)
					continue
				if (site_what[id, i] ~ /^@/) {
					split(site_what[id, i], w, ":")
					if (fstart[to] != w[2] + 0)
						continue
				}
				is_taken[to] = is_taken[to] == "" ? show(id) "()" : is_taken[to]
			}
	for (i = 1; i <= data_takes; i++) {
		to = find(data_take_object[i], data_take[i])
		if (!to)
			continue
		if (data_take[i] ~ /^@/) {
			split(data_take[i], w, ":")
			if (fstart[to] != w[2] + 0)
				continue
		}
		is_taken[to] = is_taken[to] == "" ? "a table in " object_unit[data_take_object[i]] : is_taken[to]
	}
	for (p in behind) {
		n = split(behind[p], w, " ")
		for (k = 1; k <= n; k++)
			if (w[k] !~ /^\*/) {
				to = named(w[k])
				if (to > 0)
					is_declared[to] = 1
				else if (to < 0)
					complain(ALLOW ": pointer " p ": several functions are called " w[k], "write FILE.c:" w[k])
				else
					complain(ALLOW ": pointer " p ": the library has no function " w[k] "()",
						"remove it, or name the one that took its place")
			}
	}
	for (id = 1; id <= functions; id++) {
		if (is_taken[id] == "" || is_declared[id])
			continue
		ok = 0
		for (k = 1; k <= takens && !ok; k++)
			ok = fits(taken_name[k], base(fname[id]), object_unit[fobject[id]]) ||
			     (taken_name[k] ~ /:\*$/ && fits(substr(taken_name[k], 1, length(taken_name[k]) - 1) base(fname[id]),
				base(fname[id]), object_unit[fobject[id]]))
		if (!ok)
			complain(object_unit[fobject[id]] ": the address of " base(fname[id]) "() is taken (in " is_taken[id] \
				"), and nothing says where it may be called",
				"add to " ALLOW ": \"pointer POINTER " base(fname[id]) " # why\" where handlers may call it, else \"taken " \
				base(fname[id]) " # who calls it\"")
	}
}

# The indirect calls that the compiler has recorded must be among those found in the code.
function compiled_check(    i, o, id, place, w, n, file, line, text, k, ok) {
	for (i = 1; i <= compiled; i++) {
		o = compiled_object[i]
		id = (o, compiled_name[i]) in local_function ? local_function[o, compiled_name[i]] : \
			(compiled_name[i] in global_function ? global_function[compiled_name[i]] : 0)
		place = compiled_place[i]
		if (!id || !reached[id] || (o, id, place) in explained)
			continue
		line = place
		sub(/^.*:/, "", line)
		file = place
		sub(/:[^:]*$/, "", file)
		text = source_line(file, line)
		ok = 0
		for (k in pointer)
			if (line_calls(text, k))
				ok = 1
		if (!ok)
			complain(shorter(place) ": the compiler has made an indirect call in " compiled_name[i] "() that no pointer in " \
				ALLOW " explains", "it reads: " text)
	}
}

# ----------------------------------------------------------------------------------------------------------- the end

function path_of(id, state,    key, text, n, to) {
	text = ""
	for (n = 0; n < 100; n++) {
		key = id SUBSEP state
		text = text (text == "" ? "" : " -> ") show(id) (id == PROGRAM ? "" : " " (frame_of(id) < 0 ? 0 : frame_of(id)))
		if (key in deepest_next) {
			split(deepest_next[key], to, SUBSEP)
			id = to[1] + 0
			state = to[2]
		} else {
			if (key in deepest_import)
				text = text " -> " deepest_import[key] " " IMPORT_STACK
			return text
		}
	}
	return text
}

# Follows the `again` edges that were found; returns the stack that they may need besides.
function drain_again(    extra, w, i, d, last) {
	while (again_done < again_waiting) {
		split(again_queue[++again_done], w, SUBSEP)
		i = w[1] + 0
		path_text = "(again) " again_from[i]
		d = walk(w[2] + 0, w[3])
		path_text = ""
		if (d > again_deepest[i])
			again_deepest[i] = d
	}
	extra = 0
	for (i = 1; i <= agains; i++)
		extra += again_times[i] * again_deepest[i]
	return extra
}

function sorted_ids(    n, id, i, j, t) {
	n = 0
	for (id = 1; id <= functions; id++)
		if (reached[id])
			order[++n] = id
	for (i = 2; i <= n; i++) {
		t = order[i]
		for (j = i - 1; j >= 1 && (depth[order[j]] > depth[t] ||
		     (depth[order[j]] == depth[t] && show(order[j]) > show(t))); j--)
			order[j + 1] = order[j]
		order[j + 1] = t
	}
	return n
}

function inlined_collect(    key, part_of, id, n, w, k, fr, what) {
	for (key in chain) {
		if (!(key in function_of))
			continue
		id = function_of[key]
		if (!reached[id])
			continue
		n = split(chain[key], w, ">")
		for (k = 2; k <= n; k++) {
			split(w[k], fr, "|")
			what = fr[1] " (" shorter(fr[2]) ")"
			if (!((id, what) in inlined_seen)) {
				inlined_seen[id, what] = 1
				inlined_list[id, ++inlined[id]] = what
				inlined_any[what] = 1
			}
		}
	}
}

function inlined_text(id,    i, j, t, text) {
	for (i = 2; i <= inlined[id]; i++) {
		t = inlined_list[id, i]
		for (j = i - 1; j >= 1 && inlined_list[id, j] > t; j--)
			inlined_list[id, j + 1] = inlined_list[id, j]
		inlined_list[id, j + 1] = t
	}
	text = ""
	for (i = 1; i <= inlined[id]; i++)
		text = text (i > 1 ? ", " : "") inlined_list[id, i]
	return text == "" ? "-" : text
}

function sort_keys(list,    n, i, j, t, key) {
	n = 0
	for (key in list)
		sorted[++n] = key
	for (i = 2; i <= n; i++) {
		t = sorted[i]
		for (j = i - 1; j >= 1 && sorted[j] > t; j--)
			sorted[j + 1] = sorted[j]
		sorted[j + 1] = t
	}
	return n
}

function depths(    i, changed, w) {
	for (i = 1; i <= roots; i++)
		if (root_id[i] > 0)
			depth[root_id[i]] = 0
	do {
		changed = 0
		for (i = 1; i <= edge_count; i++) {
			split(edge_list[i], w, SUBSEP)
			if (w[1] in depth && (!(w[2] in depth) || depth[w[2]] > depth[w[1]] + 1)) {
				depth[w[2]] = depth[w[1]] + 1
				changed = 1
			}
		}
	} while (changed)
}

function report(out,    n, i, k, id, key, w) {
	print "# " ENVIRON["CG_TITLE"] > out
	print "# function | unit | calls from a root | bytes of its frame | bytes with all below it | called by | inlined (file)" > out
	n = sorted_ids()
	for (i = 1; i <= n; i++) {
		id = order[i]
		print show(id) " | " object_unit[fobject[id]] (object_marked[fobject[id]] ? "" : " (unmarked)") " | " depth[id] " | " \
			(frame_of(id) < 0 ? "?" : frame_of(id)) " | " function_deepest[id] " | " \
			(callers[id] == "" ? "(root)" : callers[id]) " | " inlined_text(id) > out
	}
	print "" > out
	print "# imports reached: symbol | used by" > out
	k = sort_keys(import_seen)
	imports_count = k
	for (i = 1; i <= k; i++)
		print sorted[i] " |" import_callers[sorted[i]] > out
	print "" > out
	print "# pointers reached: pointer | called in | behind it" > out
	k = sort_keys(pointer_reached)
	for (i = 1; i <= k; i++)
		print sorted[i] " |" unique(pointer_sites[sorted[i]]) " |" behind[sorted[i]] \
			(sorted[i] in outside_why ? "   not followed: " outside_why[sorted[i]] : "") > out
	print "" > out
	print "# functions that were inlined somewhere above" > out
	k = sort_keys(inlined_any)
	inlined_kinds = k
	for (i = 1; i <= k; i++)
		print sorted[i] > out
	print "" > out
	print "# lines of the allow files that nothing in this build needed" > out
	for (i = 1; i <= nevers; i++)
		if (!line_used[never_line[i]])
			print line_text[never_line[i]] > out
	for (i = 1; i <= edges; i++)
		if (!line_used[edge_line[i]])
			print line_text[edge_line[i]] > out
	for (i = 1; i <= agains; i++)
		if (!line_used[again_line[i]])
			print line_text[again_line[i]] > out
	for (i = 1; i <= callss; i++)
		if (!line_used[calls_line[i]])
			print line_text[calls_line[i]] > out
	print "" > out
	print "# stack" > out
	for (i = 1; i <= roots; i++)
		if (root_id[i] > 0)
			print root_name[i] (root_handler[i] ? " (handler)" : "") ": " root_deepest[i] " bytes: " path_of(root_id[i], "") > out
	for (i = 1; i <= agains; i++)
		if (again_deepest[i])
			print "again " again_from[i] " -> " again_to[i] ": " again_times[i] " times " again_deepest[i] " bytes, in handlers " \
				again_handler[i] + 0 " (" \
				again_why[i] ")" > out
	print "" > out
	summary = n " functions reached from " roots " roots, " imports_count " imports, " inlined_kinds " inlined functions; stack " \
		handler_deepest " of " LIMIT " bytes" (handler_extra ? " (" handler_extra " of them for bounded recursion)" : "")
	print "# summary: " summary > out
	close(out)
}

function unique(list,    n, w, i, seen, text) {
	n = split(list, w, " ")
	text = ""
	for (i = 1; i <= n; i++)
		if (!(w[i] in seen)) {
			seen[w[i]] = 1
			text = text " " w[i]
		}
	return text
}

function dot(out,    id, i, w, s) {
	print "digraph handler {\n\trankdir=LR;\n\tnode [shape=box, fontname=monospace, fontsize=10];" > out
	for (id = 1; id <= functions; id++)
		if (reached[id])
			print "\t\"" show(id) "\" [label=\"" show(id) "\\n" object_unit[fobject[id]] "\\n" frame_of(id) " / " \
				function_deepest[id] "\"" (object_marked[fobject[id]] ? "" : ", style=filled, fillcolor=lightyellow") "];" > out
	print "\t\"(program)\" [style=dashed];" > out
	for (i = 1; i <= edge_count; i++) {
		split(edge_list[i], w, SUBSEP)
		s = edge_seen[w[1], w[2]]
		print "\t\"" show(w[1] + 0) "\" -> \"" show(w[2] + 0) "\"" \
			(s == "pointer" ? " [style=dashed]" : s == "again" ? " [color=red]" : "") ";" > out
	}
	for (i in import_by) {
		split(i, w, SUBSEP)
		print "\t\"" w[1] "\" [shape=ellipse];\n\t\"" show(w[2] + 0) "\" -> \"" w[1] "\";" > out
	}
	print "}" > out
	close(out)
}

END {
	for (id = 1; id <= functions; id++)
		if (base(fname[id]) == fname[id])
			base_count[fname[id]]++
	if (!functions)
		complain("no functions in these objects")
	for (r = 1; r <= roots; r++) {
		root_id[r] = named(root_name[r])
		if (root_id[r] < 0)
			complain(line_text[root_line[r]] ": several functions are called so", "write FILE.c:" root_name[r])
		else if (!root_id[r])
			complain(line_text[root_line[r]] ": the library has no such function", "remove it, or name the one that took its place")
		else if (!debug_lines[fobject[root_id[r]]])
			complain(object_unit[fobject[root_id[r]]] ": no debugging information", "compile with -g")
		else if (!stack_seen[fobject[root_id[r]]])
			complain(object_unit[fobject[root_id[r]]] ": no record of stack usage", "compile with -fstack-usage")
	}
	handlers = 0
	for (r = 1; r <= roots; r++)
		handlers += root_handler[r]
	if (!handlers)
		complain(ALLOW ": no root is a handler", "\"root FUNCTION handler # why\"")
	taken_check()
	handler_deepest = 0
	# Handlers first, so that the recursion that is added to them is what they can reach.
	for (pass = 1; pass <= 2; pass++) {
		for (r = 1; r <= roots; r++) {
			if (root_id[r] <= 0 || (pass == 1) != (root_handler[r] == 1))
				continue
			path_text = ""
			root_deepest[r] = walk(root_id[r], "")
			if (pass == 1 && root_deepest[r] > handler_deepest)
				handler_deepest = root_deepest[r]
		}
		extra = drain_again()
		if (pass == 1) {
			handler_extra = extra
			handler_deepest += extra
			for (i = 1; i <= agains; i++)
				again_handler[i] = again_deepest[i]
		}
	}
	compiled_check()
	if (handler_deepest > LIMIT)
		complain("the handler's path needs " handler_deepest " bytes of stack, more than the " LIMIT " that are reckoned (STACK_HANDLER)",
			"the deepest paths are at the end of the report" (ENVIRON["CG_REPORT"] == "" ? "" : ", " ENVIRON["CG_REPORT"]))
	depths()
	inlined_collect()
	report(ENVIRON["CG_REPORT"] == "" ? "/dev/null" : ENVIRON["CG_REPORT"])
	if (ENVIRON["CG_DOT"] != "")
		dot(ENVIRON["CG_DOT"])
	for (i = 1; i <= errors; i++)
		print "check-call-graph: " error_text[i] > "/dev/stderr"
	if (errors) {
		print "check-call-graph: " errors " not allowed; a signal handler reaches this code" > "/dev/stderr"
		exit 1
	}
	if (ENVIRON["CG_QUIET"] == "")
		print "check-call-graph: " summary
}
