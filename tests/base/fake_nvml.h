// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// What the fake NVML library answers. It is a shared library of its own, so that it is opened like the driver's.
struct FakeNvml {
  struct Gpu {
    unsigned utilization = 0;  // Percent.
    unsigned long long memory_total = 0, memory_used = 0;
    unsigned milliwatts = 0;
    unsigned long long millijoules = 0;
    unsigned celsius = 0;
  };
  int init_error = 0;
  unsigned gpus = 2;  // At most 2.
  Gpu gpu[2] = {{25, 1000, 100, 50000, 7000000, 40}, {75, 2000, 400, 150000, 9000000, 60}};
  int refused_gpu = -1;  // No handle for this one.
  std::string failing;   // Name of a function that returns an error,
  int good_calls = 0;    // after so many that do not.
  int started = 0;       // Calls of init that shutdown has not undone.
};

}  // namespace skein
