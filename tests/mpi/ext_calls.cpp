// SPDX-License-Identifier: BSD-3-Clause
#include "ext_calls.c"
