/* SPDX-License-Identifier: BSD-3-Clause */
/* As layouts.c, of contd/fabric.h. */
#include <contd/fabric.h>

#include "is_of.h"
#include "layouts_0_2.h"

IS_OF(contd_fabric_attr, size);
IS_OF(contd_fabric_attr, format);
IS_OF(contd_fabric_attr, wait);
IS_OF(contd_fabric_attr, fabric);
IS_OF(contd_fabric_attr, threading);
IS_OF(contd_fabric_attr, mutex);
IS_OF(contd_fabric_attr, flags);
IS_OF(contd_fabric_attr, operations);
IS_OF(contd_fabric_attr, foreign);
ENDS_WITH(contd_fabric_attr, data);
