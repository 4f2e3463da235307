// Which kernels a run has launched, by name, and how often. The dispatch code of a kernel file calls
// MCCPROBE_LAUNCHED; the host program reports the record. It lets a report say which kernel a wrong number
// comes from, and the gate (`mccprobe check`) which kernel no case has launched.
#pragma once

#include <string.h>

struct mccprobe_launch_record {
  enum { capacity = 16 };
  const char *names[capacity];
  int launches[capacity];
  int count;
};

// One record per program, whichever files include this header.
inline mccprobe_launch_record &mccprobe_launches() {
  static mccprobe_launch_record record;
  return record;
}

// Repeated launches of one kernel are one entry with their number.
inline void mccprobe_record_launch(const char *name) {
  mccprobe_launch_record &record = mccprobe_launches();
  for (int i = 0; i < record.count; i++)
    if (strcmp(record.names[i], name) == 0) {
      record.launches[i]++;
      return;
    }
  if (record.count < mccprobe_launch_record::capacity) {
    record.names[record.count] = name;
    record.launches[record.count++] = 1;
  }
}

// Template arguments as C++ writes them: MCCPROBE_LAUNCHED(gemm<128, true>)
#define MCCPROBE_LAUNCHED(...) mccprobe_record_launch(#__VA_ARGS__)
