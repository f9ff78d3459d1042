/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the program uses MPI: by MPI_Init (the World Model, MPI 4.1, 11.2), or by sessions alone (11.3). Then there is no
 * MPI_COMM_WORLD and no MPI_COMM_SELF, and contd opens a session while it works.
 */
#ifndef CONTD_MPI_PROCESS_MODEL_H
#define CONTD_MPI_PROCESS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "base/say.h"
#include "base/warn.h"

struct contd__model {
	/* contd has opened a session. All else is as in the World Model before contd__model_begin. */
	bool sessions;
	MPI_Comm self;   /* MPI_COMM_SELF, or one whose errors go where contd__model_error says */
	MPI_Comm world;  /* errors go to its handler if their communicator is not known: MPI_COMM_WORLD, or `self` */
	int level;       /* of thread support, of the program's */
	int rank;        /* in MPI_COMM_WORLD, or among the processes of "mpi://WORLD" */
	const char *end; /* the call that ends MPI */
};

extern struct contd__model contd__model;

/* Goes up when the program begins a session and has no other: then this thread is the main thread. */
extern uint32_t contd__model_epoch;

/* Can MPI be called: between MPI_Init and MPI_Finalize, or while the program has a session? */
bool contd__model_is_open(void);

/* Between MPI_Init and MPI_Finalize. */
bool contd__model_has_world(void);

/* Lines on stderr have the rank from now on, if there is one. */
void contd__model_say_rank(void);

/* As contd__say(), in a thread that may call MPI: the line has the rank, also before contd's first call. */
#define contd__mpi_say(...) (contd__model_say_rank(), contd__say(__VA_ARGS__))

/* The same for contd__warn() and contd__warn_here(). */
#define contd__mpi_warn(...) (contd__model_say_rank(), contd__warn(__VA_ARGS__))
#define contd__mpi_warn_here(...) (contd__model_say_rank(), contd__warn_here(__VA_ARGS__))

/*
 * contd starts, MPI is open. NULL, or why that cannot be. If the program has a session, contd opens one, and the
 * process calls at_exit() at its end.
 */
const char *contd__model_begin(void (*at_exit)(void));

/* The level of thread support that contd works with, if it has begun; or would, or -1 where MPI is not open. */
int contd__model_level(bool begun);

/* contd has ended: its session ends, if it has one. */
void contd__model_end(void);

/* contd's session ends for a while, and begins again: false if MPI gives none. */
void contd__model_rest(void);
bool contd__model_wake(void);

/* The program has no session, nor is any thread in MPI_Session_finalize. */
bool contd__model_is_left(void);

/* Is this MPI's main thread? With a session of contd's, the thread that began the program's first session. */
bool contd__model_main_thread(void);

/* The processes of the job: to be freed. False: MPI does not give them. */
bool contd__model_group(MPI_Group *group);

/* An error without an object: to the handler of MPI_COMM_SELF, or of the program's first session. Returns the class. */
int contd__model_error(int class);

/* Does that handler end the program? Then contd_error_text() is of no use. */
bool contd__model_is_fatal(void);

/* The program's sessions: what wrappers.c does in MPI_Session_init and MPI_Session_finalize. */
#ifdef MPI_SESSION_NULL
void contd__session_begun(MPI_Session handle);

/* MPI_Session_finalize begins. *lastp: the program has no other session. False: contd has not seen this one begin. */
bool contd__session_leaves(MPI_Session handle, bool *lastp);

/* After that: from now on no thread uses the handle, and MPI ends the session. Its error code. */
int contd__session_end(MPI_Session *session);

/* The program has neither session nor World Model, and this thread calls no error handler of one: contd's may end. */
bool contd__session_may_rest(void);
#endif

#endif
