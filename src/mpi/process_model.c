/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/rest.h"
#include "base/say.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"
#include "mpi/intercept.h"
#include "mpi/process_model.h"

#define WORLD \
	{ \
		.self = MPI_COMM_SELF, .world = MPI_COMM_WORLD, .end = "MPI_Finalize" \
	}

struct contd__model contd__model = WORLD;
uint32_t contd__model_epoch;

bool contd__model_has_world(void)
{
	int initialized = 0, finalized = 0;

	PMPI_Initialized(&initialized);
	PMPI_Finalized(&finalized);
	return initialized && !finalized;
}

static int world_level(void)
{
	int level = MPI_THREAD_SINGLE;

	PMPI_Query_thread(&level);
	return level;
}

static bool says_rank;

void contd__model_say_rank(void)
{
	int rank;

	if (contd__load(&says_rank) || contd__load(&contd__live.forked) || !contd__model_has_world() ||
	    PMPI_Comm_rank(MPI_COMM_WORLD, &rank))
		return;
	contd__say_rank(rank);
	contd__store(&says_rank, true);
}

static void world_begin(void)
{
	contd__model.level = world_level();
	PMPI_Comm_rank(MPI_COMM_WORLD, &contd__model.rank);
	contd__model_say_rank();
}

static bool world_main_thread(void)
{
	int main_thread = 0;

	PMPI_Is_thread_main(&main_thread);
	return main_thread;
}

static bool world_group(MPI_Group *group)
{
	return PMPI_Comm_group(MPI_COMM_WORLD, group) == MPI_SUCCESS;
}

static int world_error(int class)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, class);
	return class;
}

static bool ends_program(MPI_Errhandler handler)
{
	bool ends = handler == MPI_ERRORS_ARE_FATAL;

#ifdef MPI_ERRORS_ABORT
	ends = ends || handler == MPI_ERRORS_ABORT;
#endif
	PMPI_Errhandler_free(&handler);
	return ends;
}

static bool world_is_fatal(void)
{
	MPI_Errhandler handler;

	return PMPI_Comm_get_errhandler(MPI_COMM_SELF, &handler) == MPI_SUCCESS && ends_program(handler);
}

#ifndef MPI_SESSION_NULL

bool contd__model_is_open(void)
{
	return contd__model_has_world();
}

const char *contd__model_begin(void (*at_exit)(void))
{
	(void)at_exit; /* only sessions may still be there then */
	world_begin();
	return NULL;
}

void contd__model_end(void)
{
}

void contd__model_rest(void)
{
}

bool contd__model_wake(void)
{
	return false; /* not called: contd never rests without sessions */
}

bool contd__model_is_left(void)
{
	return false;
}

bool contd__model_main_thread(void)
{
	return world_main_thread();
}

bool contd__model_group(MPI_Group *group)
{
	return world_group(group);
}

int contd__model_error(int class)
{
	return world_error(class);
}

bool contd__model_is_fatal(void)
{
	return world_is_fatal();
}

int contd__model_level(bool begun)
{
	(void)begun;
	return contd__model_has_world() ? world_level() : -1;
}

#else

/* --------------------------------------------------------------------------------------- the program's sessions --- */

struct session {
	MPI_Session handle;
	struct session *next;
	uint32_t users; /* threads that call its error handler */
};

static struct {
	pthread_mutex_t lock; /* MPI is not called under it, but for what only reads */
	struct session *first, **last;
	unsigned count;      /* of those that contd has seen begin */
	unsigned unrecorded; /* those of them that there was no memory for */
	unsigned leaving;    /* MPI_Session_finalize has begun for so many of them */
} sessions = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &sessions.first};

static __thread uint32_t began __attribute__((tls_model("initial-exec"))); /* the first of them, in this epoch */
static __thread bool telling __attribute__((tls_model("initial-exec")));   /* it calls the error handler of one */

void contd__session_begun(MPI_Session handle)
{
	struct session *s = malloc(sizeof(*s));

	pthread_mutex_lock(&sessions.lock);
	if (sessions.count++ == 0) {
		began = contd__load(&contd__model_epoch) + 1;
		contd__store(&contd__model_epoch, began);
	}
	if (s) {
		*s = (struct session){.handle = handle};
		*sessions.last = s;
		sessions.last = &s->next;
	} else {
		sessions.unrecorded++;
	}
	pthread_mutex_unlock(&sessions.lock);
}

