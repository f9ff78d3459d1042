/* SPDX-License-Identifier: BSD-3-Clause */
/* contd dump: what contd has in another process, or had in one that has left a core file. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "command/dump.h"
#include "command/json.h"
#include "command/process.h"
#include "command/status.h"
#include "dump/text.h"
#include "dump/walk.h"

static int usage(void)
{
	fputs("usage: contd dump [OPTION]... PID|COREFILE\n"
	      "\n"
	      "Tells what contd has in the process PID: continuations that are pending, ready or running, what they\n"
	      "wait for, and what each thread does. The process is only read: it may be stopped, or hang. It must be\n"
	      "of the same user, and have the same build of contd. Or the same of a core file.\n"
	      "\n"
	      "  --json     one JSON object on standard output\n"
	      "  --limit N  how many continuations of a group are shown, at most; 1000 if it is not given, 0: all\n"
	      "\n"
	      "Exit status: 0 if all could be read; 1 if not, and the last lines say what; 2 for wrong arguments; 125\n"
	      "if the process cannot be read, or contd is not in it.\n",
	      stdout);
	return output_end();
}

/* --------------------------------------------------------------------------------------------------------- JSON --- */

static void to_list(struct contd__dump_out *o, const char *key, const char *kind)
{
	(void)o, (void)kind;
	json_array(key);
}
static void to_object(struct contd__dump_out *o, const char *key)
{
	(void)o;
	json_object(key);
}
static void to_end(struct contd__dump_out *o)
{
	(void)o;
	json_end();
}
static void to_text(struct contd__dump_out *o, const char *key, const char *value)
{
	(void)o;
	json_text(key, value);
}
static void to_number(struct contd__dump_out *o, const char *key, uint64_t value)
{
	char text[24];

	(void)o;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	json_number(key, text);
}
static void to_thousandths(struct contd__dump_out *o, const char *key, uint64_t value)
{
	char text[32];

	(void)o;
	snprintf(text, sizeof(text), "%llu.%03u", (unsigned long long)(value / 1000), (unsigned)(value % 1000));
	json_number(key, text);
}
/* Numbers of JSON may be read as floating-point numbers, which have no 64 bits. */
static void to_address(struct contd__dump_out *o, const char *key, uint64_t value)
{
	char text[24];

	(void)o;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	json_text(key, text);
}
static void to_flag(struct contd__dump_out *o, const char *key, bool value)
{
	(void)o;
	json_bool(key, value);
}

/* --------------------------------------------------------------------------------------------------------- dump --- */

static struct contd__dump_walk walk;

/* Standard output may be a pipe that another program has made non-blocking. */
static bool wait_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, -1) > 0 || errno == EINTR;
}

static int walk_it(struct process *p, bool json, uint32_t limit)
{
	static struct contd__dump_text text;
	static struct contd__dump_out to_json = {.list = to_list,
						 .object = to_object,
						 .end = to_end,
						 .text = to_text,
						 .number = to_number,
						 .thousandths = to_thousandths,
						 .address = to_address,
						 .flag = to_flag,
						 .duration = to_number};
	unsigned objects;
	uintptr_t root = process_symbol(p, "contd__dump_root", &objects);
	const char *wrong;
	int rc;

	if (!root) {
		contd__say(
			"dump: %s",
			objects ? "contd is not in the process: no libcontd is mapped there, or one that is older than "
				  "this command"
				: "no program or library could be read in the process");
		return STATUS_FAILED;
	}
	walk.reader = &p->reader;
	walk.out = json ? &to_json : &text.out;
	walk.limit = limit;
	wrong = contd__dump_take(&walk, root);
	if (wrong) {
		contd__say("dump: %s", wrong);
		return STATUS_FAILED;
	}
	if (json) {
		json_object(NULL);
		contd__dump_walk(&walk);
		json_end();
		rc = output_end();
	} else {
		contd__dump_text_begin(&text, 1, false, wait_for);
		contd__dump_walk(&walk);
		rc = contd__dump_text_end(&text);
		if (rc)
			rc = output_failed(-rc);
	}
	return rc ? rc : walk.problems ? STATUS_INCOMPLETE : 0;
}

static bool number_of(const char *text, unsigned long most, unsigned long *to)
{
	char *end;

	errno = 0;
	*to = strtoul(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno && *to <= most;
}

int command_dump(int argc, char **argv)
{
	static const struct option known[] = {{"json", no_argument, NULL, 'j'},
					      {"limit", required_argument, NULL, 'l'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	unsigned long limit = DUMP_LIMIT, pid;
	struct process process;
	char why[WHY] = "";
	bool json = false;
	int option, rc;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		if (option == 'h')
			return usage();
		if (option == 'j') {
			json = true;
		} else if (option != 'l' || !number_of(optarg, UINT_MAX, &limit)) {
			contd__say("dump: %s is no option, or its value is wrong; see contd dump --help",
				   argv[optind - 1]);
			return STATUS_USAGE;
		}
	}
	if (argc != optind + 1) {
		contd__say("dump: one process must be named, by its number, or one core file; see contd dump --help");
		return STATUS_USAGE;
	}
	rc = number_of(argv[optind], INT_MAX, &pid) ? process_open(&process, (int)pid, why)
						    : core_open(&process, argv[optind], why);
	if (rc)
		contd__say("dump: %s", why);
	else
		rc = walk_it(&process, json, (uint32_t)limit);
	process_close(&process);
	return rc < 0 ? STATUS_FAILED : rc;
}
