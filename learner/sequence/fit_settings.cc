// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/fit_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/config/config_reflection.h"
#include "base/config/message_settings.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "policy/dense_kernels.h"

namespace skein {
namespace {

constexpr size_t kMaxNameBytes = 200;

bool IsFolderName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes || name[0] == '-' || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

absl::Status ValidateFitConfig(const v1::FitConfig& config) {
  if (absl::Status s = config_reflection::CheckSettings(config, ""); !s.ok()) return s;
  if (!IsFolderName(config.name())) {
    return absl::InvalidArgumentError(absl::StrCat("name ", Quoted(config.name()),
                                                   " cannot be a folder: use letters, digits, '.', '_' and '-', which "
                                                   "must not be first"));
  }
  for (const auto& [name, size] :
       {std::pair{"model.embedding", config.model().embedding()}, {"model.hidden", config.model().hidden()}}) {
    if (size % kPadding != 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, " must be a multiple of ", kPadding, ", got ", size));
    }
  }
  if (config.model().vocabulary() > 0 && config.data().keys() == v1::SEQUENCE_KEYS_TOKENS) {
    return absl::InvalidArgumentError(absl::StrCat("model.vocabulary (", config.model().vocabulary(),
                                                   ") is a number of integers; with data.keys tokens it must be 0"));
  }
  return absl::OkStatus();
}

uint32_t PartsFor(const v1::FitTrainConfig& train, uint32_t ranks) {
  return train.parts() > 0 ? train.parts() : std::max(2u, ranks);
}

absl::Status CheckGoesOn(const v1::FitConfig& was, const v1::FitConfig& is) {
  struct Setting {
    const char* name;
    uint64_t was, is;
  };
  for (const Setting& setting :
       {Setting{"seed", was.seed(), is.seed()}, Setting{"data.window", was.data().window(), is.data().window()},
        Setting{"model.embedding", was.model().embedding(), is.model().embedding()},
        Setting{"model.hidden", was.model().hidden(), is.model().hidden()},
        Setting{"model.layers", was.model().layers(), is.model().layers()},
        Setting{"train.batch_size", was.train().batch_size(), is.train().batch_size()},
        Setting{"train.parts", was.train().parts(), is.train().parts()}}) {
    if (setting.was == setting.is) continue;
    // Few set this one: it comes from the number of ranks.
    const char* const hint = setting.name == absl::string_view("train.parts")
                                 ? " and take a number of ranks that divides it (unset, it is that of the ranks, and 2 "
                                   "for one rank)"
                                 : "";
    return absl::FailedPreconditionError(absl::StrCat("this training began with ", setting.name, " ", setting.was,
                                                      ", got ", setting.is, "; set it to ", setting.was, hint,
                                                      ", or give another name, or --resume never"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::FitConfig> ParseFitConfig(const std::string& text, const std::string& source) {
  v1::FitConfig config;
  if (absl::Status s = MergeSettings(text, source, &config); !s.ok()) return s;
  SetDefaultSettings(&config);
  if (absl::Status s = ValidateFitConfig(config); !s.ok()) return s;
  return config;
}

absl::StatusOr<v1::FitConfig> LoadFitConfig(const std::string& path, const std::vector<std::string>& overrides) {
  v1::FitConfig config;
  if (!path.empty()) {
    const auto text = ReadFile(path, kMaxSettingsBytes);
    if (!text.ok()) return text.status();
    if (absl::Status s = MergeSettings(*text, path, &config); !s.ok()) return s;
  }
  for (const std::string& assignment : overrides) {
    if (absl::Status s = OverrideSetting(assignment, &config); !s.ok()) return s;
  }
  SetDefaultSettings(&config);
  if (absl::Status s = ValidateFitConfig(config); !s.ok()) return Locate(path, overrides, s);
  return config;
}

}  // namespace skein
