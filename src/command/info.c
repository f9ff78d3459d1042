/* SPDX-License-Identifier: BSD-3-Clause */
/* contd info: what is installed, which backend each MPI gets, what works here, what an interruption costs, settings. */
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/variables.h"
#include "command/info.h"
#include "command/json.h"
#include "command/libraries.h"
#include "command/probe.h"
#include "command/program.h"
#include "command/status.h"

#define COLUMNS 100
#define PROVIDERS 64 /* so many are tried at most */

static struct options {
	bool json, init, measure;
	unsigned limit_ms;
} options = {.init = true, .measure = true, .limit_ms = 10000};

struct place {
	bool here;
	char path[PATH_MAX];
};

static struct mpi_found {
	struct place place;
	char object[NAME_MAX + 1]; /* that it needs */
	struct findings f;
} of_mpi[MPIS];

static struct place core_place, fabric_place;
static struct findings core, tick, bell, fabric, provider[PROVIDERS];
static const char *provider_name[PROVIDERS];
static size_t providers;

/* ----------------------------------------------------------------------------------------------------- problems --- */

/* Texts that say what is wrong or could not be found out, in the order in which they are shown. */
static struct {
	char *text[64];
	size_t count;
} problems;

__attribute__((format(printf, 1, 2))) static void problem(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (problems.count < 64 && vasprintf(&text, format, arguments) >= 0)
		problems.text[problems.count++] = text;
	va_end(arguments);
}

/* ---------------------------------------------------------------------------------------------------- variables --- */

/* One setting, of either kind. */
struct setting {
	const char *variable, *field, *key, *must, *standard, *value, *origin, *wrong;
};

/* The next one behind *atp, which begins with 0; false: there is none. */
static bool next_setting(size_t *atp, struct setting *s)
{
	const struct contd__variable *v;

	*s = (struct setting){.variable = NULL};
	while (*atp < core.count && strcmp(core.fact[*atp].key, "setting") != 0)
		++*atp;
	if (*atp < core.count) {
		s->variable = core.fact[(*atp)++].value;
		for (; *atp < core.count && strcmp(core.fact[*atp].key, "setting") != 0; ++*atp) {
			const char *key = core.fact[*atp].key, *value = core.fact[*atp].value;

			if (!strcmp(key, "field"))
				s->field = value;
			else if (!strcmp(key, "key"))
				s->key = value;
			else if (!strcmp(key, "must"))
				s->must = value;
			else if (!strcmp(key, "standard"))
				s->standard = value;
			else if (!strcmp(key, "value"))
				s->value = value;
			else if (!strcmp(key, "origin"))
				s->origin = value;
			else if (!strcmp(key, "wrong"))
				s->wrong = value;
		}
		return true;
	}
	v = contd__variable_at(*atp - core.count);
	if (v) {
		const char *value = getenv(v->name);
		static char wrong[256];

		++*atp;
		*s = (struct setting){v->name, NULL, NULL, v->must, v->standard, v->standard, "default", NULL};
		if (value && (*value || !v->empty)) {
			s->value = value;
			s->origin = "environment";
		}
		if (value && !contd__variable_good(v, value)) {
			snprintf(wrong, sizeof(wrong), "the variable %s must be %s", v->name, v->must);
			s->wrong = wrong;
		}
		return true;
	}
	return false;
}

/* Is it a variable CONTD_... that neither contd reads, nor its tests and tools? Then
 * *nearestp is the nearest one that it reads. */
static bool is_unknown(const char *entry, char name[128], const char **nearestp)
{
	size_t n = strcspn(entry, "="), at = 0, best = SIZE_MAX;
	struct setting s;

	if (strncmp(entry, "CONTD_", 6) != 0 || n >= 128 ||
	    !core.count) /* without libcontd its settings are not known */
		return false;
	memcpy(name, entry, n);
	name[n] = '\0';
	*nearestp = NULL;
	if (contd__variable_other(name))
		return false;
	while (next_setting(&at, &s)) {
		size_t d = contd__distance(name, s.variable);

		if (d < best) {
			best = d;
			*nearestp = s.variable;
		}
	}
	return best != 0;
}

