// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace skein {

// Floats that an environment writes, which show whether it wrote as many as it should: behind them is room for what it
// writes too much, and a NaN that no computation makes stands where the last one and the first one too many belong.
class WrittenRow {
 public:
  WrittenRow() = default;
  explicit WrittenRow(size_t size) : size_(size), values_(size + kSpare) {}

  // To be written now.
  float* Prepare() {
    if (size_ > 0) std::memcpy(&values_[size_ - 1], &kUnwritten, sizeof(float));
    std::memcpy(&values_[size_], &kUnwritten, sizeof(float));
    return values_.data();
  }
  const float* data() const { return values_.data(); }

  // What is wrong with how many have been written since; null = nothing.
  const char* WrongSize() const {
    if (size_ > 0 && IsUnwritten(size_ - 1)) return "fewer numbers than its spec says";
    if (!IsUnwritten(size_)) return "more numbers than its spec says";
    return nullptr;
  }

 private:
  static constexpr size_t kSpare = 64;
  static constexpr uint32_t kUnwritten = 0x7fc5ce1f;

  bool IsUnwritten(size_t i) const { return std::memcmp(&values_[i], &kUnwritten, sizeof(float)) == 0; }

  size_t size_ = 0;
  std::vector<float> values_;
};

}  // namespace skein
