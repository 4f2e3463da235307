/* LD_PRELOAD: the clock of the calendar jumps a year forth and back at every look; the steady one goes on. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long year = 365L * 24 * 3600;
static _Atomic unsigned looks;

static long jump(void) { return (++looks & 1) ? year : -year; }

int clock_gettime(clockid_t clock, struct timespec *time) {
  long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += jump();
  return (int)result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  long result = syscall(SYS_gettimeofday, time, zone);
  if (result == 0) time->tv_sec += jump();
  return (int)result;
}

time_t time(time_t *where) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (where) *where = now.tv_sec;
  return now.tv_sec;
}
