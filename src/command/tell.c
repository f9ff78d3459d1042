/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/status.h"
#include "command/tell.h"

static int facts = -1;
static const char *library;

void tell(const char *key, const char *format, ...)
{
	static char value[TOLD], line[2 * TOLD + 100];
	char *to = line + snprintf(line, 64, "%s=", key);
	va_list arguments;
	const char *at = line;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	for (const char *from = value; *from; from++) {
		if (*from == '\\' || *from == '\n')
			*to++ = '\\';
		*to++ = *from;
		if (*from == '\n')
			to[-1] = 'n';
	}
	*to++ = '\n';
	while (at < to) {
		ssize_t n = write(facts, at, (size_t)(to - at));

		if (n < 0)
			_exit(STATUS_FAILED);
		at += n;
	}
}

/* The library is not there: what the loader says of it. */
__attribute__((noreturn)) static void missing(const char *name)
{
	void *opened = dlopen(library, RTLD_LAZY);
	const char *why = opened ? NULL : dlerror();

	if (why)
		tell("error", "it cannot be loaded: %s", why);
	else
		tell("error", "%s has no %s: it is of another version than this command", library, name);
	_exit(STATUS_FAILED);
}

void *needed(const char *name, const char *version)
{
	void *address = version ? dlvsym(RTLD_DEFAULT, name, version) : dlsym(RTLD_DEFAULT, name);

	if (!address)
		missing(name);
	return address;
}

/* Processes that this one begins must not have the library preloaded. */
static void forget_preload(void)
{
	const char *all = getenv("LD_PRELOAD");
	size_t n = strlen(library);

	if (all && !strncmp(all, library, n) && all[n] == ':')
		setenv("LD_PRELOAD", all + n + 1, 1);
	else
		unsetenv("LD_PRELOAD");
}

void forget_settings(void)
{
	extern char **environ;

	for (char **at = environ; *at;) {
		char name[256];

		if (!strncmp(*at, "CONTD_", 6) && (size_t)snprintf(name, sizeof(name), "%s", *at) < sizeof(name)) {
			name[strcspn(name, "=")] = '\0';
			unsetenv(name); /* moves those behind it */
		} else {
			at++;
		}
	}
}

int tell_begin(int fd, const char *path)
{
	facts = fd;
	library = path;
	if (fcntl(facts, F_SETFD, FD_CLOEXEC))
		return -1;
	forget_preload();
	return 0;
}
