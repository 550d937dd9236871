// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

// Text that the user or a file gave, made safe for a terminal or a log: it can neither move the cursor, nor begin a
// line, nor turn the direction of text around, and it is short (Escaped excepted, for paths that others read). A
// character is at most 4 bytes of UTF-8.
namespace skein {

// Characters of one argument, key or value that a message shows.
inline constexpr size_t kShownCharacters = 200;

// `text` with its control characters, and bytes that are not UTF-8, as \n, \t or \x1b.
std::string Escaped(absl::string_view text);

// The same of each line; line ends stay.
std::string EscapedLines(absl::string_view text);

// Escaped() of the first kShownCharacters characters; "..." in place of the rest.
std::string Shown(absl::string_view text);

// Shown(text) between single quotes.
std::string Quoted(absl::string_view text);

// A whole message as one line: line ends become spaces, control characters are escaped, and a word (without a space) of
// more than kShownCharacters characters is cut. Every message of a program for its user passes through this.
std::string OneLine(absl::string_view message);

}  // namespace skein
