// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

namespace skein {

// Records events of a process. `skein check-history` and tests check invariants on the records afterwards
// (cli/history_check.h, docs/faults.md). Off unless the environment variable SKEIN_HISTORY names a folder;
// then each event is one line of FOLDER/<pid>.jsonl: {"t": monotonic seconds, "pid": ..., "event": ..., fields}. One
// system call writes the line, so that a killed process leaves complete lines. Processes of one machine share the
// clock. Thread-safe.

using HistoryValue = std::variant<uint64_t, std::string>;

// Constant during the life of the process. Check it before computing expensive fields.
bool HistoryIsOn();

// Does nothing if recording is off or the line cannot be written: recording never fails the caller.
void RecordHistory(const char* event, std::initializer_list<std::pair<const char*, HistoryValue>> fields);

}  // namespace skein
