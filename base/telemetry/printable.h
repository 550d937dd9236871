// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace skein {

// Makes text of other processes safe for a terminal or a log: control characters become spaces, so that the text cannot
// move the cursor or begin a line. They include U+0080 to U+009F, which some terminals read as ESC and a letter.
inline std::string Printable(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < ' ' || byte == 0x7f) text[i] = ' ';
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) - 0x80u < 0x20) {
      text[i] = text[i + 1] = ' ';
    }
  }
  return text;
}

// The printable beginning of `text`, for an error message or a log line.
inline std::string Excerpt(const std::string& text) {
  constexpr size_t kShown = 64;
  return Printable(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
}

}  // namespace skein
