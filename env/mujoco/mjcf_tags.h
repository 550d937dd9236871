// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

// Splits a MuJoCo model's XML text into its tags.
namespace skein {

// A tag of an XML text: <element name="value" ...>, or </element>. Views into the text.
struct MjcfTag {
  absl::string_view element;
  std::vector<std::pair<absl::string_view, absl::string_view>> attributes;  // In order; values without their quotes.
  bool opens = true;                                                        // False: </element>.
  bool closed = false;                                                      // <element/>, which has no </element>.
  size_t begin = 0, end = 0;                                                // From '<' to after '>'.
};

// The tags of `text` in order, where MuJoCo's XML parser finds them; <? ... ?> is skipped. REQUIRES: no comments.
// Nothing if the text is not well-formed, or has declarations or CDATA (<!...). Whether elements are closed is not
// looked at.
std::optional<std::vector<MjcfTag>> ReadMjcfTags(absl::string_view text);

}  // namespace skein
