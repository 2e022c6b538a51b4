/* Lets the nth operation on files below a folder fail, whoever asks for it: Python, Arrow, SQLite or the library of safetensors.

   Preloaded into a process (LD_PRELOAD), which arms it by a call. Writing: what makes, changes or renames files. Removing: what removes
   them, which works on a full disk. Reading: what opens and reads them. Only the nth one fails, or all from the nth on. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITING = 1, READING = 2, REMOVING = 4 };

static char under[PATH_MAX];
static size_t under_length;
static long seen, nth;
static int error_number, lasting, kinds;

void fault_arm(const char *folder, int which, long which_one, int number, int all_from_there) {
    snprintf(under, sizeof under, "%s", folder);
    under_length = strlen(under);
    seen = 0;
    nth = which_one;
    error_number = number;
    lasting = all_from_there;
    __atomic_store_n(&kinds, which, __ATOMIC_SEQ_CST);
}

long fault_disarm(void) {
    __atomic_store_n(&kinds, 0, __ATOMIC_SEQ_CST);
    return seen;
}

static int below(int folder, const char *path) {
    char whole[PATH_MAX];
    if (path == NULL) return 0;
    if (path[0] != '/') {
        char link[64];
        if (folder == AT_FDCWD) {
            snprintf(link, sizeof link, "/proc/self/cwd");
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        }
        ssize_t length = readlink(link, whole, sizeof whole - 2);
        if (length < 0) return 0;
        whole[length] = '/';
        strncpy(whole + length + 1, path, sizeof whole - (size_t)length - 2);
        whole[sizeof whole - 1] = 0;
        path = whole;
    }
    return strncmp(path, under, under_length) == 0;
}

static int open_below(int file) {
    char link[64], whole[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    if (length < 0) return 0;
    whole[length] = 0;
    return strncmp(whole, under, under_length) == 0;
}

static int due(void) {
    long number = __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
    if (number == nth || (lasting && number > nth)) {
        errno = error_number;
        return 1;
    }
    return 0;
}

static int fails_at(int kind, int folder, const char *path) {
    int before = errno;
    if (!(kinds & kind) || !below(folder, path)) {
        errno = before;
        return 0;
    }
    return due() || (errno = before, 0);
}

static int fails_on(int kind, int file) {
    int before = errno;
    if (!(kinds & kind) || !open_below(file)) {
        errno = before;
        return 0;
    }
    return due() || (errno = before, 0);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int kind_of(int flags) { return (flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)) ? WRITING : READING; }

#define MODE                                                        \
    mode_t mode = 0;                                                \
    if (flags & (O_CREAT | O_TMPFILE)) {                            \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode = va_arg(rest, mode_t);                                \
        va_end(rest);                                               \
    }

int open(const char *path, int flags, ...) {
    MODE return fails_at(kind_of(flags), AT_FDCWD, path) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE return fails_at(kind_of(flags), AT_FDCWD, path) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE return fails_at(kind_of(flags), folder, path) ? -1 : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE return fails_at(kind_of(flags), folder, path) ? -1 : REAL(openat64)(folder, path, flags, mode);
}
#define ON_FILE(kind, type, name, parameters, arguments) \
    type name parameters { return fails_on(kind, file) ? -1 : REAL(name) arguments; }
ON_FILE(WRITING, ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
ON_FILE(WRITING, ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
ON_FILE(WRITING, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
ON_FILE(WRITING, ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
ON_FILE(WRITING, int, fsync, (int file), (file))
ON_FILE(WRITING, int, fdatasync, (int file), (file))
ON_FILE(WRITING, int, ftruncate, (int file, off_t size), (file, size))
ON_FILE(WRITING, int, ftruncate64, (int file, off64_t size), (file, size))
ON_FILE(READING, ssize_t, read, (int file, void *data, size_t size), (file, data, size))
ON_FILE(READING, ssize_t, pread, (int file, void *data, size_t size, off_t at), (file, data, size, at))
ON_FILE(READING, ssize_t, pread64, (int file, void *data, size_t size, off64_t at), (file, data, size, at))
#define AT_PATH(kind, type, name, parameters, arguments) \
    type name parameters { return fails_at(kind, AT_FDCWD, path) ? -1 : REAL(name) arguments; }
AT_PATH(WRITING, int, rename, (const char *path, const char *to), (path, to))
AT_PATH(WRITING, int, link, (const char *path, const char *to), (path, to))
AT_PATH(WRITING, int, mkdir, (const char *path, mode_t mode), (path, mode))
AT_PATH(REMOVING, int, unlink, (const char *path), (path))
AT_PATH(REMOVING, int, rmdir, (const char *path), (path))
AT_PATH(WRITING, int, truncate, (const char *path, off_t size), (path, size))
AT_PATH(WRITING, int, chmod, (const char *path, mode_t mode), (path, mode))

int renameat(int folder, const char *path, int other, const char *to) {
    return fails_at(WRITING, folder, path) ? -1 : REAL(renameat)(folder, path, other, to);
}
int linkat(int folder, const char *path, int other, const char *to, int flags) {
    return fails_at(WRITING, folder, path) ? -1 : REAL(linkat)(folder, path, other, to, flags);
}
int mkdirat(int folder, const char *path, mode_t mode) { return fails_at(WRITING, folder, path) ? -1 : REAL(mkdirat)(folder, path, mode); }
int unlinkat(int folder, const char *path, int flags) { return fails_at(REMOVING, folder, path) ? -1 : REAL(unlinkat)(folder, path, flags); }
