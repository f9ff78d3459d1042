/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the file of a program, or of a library. */
#ifndef CONTD_COMMAND_PROGRAM_H
#define CONTD_COMMAND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct program {
	char path[PATH_MAX];     /* found in PATH as execvp(3) finds it; of a script, the interpreter's */
	const char *unpreloaded; /* why nothing can be preloaded into it; NULL: it can */
	char *objects;           /* names of the shared objects that the loader would load, a line each; or NULL */
};

/*
 * Look at the program of that name. 0; ENOENT, EACCES and so on: it cannot be run. The loader is asked for the objects
 * with its option --list, which runs nothing of the program.
 */
int program_look(const char *name, struct program *p);
void program_end(struct program *p);

/* Is an object of that name among them? */
bool program_loads(const struct program *p, const char *object);

/* The MPI library among them; NULL if there is none. Valid until program_end(); not ended by a 0. */
const char *program_mpi(const struct program *p, size_t *lengthp);

/* The name of the MPI library that this library of contd's needs (DT_NEEDED). false: none, or it cannot be read. */
bool library_mpi(const char *path, char *name, size_t size);

#endif
