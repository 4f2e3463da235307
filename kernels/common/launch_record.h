// Which kernels a run has launched, by name. The dispatch code of a kernel file calls MCCPROBE_LAUNCHED;
// the host program reads the record. It lets a report say which kernel a wrong number comes from.
#pragma once

#include <string.h>

struct mccprobe_launch_record {
  enum { capacity = 16 };
  const char *names[capacity];
  int count;
};

// One record per program, whichever files include this header.
inline mccprobe_launch_record &mccprobe_launches() {
  static mccprobe_launch_record record;
  return record;
}

// Repeated launches of one kernel are recorded once.
inline void mccprobe_record_launch(const char *name) {
  mccprobe_launch_record &record = mccprobe_launches();
  for (int i = 0; i < record.count; i++)
    if (strcmp(record.names[i], name) == 0)
      return;
  if (record.count < mccprobe_launch_record::capacity)
    record.names[record.count++] = name;
}

#define MCCPROBE_LAUNCHED(kernel) mccprobe_record_launch(#kernel)
