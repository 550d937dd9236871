// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// The value of one series at http://127.0.0.1:port/metrics now, named as it stands there:
// skein_coordinator_members{role="actor"}. NaN: there is none, or nobody answers.
double Scrape(int port, const std::string& series);

}  // namespace skein
