/* Faults of disk and clock, put in front of the C library by LD_PRELOAD; see faults.py.

   SURVIVAL_FAULTS names a folder with `control`, which says what fails now, and `log`, to which each
   call that met a fault is written as "PID CALL PATH". SURVIVAL_BELOW are the beginnings of the paths that
   fail, with colons. Calls go to the kernel themselves, so that nothing is looked up while they fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int error;   /* of calls on the disk, or 0 */
    int shift;   /* seconds that the clock is wrong by */
};
static const volatile struct control *control;
static char *below, *logged;
static int noted, is_short;

__attribute__((constructor)) static void begin(void) {
    char path[PATH_MAX];
    const char *folder = getenv("SURVIVAL_FAULTS"), *wanted = getenv("SURVIVAL_BELOW");
    if (!folder || !wanted) return;
    below = strdup(wanted);
    snprintf(path, sizeof path, "%s/log", folder);
    logged = strdup(path);
    snprintf(path, sizeof path, "%s/control", folder);
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (map != MAP_FAILED) control = map;
}

static void note(const char *call, const char *path) {
    char line[PATH_MAX];
    if (noted >= 100) return;
    noted++;
    int file = syscall(SYS_openat, AT_FDCWD, logged, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int size = snprintf(line, sizeof line, "%d %s %s\n", (int)getpid(), call, path);
    syscall(SYS_write, file, line, size);
    syscall(SYS_close, file);
}

/* The disk ---------------------------------------------------------------------------------------- */

static int is_below(const char *path) {
    for (const char *part = below; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL)
        if (!strncmp(path, part, strcspn(part, ":"))) return 1;
    return 0;
}

static int target(int file, char *path) {
    char link[32];
    snprintf(link, sizeof link, file == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", file);
    int size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return size;
}

static int refuse(const char *call, const char *path, int error) {
    note(call, path);
    errno = error;
    return 1;
}

/* Whether a call on an open file fails. A full disk takes what needs no room. */
static int fails(const char *call, int file, int needs_room) {
    char path[PATH_MAX];
    int error = control ? control->error : 0, before = errno;
    if (!error || (error == ENOSPC && !needs_room)) return 0;
    if (target(file, path) > 0 && is_below(path)) return refuse(call, path, error);
    errno = before;
    return 0;
}

/* The same of a path; a new one needs room. */
static int fails_at(const char *call, int folder, const char *name, int is_new) {
    char path[2 * PATH_MAX] = "";
    struct stat there;
    int error = control ? control->error : 0, before = errno;
    if (!error || !name) return 0;
    if (name[0] != '/' && target(folder, path) > 0) strcat(path, "/");
    strncat(path, name, PATH_MAX - 1);
    int is_one = is_below(path);
    if (is_one && is_new) is_one = syscall(SYS_newfstatat, AT_FDCWD, path, &there, 0) != 0;
    if (is_one && (is_new || error != ENOSPC)) return refuse(call, path, error);
    errno = before;
    return 0;
}

/* How much of a failing call on an open file is done: a disk that becomes full takes a part first. */
static size_t taken(const char *call, int file, size_t size) {
    char path[PATH_MAX];
    if (!fails(call, file, 1)) return size;
    if (control->error != ENOSPC || size < 2 || __atomic_exchange_n(&is_short, 1, __ATOMIC_RELAXED))
        return 0;
    target(file, path);
    note("part", path);
    return size / 2;
}

ssize_t write(int file, const void *data, size_t size) {
    size_t part = taken("write", file, size);
    return size && !part ? -1 : syscall(SYS_write, file, data, part);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    size_t part = taken("pwrite", file, size);
    return size && !part ? -1 : syscall(SYS_pwrite64, file, data, part, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return pwrite(file, data, size, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return fails("writev", file, 1) ? -1 : syscall(SYS_writev, file, parts, count);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    return fails("pwritev", file, 1) ? -1 : syscall(SYS_pwritev, file, parts, count, at, 0);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    return pwritev(file, parts, count, at);
}

int fsync(int file) { return fails("fsync", file, 0) ? -1 : syscall(SYS_fsync, file); }

int fdatasync(int file) { return fails("fdatasync", file, 0) ? -1 : syscall(SYS_fdatasync, file); }

int ftruncate(int file, off_t size) {
    return fails("ftruncate", file, size > 0) ? -1 : syscall(SYS_ftruncate, file, size);
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int fallocate(int file, int mode, off_t at, off_t size) {
    return fails("fallocate", file, 1) ? -1 : syscall(SYS_fallocate, file, mode, at, size);
}

int posix_fallocate(int file, off_t at, off_t size) { return fallocate(file, 0, at, size) ? errno : 0; }

static int opened(int folder, const char *path, int flags, int mode) {
    if (flags & O_CREAT && fails_at("open", folder, path, 1)) return -1;
    return syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(flags)                                                                                  \
    int mode = 0;                                                                                    \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                           \
        va_list rest;                                                                                \
        va_start(rest, flags);                                                                       \
        mode = va_arg(rest, int);                                                                    \
        va_end(rest);                                                                                \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }

int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }

int openat(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags)
    return opened(at, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
    return fails_at("mkdir", AT_FDCWD, path, 1) ? -1 : syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return fails_at("rename", to, new, 0) ? -1 : syscall(SYS_renameat2, from, old, to, new, flags);
}

int renameat(int from, const char *old, int to, const char *new) {
    return renameat2(from, old, to, new, 0);
}

int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

/* The clock --------------------------------------------------------------------------------------- */

static int shift(void) {
    static int is_noted;
    int seconds = control ? control->shift : 0, before = errno;
    if (seconds && !__atomic_exchange_n(&is_noted, 1, __ATOMIC_RELAXED)) note("clock", "");
    errno = before;
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return now ? (*now = time.tv_sec) : time.tv_sec;
}

/* Who waits until a time of the wrong clock, waits until the same time of the kernel's; a time that is
   small is one of the monotonic clock. */
static struct timespec until(const struct timespec *when) {
    struct timespec found = *when;
    if (found.tv_sec > 1000000000) found.tv_sec -= shift();
    return found;
}

static void *next(const char *name) {
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* conditions have an older version, too */
    return found ? found : dlsym(RTLD_NEXT, name);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict when) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec then = until(when);
    if (!real) real = next("pthread_cond_timedwait");
    return real(condition, lock, &then);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict when) {
    static int (*real)(sem_t *, const struct timespec *);
    struct timespec then = until(when);
    if (!real) real = next("sem_timedwait");
    return real(sem, &then);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict lock, const struct timespec *restrict when) {
    static int (*real)(pthread_mutex_t *, const struct timespec *);
    struct timespec then = until(when);
    if (!real) real = next("pthread_mutex_timedlock");
    return real(lock, &then);
}
