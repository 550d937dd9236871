// SPDX-License-Identifier: Apache-2.0
#include "bench/measure_rate.h"

#include <atomic>
#include <numeric>
#include <thread>

#include "base/process/clock.h"
#include "base/process/thread_priority.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenClocks = absl::Microseconds(500);

double RateOf(const Job& job, absl::Duration duration) {
  const absl::Duration begin = MonotonicNow();
  absl::Duration now = begin;
  int64_t units = 0, repeats = 1;
  while (now - begin < duration) {
    for (int64_t i = 0; i < repeats; ++i) units += job();
    const absl::Duration before = now;
    now = MonotonicNow();
    if (now - before < kBetweenClocks) repeats *= 2;
  }
  return static_cast<double>(units) / absl::ToDoubleSeconds(now - begin);
}

}  // namespace

double MeasureRate(const std::vector<Job>& jobs, absl::Duration duration) {
  std::vector<double> rates(jobs.size());
  std::vector<std::thread> threads;
  std::atomic<size_t> ready{0};
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] {
      LowerThreadPriority();  // As runners do, so that a neighbour favours neither them nor their limit.
      ++ready;
      while (ready < jobs.size()) std::this_thread::yield();
      rates[i] = RateOf(jobs[i], duration);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace skein
