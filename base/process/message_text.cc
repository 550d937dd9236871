// SPDX-License-Identifier: Apache-2.0
#include "base/process/message_text.h"

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

// U+0000 to U+001F, U+007F, and U+0080 to U+009F, which some terminals read as ESC and a letter.
bool IsControl(absl::string_view character) {
  const unsigned char lead = ByteAt(character, 0);
  return lead < 0x20 || lead == 0x7f || (lead == 0xc2 && ByteAt(character, 1) < 0xa0);
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
