// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>

#include "learner/optimize/step_graph.h"

namespace skein {

// Keeps the work, as a device keeps its kernels, and does it when it is replayed.
class KeepingRecorder final : public Recorder {
 public:
  enum class Fails { kNever, kBeforeTheWork, kInTheWork };
  explicit KeepingRecorder(int* replays, Fails fails = Fails::kNever) : replays_(*replays), fails_(fails) {}

  void WarmUp(const std::function<void()>& work) override { work(); }
  void Record(const std::function<void()>& work) override {
    if (fails_ == Fails::kInTheWork) work();  // Which is to throw.
    if (fails_ != Fails::kNever) throw std::runtime_error("the device says no");
    work_ = work;
  }
  void Replay() override {
    ++replays_;
    work_();
  }
  void Forget() override { work_ = nullptr; }

 private:
  int& replays_;
  const Fails fails_;
  std::function<void()> work_;
};

}  // namespace skein
