// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

namespace skein {

// A record of what happened in a process, for `skein check-history` and tests, which check afterwards what must always
// hold (cli/history_check.h, docs/faults.md). Off unless the environment variable SKEIN_HISTORY names a folder;
// then each event is one line of FOLDER/<pid>.jsonl: {"t": monotonic seconds, "pid": ..., "event": ..., fields},
// written by one system call, so that a process that is killed leaves whole lines. Processes of one machine share the
// clock. Thread-safe.

using HistoryValue = std::variant<uint64_t, std::string>;

// Constant while the process lives. Ask before making fields that cost something.
bool HistoryIsOn();

// Does nothing if the record is off or the line cannot be written: a record never disturbs what it records.
void RecordHistory(const char* event, std::initializer_list<std::pair<const char*, HistoryValue>> fields);

}  // namespace skein
