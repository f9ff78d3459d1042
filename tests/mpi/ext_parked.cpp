// SPDX-License-Identifier: BSD-3-Clause
#include "ext_parked.c"