/* ---------------------------------------------------------------------------------------------------- gathering --- */

static bool place_find(struct place *p, const char *part, const char *suffix)
{
	p->here = library_find(part, suffix, p->path);
	return p->here;
}

static void gather_core(void)
{
	size_t at = 0;
	struct setting s;

	if (!place_find(&core_place, "contd", "")) {
		problem("libcontd is not installed beside this command: no settings, no clock, no measures");
		return;
	}
	probe(&core, core_place.path, options.limit_ms, (const char *const[]){"core", NULL});
	if (*core.wrong)
		problem("libcontd: %s", core.wrong);
	else if (strcmp(found(&core, "version"), CONTD_VERSION_TEXT) != 0)
		problem("libcontd is version %s, and this command " CONTD_VERSION_TEXT, found(&core, "version"));
	while (next_setting(&at, &s))
		if (s.wrong)
			problem("%s=%s: %s", s.variable, s.value, s.wrong);
	if (found(&core, "refused"))
		problem("contd cannot begin with these settings: %s", found(&core, "refused"));
	if (*core.wrong || !options.measure)
		return;
	probe(&tick, core_place.path, options.limit_ms, (const char *const[]){"tick", NULL});
	if (*tick.wrong)
		problem("tick: %s", tick.wrong);
	probe(&bell, core_place.path, options.limit_ms, (const char *const[]){"ring", NULL});
	if (*bell.wrong)
		problem("ring: %s", bell.wrong);
}

static void gather_mpi(void)
{
	for (size_t i = 0; i < MPIS; i++) {
		struct mpi_found *m = &of_mpi[i];

		if (!place_find(&m->place, "contd-mpi", mpis[i].suffix))
			continue;
		library_mpi(m->place.path, m->object, sizeof(m->object));
		probe(&m->f, m->place.path, options.limit_ms,
		      (const char *const[]){"mpi", mpis[i].name, options.init ? "init" : NULL, NULL});
		if (*m->f.wrong)
			problem("%s: %s", mpis[i].says, m->f.wrong);
	}
}

static void gather_fabric(void)
{
	if (!place_find(&fabric_place, "contd-fabric", ""))
		return;
	probe(&fabric, fabric_place.path, options.limit_ms, (const char *const[]){"fabric", NULL});
	if (*fabric.wrong)
		problem("libfabric: %s", fabric.wrong);
	for (size_t i = 0; i < fabric.count && providers < PROVIDERS; i++) {
		const char *name = fabric.fact[i].value;

		if (strcmp(fabric.fact[i].key, "provider") != 0)
			continue;
		provider_name[providers] = name;
		probe(&provider[providers++], fabric_place.path, options.limit_ms,
		      (const char *const[]){"fabric", name, NULL});
	}
}

static void kernel_clock(char text[64])
{
	FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (!file || !fgets(text, 64, file))
		*text = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
}

static const char *why_not(const struct findings *f)
{
	return *f->wrong ? f->wrong : found(f, "why");
}

/* ---------------------------------------------------------------------------------------------------- the build --- */

