/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "progress/begin.h"
#include "progress/call.h"
#include "progress/closure.h"

#define P contd__progress

enum contd__entered contd__call_shared(enum contd__entered how, uintptr_t frame, struct contd__mark *mark)
{
	if (how == ENTERED_UNSEEN) {
		if (contd__load(&P.ending))
			return how;
		contd__progress_join();
		how = contd__enter(&contd__inside.mpi, frame, mark);
	}
	return contd__turn_begin(how, frame, mark);
}

/*
 * To read needs the loader's lock. Another thread that loads or unloads a library may hold it for as long as it waits
 * for this one to leave MPI, in a constructor or destructor. Then it reads when it is done, or the next call does;
 * what this call has loaded is MPI's then, too: contd__opened_note().
 */
void contd__call_read(bool by_mpi)
{
	/* Acquire: with the addition to `loads`, which comes after that to `loading`. */
	if (contd__load_acquire(&P.loads) != contd__load(&P.generation) && !contd__load_acquire(&P.loading))
		contd__closure_read(by_mpi);
}

enum contd__entered contd__call_begin(uintptr_t frame, struct contd__mark *mark)
{
	return contd__call_in(frame, mark);
}

void contd__call_end(enum contd__entered how, const struct contd__mark *mark)
{
	if (contd__call_counts(how))
		contd__call_out(how, mark);
}
