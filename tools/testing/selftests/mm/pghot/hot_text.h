/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOT_TEXT_H
#define HOT_TEXT_H

#define HOT_TEXT_BYTES	(131072)

#endif /* HOT_TEXT_H */
