/* SPDX-License-Identifier: BSD-3-Clause */
/* As layouts.c, of contd/modes.h. */
#include <contd/modes.h>

#include "is_of.h"
#include "layouts_modes_0_2.h"

IS_OF(contd_mode_attr, size);
IS_OF(contd_mode_attr, mode);
IS_OF(contd_mode_attr, priority);
IS_OF(contd_mode_attr, requests);
IS_OF(contd_mode_attr, completions);
IS_OF(contd_mode_attr, yield);
IS_OF(contd_mode_attr, suspend);
IS_OF(contd_mode_attr, resume);
IS_OF(contd_mode_attr, flags);
ENDS_WITH(contd_mode_attr, cont_req);
