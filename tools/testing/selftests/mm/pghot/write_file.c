// SPDX-License-Identifier: GPL-2.0
/*
 * write_file [-u UID] FILE TEXT
 *
 * Writes TEXT with one system call, as that user, and prints the name of the
 * error, or "ok": a shell's own echo does not tell.
 *
 * write_file -c
 *
 * Reads checks, one a line with tabs between words, and says what is wrong:
 *
 *	good FILE TEXT VALUE	TEXT is taken, and VALUE is read then
 *	bad FILE TEXT ERROR	TEXT is refused, and nothing changes
 *	garbage FILE BYTES ERROR	the same with so many bytes of garbage
 *	empty FILE		an empty write changes nothing
 *	is FILE VALUE		VALUE is read
 *
 * In TEXT, \n is a newline and \ with three octal digits any byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT	8192

static const char *error_name(int err)
{
	static char other[32];

	switch (err) {
	case 0:		return "ok";
	case EINVAL:	return "EINVAL";
	case ERANGE:	return "ERANGE";
	case ENODEV:	return "ENODEV";
	case ENOMEM:	return "ENOMEM";
	case EACCES:	return "EACCES";
	case EPERM:	return "EPERM";
	case ENOENT:	return "ENOENT";
	case EIO:	return "EIO";
	case EBUSY:	return "EBUSY";
	case E2BIG:	return "E2BIG";
	}
	snprintf(other, sizeof(other), "error %d", err);
	return other;
}

static int write_once(const char *file, const char *text, size_t len)
{
	int fd = open(file, O_WRONLY);
	int err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, len) < 0)
		err = errno;
	close(fd);
	return err;
}

/* What a file says, without the newline at its end. */
static void read_value(const char *file, char *val, size_t size)
{
	int fd = open(file, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, val, size - 1);

	if (len < 0) {
		snprintf(val, size, "%s", error_name(errno));
	} else {
		if (len && val[len - 1] == '\n')
			len--;
		val[len] = '\0';
	}
	if (fd >= 0)
		close(fd);
}

static size_t unescape(const char *from, char *to)
{
	char *start = to;

	while (*from) {
		if (from[0] == '\\' && from[1] == 'n') {
			*to++ = '\n';
			from += 2;
		} else if (from[0] == '\\') {
			*to++ = (from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	return to - start;
}

static size_t make_garbage(char *text, size_t len)
{
	unsigned int seed = 12345;
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		/* Not by chance a number, nor the end of the text. */
		text[i] = 0x80 | seed >> 16;
	}
	return len;
}

static bool check(char *line)
{
	char text[MAX_TEXT], before[256], after[256];
	const char *word[4] = { "", "", "", "" }, *want, *got;
	size_t len = 0;
	int i;

	for (i = 0; i < 4 && line; i++)
		word[i] = strsep(&line, "\t");

	read_value(word[1], before, sizeof(before));
	if (!strcmp(word[0], "is")) {
		if (!strcmp(before, word[2]))
			return true;
		printf("# %s is '%s', not '%s'\n", word[1], before, word[2]);
		return false;
	}
	if (!strcmp(word[0], "garbage"))
		len = make_garbage(text, atol(word[2]) % MAX_TEXT);
	else if (strcmp(word[0], "empty"))
		len = unescape(word[2], text);

	got = error_name(write_once(word[1], text, len));
	want = !strcmp(word[0], "good") ? "ok" :
	       !strcmp(word[0], "empty") ? got : word[3];
	read_value(word[1], after, sizeof(after));
	if (strcmp(got, want)) {
		printf("# %s: %s '%.40s' gives %s, not %s\n", word[1], word[0], word[2],
		       got, want);
		return false;
	}
	want = !strcmp(word[0], "good") ? word[3] : before;
	if (strcmp(after, want)) {
		printf("# %s: %s '%.40s' makes it '%s', not '%s'\n", word[1], word[0],
		       word[2], after, want);
		return false;
	}
	return true;
}

static int check_all(void)
{
	char line[1024];
	bool ok = true;

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		ok &= check(line);
	}
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	char text[MAX_TEXT];
	int opt, err;

	while ((opt = getopt(argc, argv, "+cu:")) != -1) {
		switch (opt) {
		case 'c':
			return check_all();
		case 'u':
			if (setgid(atoi(optarg)) || setuid(atoi(optarg))) {
				perror("setuid");
				return 2;
			}
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2)
		return 2;

	err = write_once(argv[optind], text, unescape(argv[optind + 1], text));
	puts(error_name(err));
	return err ? 1 : 0;
}