static const struct part {
	const char *name, *says;
	bool built;
} parts[] = {
	{"openmpi", "Open MPI", CONTD_BUILT_MPI},
	{"mpich", "MPICH", CONTD_BUILT_MPICH},
	{"abi", "MPI's ABI", CONTD_BUILT_ABI},
	{"libfabric", "libfabric", CONTD_BUILT_FABRIC},
	{"fortran", "Fortran", CONTD_BUILT_FORTRAN},
	{"task", "executors", CONTD_BUILT_TASK},
	{"templates", "templates", CONTD_BUILT_TEMPLATES},
	{"doorbell", "doorbell libraries", CONTD_BUILT_DOORBELL},
	{"progress", "progress libraries", CONTD_BUILT_PROGRESS},
	{"cxx", "C++ headers", CONTD_BUILT_CXX},
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* --------------------------------------------------------------------------------------------------------- JSON --- */

static void json_error(const char *text)
{
	json_text("error", text && *text ? text : NULL);
}

/* A text of several lines. */
static void json_lines(const char *key, const char *text)
{
	char *copy = strdup(text ? text : ""), *rest, *line;

	json_array(key);
	for (line = copy ? strtok_r(copy, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
		json_text(NULL, line);
	json_end();
	free(copy);
}

static void json_mpi(size_t i)
{
	const struct mpi_found *m = &of_mpi[i];

	json_object(NULL);
	json_text("name", mpis[i].name);
	json_bool("installed", m->place.here);
	json_text("library", m->place.here ? m->place.path : NULL);
	json_text("needs", *m->object ? m->object : NULL);
	json_text("found", found(&m->f, "object"));
	json_text("version", found(&m->f, "version"));
	json_text("thread_level", found(&m->f, "level"));
	json_text("backend", found(&m->f, "backend"));
	json_lines("steps", found(&m->f, "steps"));
	json_error(m->f.wrong);
	json_lines("said", *m->f.wrong ? m->f.said : "");
	json_end();
}

static void json_fabric(void)
{
	json_object("libfabric");
	json_bool("installed", fabric_place.here);
	json_text("library", fabric_place.here ? fabric_place.path : NULL);
	json_text("version", found(&fabric, "version"));
	json_array("providers");
	for (size_t i = 0; i < providers; i++) {
		const struct findings *f = &provider[i];
		const char *descriptor = found(f, "descriptor");

		json_object(NULL);
		json_text("name", provider_name[i]);
		json_text("version", found(f, "version"));
		json_bool("works", found(f, "works") && !*f->wrong);
		json_text("domain", found(f, "domain"));
		json_array("endpoints");
		for (size_t k = 0; k < f->count; k++)
			if (!strcmp(f->fact[k].key, "endpoint"))
				json_text(NULL, f->fact[k].value);
		json_end();
		json_bool("descriptor", descriptor && *descriptor == '1');
		json_error(why_not(f));
		json_end();
	}
	json_end();
	json_error(fabric.wrong);
	json_end();
}

static void json_settings(void)
{
	extern char **environ;
	struct setting s;
	size_t at = 0;

	json_array("settings");
	while (next_setting(&at, &s)) {
		json_object(NULL);
		json_text("variable", s.variable);
		json_text("field", s.field);
		json_text("key", s.key);
		json_text("value", s.value);
		json_text("origin", s.origin);
		json_text("default", s.standard);
		json_text("must_be", s.must);
		json_error(s.wrong);
		json_end();
	}
	json_end();
	json_array("unknown_variables");
	for (char **entry = environ; *entry; entry++) {
		char name[128];
		const char *nearest;

		if (!is_unknown(*entry, name, &nearest))
			continue;
		json_object(NULL);
		json_text("variable", name);
		json_text("nearest", nearest);
		json_end();
	}
	json_end();
}

static void json(void)
{
	static const char *const tick_numbers[] = {"tick_ns", "tick_least_ns", "tick_most_ns", "samples", NULL};
	static const char *const bell_numbers[] = {"call_ns",     "call_least_ns",     "call_most_ns",
						   "reaction_ns", "reaction_least_ns", "reaction_most_ns",
						   "idle_ns",     "samples",           NULL};
	char kernel[64];

	kernel_clock(kernel);
	json_object(NULL);
	json_text("version", CONTD_VERSION_TEXT);
	json_object("library");
	json_text("path", core_place.here ? core_place.path : NULL);
	json_text("version", found(&core, "version"));
	json_error(core_place.here ? core.wrong : "libcontd is not installed beside this command");
	json_end();
	json_object("build");
	json_text("type", CONTD_BUILD_TYPE);
	json_text("compiler", CONTD_BUILD_COMPILER);
	json_text("processor", CONTD_BUILD_PROCESSOR);
	json_text("sanitizers", *CONTD_BUILD_SANITIZERS ? CONTD_BUILD_SANITIZERS : NULL);
	json_object("parts");
	for (size_t i = 0; i < PARTS; i++)
		json_bool(parts[i].name, parts[i].built);
	json_end();
	json_end();
	json_array("mpi");
	for (size_t i = 0; i < MPIS; i++)
		json_mpi(i);
	json_end();
	json_fabric();
	json_object("clock");
	json_text("source", found(&core, "clock"));
	json_number("frequency_hz", found(&core, "clock_hz"));
	json_number("read_ns", found(&core, "clock_read_ns"));
	json_text("kernel_source", *kernel ? kernel : NULL);
	json_end();
	json_object("tick");
	for (size_t i = 0; tick_numbers[i]; i++)
		json_number(!strncmp(tick_numbers[i], "tick_", 5)
				    ? (const char *const[]){"cost_ns", "least_ns", "most_ns"}[i]
				    : tick_numbers[i],
			    found(&tick, tick_numbers[i]));
	json_error(tick.wrong);
	json_end();
	json_object("ring");
	for (size_t i = 0; bell_numbers[i]; i++)
		json_number(bell_numbers[i], found(&bell, bell_numbers[i]));
	json_error(bell.wrong);
	json_end();
	json_settings();
	json_array("problems");
	for (size_t i = 0; i < problems.count; i++)
		json_text(NULL, problems.text[i]);
	json_end();
	json_end();
}

/* --------------------------------------------------------------------------------------------------- for people --- */

/* Words behind column `indent`, in as many lines as they need; the first line is there up to `column`. */
static void words(const char *text, size_t indent, size_t column)
{
	while (*text) {
		size_t n = strcspn(text, " \t\n");

		if (column > indent && column + 1 + n > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		}
		if (n) {
			column += n + (size_t)printf("%s", column > indent ? " " : "");
			for (size_t i = 0; i < n; i++)
				putchar((unsigned char)text[i] < ' ' ? '?' : text[i]);
		}
		text += n + (text[n] != '\0');
	}
	putchar('\n');
}

#define WIDTH 13 /* of the first column */

__attribute__((format(printf, 2, 3))) static void row(const char *name, const char *format, ...)
{
	va_list arguments;
	char *text;

	printf("%-*s", WIDTH, name);
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) >= 0) {
		words(text, WIDTH, WIDTH);
		free(text);
	}
	va_end(arguments);
}

static const char *last_part(const char *path)
{
	return path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static void rows(const char *name, const char *text)
{
	char *copy = strdup(text ? text : ""), *rest, *line;

	for (line = copy ? strtok_r(copy, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		row(name, "%s", line);
		name = "";
	}
	free(copy);
}

/* Of what an MPI printed, a few lines that have letters. */
static void said_rows(const char *said)
{
	char *copy = strdup(said), *rest, *line;
	int left = 6;

	for (line = copy ? strtok_r(copy, "\n", &rest) : NULL; line && left; line = strtok_r(NULL, "\n", &rest)) {
		if (!strpbrk(line, "abcdefghijklmnopqrstuvwxyz"))
			continue;
		row(left == 6 ? "  it said" : "", "%s", line);
		left--;
	}
	free(copy);
}

static void show_mpi(size_t i)
{
	const struct mpi_found *m = &of_mpi[i];
	const char *backend = found(&m->f, "backend"), *level = found(&m->f, "level");
	const char *version = found(&m->f, "version");
	const char *name = i == 2 ? "MPI's ABI" : mpis[i].says;

	if (!m->place.here) {
		row(name, "libcontd-mpi%s is not installed here", mpis[i].suffix);
		return;
	}
	if (backend)
		row(name, "%s backend, up to %s", backend, level ? level : "an unknown thread level");
	else if (*m->f.wrong)
		row(name, "no backend is known");
	else
		row(name, "its backend was not asked for (--no-mpi-init)");
	if (*m->f.wrong)
		row("  wrong", "%s", m->f.wrong);
	if (version)
		row("  version", "%.*s", (int)strcspn(version, "\n"), version);
	row("  libraries", "%s, %s", last_part(m->place.path),
	    found(&m->f, "object") ? found(&m->f, "object")
	    : *m->object           ? m->object
				   : "no MPI");
	rows("  because", found(&m->f, "steps"));
	if (*m->f.wrong)
		said_rows(m->f.said);
}

static void show_fabric(void)
{
	if (!fabric_place.here) {
		row("libfabric", "libcontd-fabric is not installed here");
		return;
	}
	if (*fabric.wrong)
		row("libfabric", "%s", fabric.wrong);
	else
		row("libfabric", "version %s, %s", found(&fabric, "version"), last_part(fabric_place.path));
	if (providers)
		printf("  %-19s %-6s %-11s %s\n", "provider", "works", "descriptor", "endpoints");
	for (size_t i = 0; i < providers; i++) {
		const struct findings *f = &provider[i];
		const char *why = why_not(f), *descriptor = found(f, "descriptor");
		int n = printf("  %-19s %-6s ", provider_name[i], why ? "no" : "yes");

		if (why) {
			words(why, 29, n > 29 ? 30 : 29);
			continue;
		}
		printf("%-11s", descriptor && *descriptor == '1' ? "yes" : "no");
		for (size_t k = 0; k < f->count; k++)
			if (!strcmp(f->fact[k].key, "endpoint"))
				printf(" %s", f->fact[k].value);
		putchar('\n');
	}
}

static double number(const struct findings *f, const char *key)
{
	const char *text = found(f, key);

	return text ? atof(text) : 0;
}

static const char *why_unmeasured(const struct findings *f)
{
	return *f->wrong ? f->wrong : options.measure ? "libcontd cannot be asked" : "--no-measures";
}

static void show_costs(void)
{
	char kernel[64];

	kernel_clock(kernel);
	if (found(&core, "clock_hz"))
		row("clock", "%s, %.2f GHz, %.0f ns a reading; the kernel's: %s", found(&core, "clock"),
		    number(&core, "clock_hz") / 1e9, number(&core, "clock_read_ns"), *kernel ? kernel : "unknown");
	else
		row("clock", "%s, not measured; the kernel's: %s",
		    found(&core, "clock") ? found(&core, "clock") : "unknown", *kernel ? kernel : "unknown");
	if (!found(&tick, "tick_ns"))
		row("tick", "not measured: %s", why_unmeasured(&tick));
	else
		row("tick", "%.2f us of an attached thread's time (%.2f to %.2f, %s measures)",
		    number(&tick, "tick_ns") / 1e3, number(&tick, "tick_least_ns") / 1e3,
		    number(&tick, "tick_most_ns") / 1e3, found(&tick, "samples"));
	if (!found(&bell, "call_ns"))
		row("ring", "not measured: %s", why_unmeasured(&bell));
	else
		row("ring",
		    "%.2f us for the sender, %.2f us until the continuation of the peer has run (%s rings); %.0f ns if "
		    "the peer does not wait",
		    number(&bell, "call_ns") / 1e3, number(&bell, "reaction_ns") / 1e3, found(&bell, "samples"),
		    number(&bell, "idle_ns"));
}

static void show_settings(void)
{
	extern char **environ;
	struct setting s;
	size_t at = 0;

	printf("%-24s %-14s %-12s %s\n", "setting", "value", "from", "default");
	while (next_setting(&at, &s)) {
		printf("%-24s %-14.40s %-12s %s\n", s.variable, s.value ? s.value : "-", s.wrong ? "WRONG" : s.origin,
		       s.standard ? s.standard : "-");
	}
	for (char **entry = environ; *entry; entry++) {
		char name[128];
		const char *nearest;

		if (!is_unknown(*entry, name, &nearest))
			continue;
		row("unknown", "the variable %s has no effect; the nearest one that is known is %s", name, nearest);
	}
}

static void show(void)
{
	char with[512] = "", without[512] = "";

	for (size_t i = 0; i < PARTS; i++) {
		char *list = parts[i].built ? with : without;
		size_t n = strlen(list);

		snprintf(list + n, 512 - n, "%s%s", n ? ", " : "", parts[i].says);
	}
	row("contd", "%s, %s", CONTD_VERSION_TEXT, core_place.here ? core_place.path : "without libcontd");
	row("  build", "%s, %s, %s%s%s", CONTD_BUILD_TYPE, CONTD_BUILD_COMPILER, CONTD_BUILD_PROCESSOR,
	    *CONTD_BUILD_SANITIZERS ? ", sanitizers: " : "", CONTD_BUILD_SANITIZERS);
	row("  with", "%s", *with ? with : "nothing but the core");
	if (*without)
		row("  without", "%s", without);
	putchar('\n');
	for (size_t i = 0; i < MPIS; i++)
		show_mpi(i);
	putchar('\n');
	show_fabric();
	putchar('\n');
	show_costs();
	putchar('\n');
	show_settings();
	if (problems.count)
		putchar('\n');
	for (size_t i = 0; i < problems.count; i++)
		row(i ? "" : "problems", "%s", problems.text[i]);
}

/* ------------------------------------------------------------------------------------------------------ options --- */

static int usage(void)
{
	fputs("usage: contd info [OPTION]...\n"
	      "\n"
	      "Tells what of contd is installed, which backend each MPI gets and why, which providers of libfabric\n"
	      "work, what an interruption costs on this machine, and each setting with its value and origin.\n"
	      "\n"
	      "  --json                one JSON object, for programs\n"
	      "  --no-mpi-init         do not call MPI_Init_thread: then no backend is known\n"
	      "  --no-measures         do not measure what a tick and a ring cost\n"
	      "  --time-limit SECONDS  how long one question may take, 0.1 to 600; without it 10\n"
	      "\n"
	      "Exit status: 0 if all could be found out and no setting is wrong, else 1; 2 for wrong arguments.\n",
	      stdout);
	return output_end();
}

static bool time_limit(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (!*text || *end || !(seconds >= 0.1 && seconds <= 600))
		return false;
	options.limit_ms = (unsigned)(seconds * 1000);
	return true;
}

int command_info(int argc, char **argv)
{
	enum { HELP = 256, JSON, NO_MPI_INIT, NO_MEASURES, TIME_LIMIT };
	static const struct option long_options[] = {{"help", no_argument, NULL, HELP},
						     {"json", no_argument, NULL, JSON},
						     {"no-mpi-init", no_argument, NULL, NO_MPI_INIT},
						     {"no-measures", no_argument, NULL, NO_MEASURES},
						     {"time-limit", required_argument, NULL, TIME_LIMIT},
						     {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1)
		switch (c) {
		case 'h':
		case HELP:
			return usage();
		case JSON:
			options.json = true;
			break;
		case NO_MPI_INIT:
			options.init = false;
			break;
		case NO_MEASURES:
			options.measure = false;
			break;
		case TIME_LIMIT:
			if (time_limit(optarg))
				break;
			contd__say("info: --time-limit %s: must be a number of seconds from 0.1 to 600", optarg);
			return STATUS_USAGE;
		case ':':
			contd__say("info: %s: its value is missing; see contd info --help", argv[optind - 1]);
			return STATUS_USAGE;
		default:
			contd__say("info: %s: there is no such option; see contd info --help", argv[optind - 1]);
			return STATUS_USAGE;
		}
	if (optind < argc) {
		contd__say("info: %s: it takes no arguments; see contd info --help", argv[optind]);
		return STATUS_USAGE;
	}
	gather_core();
	gather_mpi();
	gather_fabric();
	if (options.json)
		json();
	else
		show();
	if (output_end())
		return STATUS_FAILED;
	return problems.count ? STATUS_INCOMPLETE : 0;
}
