// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace skein {

// Text of other processes, made safe for a terminal or a log: control characters (of ASCII, and U+0080 to U+009F, which
// some terminals take for an ESC and a letter) become spaces, so that it can neither move the cursor nor begin a line.
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

// The beginning of it, for a message or a line of a log.
inline std::string Excerpt(const std::string& text) {
  constexpr size_t kShown = 64;
  return Printable(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
}

}  // namespace skein