bool contd__session_leaves(MPI_Session handle, bool *lastp)
{
	const struct session *s;
	bool known;

	pthread_mutex_lock(&sessions.lock);
	for (s = sessions.first; s && s->handle != handle; s = s->next)
		;
	known = s || sessions.unrecorded;
	sessions.leaving += known;
	*lastp = sessions.leaving == sessions.count;
	pthread_mutex_unlock(&sessions.lock);
	return known;
}

/* From now on no thread uses the handle. NULL: there is no record. */
static struct session *session_take(MPI_Session handle)
{
	struct session **at = &sessions.first, *s;

	pthread_mutex_lock(&sessions.lock);
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	s = *at;
	if (s) {
		*at = s->next;
		if (!*at)
			sessions.last = at;
	}
	pthread_mutex_unlock(&sessions.lock);
	/* An error handler may end its own session. */
	while (s && !telling && contd__load_seq(&s->users))
		contd__rest();
	return s;
}

/* It is over: MPI has ended the session, or refused to. */
static void session_left(struct session *s, bool gone)
{
	pthread_mutex_lock(&sessions.lock);
	sessions.leaving--;
	sessions.count -= gone;
	if (!s && gone)
		sessions.unrecorded--;
	if (s && !gone) {
		s->next = NULL;
		*sessions.last = s;
		sessions.last = &s->next;
	}
	pthread_mutex_unlock(&sessions.lock);
	if (gone && !telling) /* else session_error still uses it; and keeps these few bytes */
		free(s);
}

static bool session_any(void)
{
	bool any;

	pthread_mutex_lock(&sessions.lock);
	any = sessions.count != 0;
	pthread_mutex_unlock(&sessions.lock);
	return any;
}

bool contd__model_is_left(void)
{
	return !session_any();
}

int contd__session_end(MPI_Session *session)
{
	MPI_Session handle = *session;
	struct session *s = session_take(handle);
	int rc = contd__next_pmpi.Session_finalize(session);

	session_left(s, rc == MPI_SUCCESS || *session != handle);
	return rc;
}

bool contd__session_may_rest(void)
{
	return !session_any() && !telling && contd__model.sessions && !contd__model_has_world();
}

/* ---------------------------------------------------------------------------------------------- contd's own one --- */

static MPI_Session own = MPI_SESSION_NULL;

static int session_error(int class)
{
	bool before = telling;
	struct session *s;

	pthread_mutex_lock(&sessions.lock);
	s = sessions.first;
	if (s)
		contd__add(&s->users, 1);
	pthread_mutex_unlock(&sessions.lock);
	if (!s)
		return class;
	telling = true;
	PMPI_Session_call_errhandler(s->handle, class);
	telling = before;
	contd__sub(&s->users, 1);
	return class;
}

static bool session_is_fatal(void)
{
	MPI_Errhandler handler;
	struct session *s;
	bool fatal = false;

	pthread_mutex_lock(&sessions.lock);
	s = sessions.first;
	if (s)
		contd__add(&s->users, 1);
	pthread_mutex_unlock(&sessions.lock);
	if (s) {
		fatal = PMPI_Session_get_errhandler(s->handle, &handler) == MPI_SUCCESS && ends_program(handler);
		contd__sub(&s->users, 1);
	}
	return fatal;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	session_error(*code);
}

/* The lowest level of the program's sessions, because contd cannot tell which of them an operation is of. */
static const char *const level_names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
					  "MPI_THREAD_MULTIPLE"};
static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};

static int level_of(MPI_Session session)
{
	char value[32] = "";
	MPI_Info info;
	int flag = 0;

	if (PMPI_Session_get_info(session, &info) != MPI_SUCCESS)
		return 0;
	PMPI_Info_get(info, "thread_level", sizeof(value) - 1, value, &flag);
	PMPI_Info_free(&info);
	for (int i = 3; flag && i > 0; i--)
		if (strcmp(value, level_names[i]) == 0)
			return i;
	return 0;
}

static int lowest_level(void)
{
	struct session *s;
	int lowest = 3;

	pthread_mutex_lock(&sessions.lock);
	for (s = sessions.first; s; s = s->next) {
		int level = level_of(s->handle);

		lowest = level < lowest ? level : lowest;
	}
	if (!sessions.first && !contd__model_has_world())
		lowest = 0;
	for (int i = 0; i < lowest && contd__model_has_world(); i++)
		if (world_level() == levels[i])
			lowest = i;
	pthread_mutex_unlock(&sessions.lock);
	return lowest;
}

