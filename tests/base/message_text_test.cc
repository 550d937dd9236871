// SPDX-License-Identifier: Apache-2.0
#include "base/process/message_text.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(Shown, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Shown("ppo.lr=3e-4"), "ppo.lr=3e-4");
  EXPECT_EQ(Shown("a\nb\r\tc\x1b[31m\x7f"), "a\\nb\\r\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(Shown(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Shown("\xc2\x9b"), "\\xc2\\x9b");  // U+009B: ESC [ in one character.
  EXPECT_EQ(Shown("\x9b"
                  "31m"),
            "\\x9b"
            "31m");  // Not UTF-8; terminals of 8 bits obey it.
  EXPECT_EQ(Shown("Grüße, 世界"), "Grüße, 世界");
  EXPECT_EQ(Shown("\xe4\xb8"), "\\xe4\\xb8");  // A character cut off.
}

TEST(Shown, EscapesWhatTurnsTheDirectionOfTextAround) {
  EXPECT_EQ(Shown("a\u202eb"), "a\\xe2\\x80\\xaeb");
  for (const char* const character : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u2066", "\u2069"}) {
    EXPECT_EQ(Shown(character)[0], '\\') << Shown(character);
  }
  for (const char* const character :
       {"\u061b", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "שלום", "😀"}) {
    EXPECT_EQ(Shown(character), character);
  }
}

TEST(Escaped, CutsNothing) {
  const std::string path = "/" + std::string(5000, 'x');
  EXPECT_EQ(Escaped(path + "\x1b\n"), path + "\\x1b\\n");
  EXPECT_EQ(EscapedLines("a\x1b\nb\r\n"), "a\\x1b\nb\\r\n");
}

TEST(Shown, CutsAfter200Characters) {
  EXPECT_EQ(Shown(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(Shown(std::string(201, 'x')), std::string(200, 'x') + "...");
  std::string umlauts, expected;
  for (int i = 0; i < 300; ++i) umlauts += "ü";
  for (int i = 0; i < 200; ++i) expected += "ü";
  EXPECT_EQ(Shown(umlauts), expected + "...");
  EXPECT_EQ(Quoted("x y"), "'x y'");
}

TEST(OneLine, JoinsLinesAndCutsWords) {
  EXPECT_EQ(OneLine("port 1\r\nis in use\n"), "port 1 is in use");
  EXPECT_EQ(OneLine("a  b"), "a  b");
  EXPECT_EQ(OneLine("cannot read /" + std::string(5000, 'x') + ": File name too long"),
            "cannot read /" + std::string(199, 'x') + "... File name too long");  // The colon belongs to the word.
  EXPECT_EQ(OneLine("bell \a rings"), "bell \\x07 rings");
}

}  // namespace
}  // namespace skein
