/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls no other code than memcpy(3), memset(3) and contd__fail(). */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"

static bool possible(size_t size)
{
	return size >= sizeof(size_t) && size <= SIZED_MOST && size % sizeof(size_t) == 0;
}

static bool zeros_behind(const void *from, size_t known, size_t size)
{
	const unsigned char *bytes = from;

	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

int contd__sized_take(void *to, size_t known, const void *from, const struct contd__sized_texts *texts)
{
	size_t size;

	memcpy(&size, from, sizeof(size));
	if (!possible(size))
		return contd__fail(-EINVAL, texts->size);
	if (!zeros_behind(from, known, size))
		return contd__fail(-E2BIG, texts->unknown);
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &known, sizeof(known));
	return 0;
}

int contd__sized_give(void *to, const void *from, size_t known, const struct contd__sized_texts *texts)
{
	size_t size;

	memcpy(&size, to, sizeof(size));
	if (!possible(size))
		return contd__fail(-EINVAL, texts->size);
	memcpy(to, from, size < known ? size : known);
	if (size > known)
		memset((unsigned char *)to + known, 0, size - known);
	memcpy(to, &size, sizeof(size));
	return 0;
}