static bool own_self(MPI_Comm *comm)
{
	MPI_Errhandler handler;
	MPI_Group group;
	bool made;

	if (PMPI_Group_from_session_pset(own, "mpi://SELF", &group) != MPI_SUCCESS)
		return false;
	made = PMPI_Comm_create_from_group(group, "contd", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm) == MPI_SUCCESS;
	PMPI_Group_free(&group);
	if (made && PMPI_Comm_create_errhandler(on_error, &handler) == MPI_SUCCESS) {
		PMPI_Comm_set_errhandler(*comm, handler);
		PMPI_Errhandler_free(&handler);
	}
	return made;
}

/* NULL, or why there is none; contd__model.self and .world are set. */
static const char *own_open(int level)
{
	MPI_Comm self;
	MPI_Info info;
	int rc;

	PMPI_Info_create(&info);
	PMPI_Info_set(info, "thread_level", level_names[level]);
	rc = contd__next_pmpi.Session_init(info, MPI_ERRORS_RETURN, &own);
	PMPI_Info_free(&info);
	if (rc != MPI_SUCCESS) {
		own = MPI_SESSION_NULL;
		return "MPI gives contd no session";
	}
	if (!own_self(&self)) {
		contd__next_pmpi.Session_finalize(&own);
		return "MPI gives contd's session no communicator";
	}
	contd__model.self = contd__model.world = self;
	return NULL;
}

static void own_close(void)
{
	MPI_Comm self = contd__model.self;

	PMPI_Comm_free(&self);
	contd__next_pmpi.Session_finalize(&own);
}

static const char *own_begin(void (*at_exit)(void))
{
	static bool ends_at_exit;
	int level = lowest_level();
	const char *why;
	MPI_Group group;

	if (!ends_at_exit && atexit(at_exit))
		return "there is no memory for a function that the process calls at its end";
	ends_at_exit = true;
	why = own_open(level);
	if (why)
		return why;
	contd__model.sessions = true;
	contd__model.level = levels[level];
	contd__model.end = "MPI_Session_finalize";
	if (contd__model_group(&group)) {
		PMPI_Group_rank(group, &contd__model.rank);
		contd__say_rank(contd__model.rank);
		PMPI_Group_free(&group);
	}
	return NULL;
}

void contd__model_rest(void)
{
	own_close();
}

/* The level can only become lower: other threads know the former one. */
bool contd__model_wake(void)
{
	int level = 0, lowest = lowest_level();

	while (levels[level] != contd__model.level)
		level++;
	level = lowest < level ? lowest : level;
	contd__model.level = levels[level];
	return own_open(level) == NULL;
}

/* ---------------------------------------------------------------------------------------------------- which one --- */

bool contd__model_is_open(void)
{
	return session_any() || contd__model_has_world();
}

/* A program that has a session may go on with it after MPI_Finalize. */
const char *contd__model_begin(void (*at_exit)(void))
{
	if (session_any())
		return own_begin(at_exit);
	world_begin();
	return NULL;
}

void contd__model_end(void)
{
	if (!contd__model.sessions)
		return;
	own_close();
	contd__model = (struct contd__model)WORLD;
}

bool contd__model_main_thread(void)
{
	return contd__model.sessions && !contd__model_has_world() ? began == contd__load(&contd__model_epoch)
								  : world_main_thread();
}

bool contd__model_group(MPI_Group *group)
{
	if (!contd__model.sessions)
		return world_group(group);
	return PMPI_Group_from_session_pset(own, "mpi://WORLD", group) == MPI_SUCCESS;
}

int contd__model_error(int class)
{
	return contd__model.sessions || !contd__model_has_world() ? session_error(class) : world_error(class);
}

bool contd__model_is_fatal(void)
{
	return contd__model.sessions || !contd__model_has_world() ? session_is_fatal() : world_is_fatal();
}

int contd__model_level(bool begun)
{
	if (begun)
		return contd__model.level;
	if (contd__model_has_world())
		return world_level();
	return contd__model_is_open() ? levels[lowest_level()] : -1;
}

#endif
