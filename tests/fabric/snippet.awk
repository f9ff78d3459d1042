# SPDX-License-Identifier: BSD-3-Clause
# The first block of C in a page; there must be one.
/^```c$/ { inside = ++blocks == 1; next }
/^```/ { inside = 0 }
inside { print }
END { exit blocks == 0 }
