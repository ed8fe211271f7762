// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose text is hot: runs through HOT_TEXT_BYTES of code at least, round
 * and round, until it is killed. Started by the test "files".
 */
#include <signal.h>
#include <sys/prctl.h>

#include "hot_text.h"

#define STR(x)		#x
#define NUMBER(x)	STR(x)

int main(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		asm volatile(".rept " NUMBER(HOT_TEXT_BYTES) "\n"
			     "nop\n"
			     ".endr");
}
