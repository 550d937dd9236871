// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "prometheus/registry.h"

namespace skein {

// The value of a counter or gauge; a histogram's number of observations. NaN: there is no such metric.
double MetricValue(const prometheus::Registry& registry, const std::string& name,
                   const std::map<std::string, std::string>& labels = {});

}  // namespace skein
