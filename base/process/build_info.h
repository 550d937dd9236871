// SPDX-License-Identifier: Apache-2.0
#pragma once

// Version and commit that this program was built from. One generated source has the values, so that a commit compiles
// nothing else anew.
namespace skein {

// The project's version, e.g. "0.1.0".
const char* BuildVersion();

// The first 12 digits of the commit; "unknown" in a build without git and without -DSKEIN_COMMIT=.
const char* BuildCommit();

}  // namespace skein
