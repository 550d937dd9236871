// SPDX-License-Identifier: Apache-2.0
#include "base/process/message_text.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace skein {
namespace {

unsigned char ByteAt(absl::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

// Bytes of the character at the beginning of `text`; 0 if it is not UTF-8. REQUIRES: not empty.
size_t CharacterBytes(absl::string_view text) {
  const unsigned char lead = ByteAt(text, 0);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

// Of a valid character.
uint32_t CodePoint(absl::string_view character) {
  const size_t bytes = character.size();
  uint32_t code = bytes == 1 ? ByteAt(character, 0) : ByteAt(character, 0) & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (ByteAt(character, i) & 0x3f);
  return code;
}

// U+0000 to U+001F, U+007F, and U+0080 to U+009F, which some terminals read as ESC and a letter; what separates lines;
// and what turns the direction of text around, so that it reads otherwise than it is (CVE-2021-42574).
bool IsControl(absl::string_view character) {
  const uint32_t code = CodePoint(character);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void AppendEscaped(absl::string_view bytes, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const char* const name = bytes == "\n" ? "\\n" : bytes == "\r" ? "\\r" : bytes == "\t" ? "\\t" : nullptr;
  if (name != nullptr) {
    out->append(name);
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    out->append({'\\', 'x', kDigits[ByteAt(bytes, i) >> 4], kDigits[ByteAt(bytes, i) & 15]});
  }
}

std::string EscapeUpTo(size_t limit, absl::string_view text) {
  std::string shown;
  for (size_t characters = 0; !text.empty(); ++characters) {
    if (characters == limit) return shown + "...";
    const size_t valid = CharacterBytes(text);
    const absl::string_view character = text.substr(0, valid == 0 ? 1 : valid);
    if (valid == 0 || IsControl(character)) {
      AppendEscaped(character, &shown);
    } else {
      shown.append(character.data(), character.size());
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace

std::string Escaped(absl::string_view text) { return EscapeUpTo(text.size(), text); }

std::string EscapedLines(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, '\n'), "\n",
                       [](std::string* out, absl::string_view line) { out->append(Escaped(line)); });
}

std::string Shown(absl::string_view text) { return EscapeUpTo(kShownCharacters, text); }

std::string Quoted(absl::string_view text) { return absl::StrCat("'", Shown(text), "'"); }

std::string OneLine(absl::string_view message) {
  const std::string spaced = absl::StrReplaceAll(absl::StripAsciiWhitespace(message), {{"\r", ""}, {"\n", " "}});
  return absl::StrJoin(absl::StrSplit(spaced, ' '), " ",
                       [](std::string* out, absl::string_view word) { out->append(Shown(word)); });
}

}  // namespace skein
