// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace skein {

// A buffer that an environment writes floats to, which detects a wrong number of them. It has spare room after the last
// float. A special NaN, which no computation produces, marks the last float and the first spare one: the environment
// must overwrite the former and not the latter.
class WrittenRow {
 public:
  WrittenRow() = default;
  explicit WrittenRow(size_t size) : size_(size), values_(size + kSpare) {}

  // Returns the buffer, marked and ready to be written.
  float* Prepare() {
    if (size_ > 0) std::memcpy(&values_[size_ - 1], &kUnwritten, sizeof(float));
    std::memcpy(&values_[size_], &kUnwritten, sizeof(float));
    return values_.data();
  }
  const float* data() const { return values_.data(); }

  // Describes a wrong number of floats written since Prepare; null = the number is right.
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
