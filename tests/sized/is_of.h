/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a structure of include/ begin as that of layouts_0_2.h, which ends without padding? Include it before that. */
#ifndef CONTD_TESTS_SIZED_IS_OF_H
#define CONTD_TESTS_SIZED_IS_OF_H

#include <stddef.h>

#define LAYOUT(name) name##_0_2
#define LATER

#define IS_OF(type, field) \
	_Static_assert(offsetof(struct type, field) == offsetof(struct type##_0_2, field) && \
			       sizeof(((struct type *)0)->field) == sizeof(((struct type##_0_2 *)0)->field), \
		       #type "." #field " is elsewhere than in 0.2, or of another size")

#define ENDS_WITH(type, field) \
	IS_OF(type, field); \
	_Static_assert(offsetof(struct type##_0_2, field) + sizeof(((struct type##_0_2 *)0)->field) == \
			       sizeof(struct type##_0_2), \
		       "struct " #type " has padding behind its last field: a later field would lie there unseen"); \
	_Static_assert(sizeof(struct type) >= sizeof(struct type##_0_2), "struct " #type " is shorter than in 0.2")

#endif
