// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/user_model.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/number/number_bounds.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mjcf_tags.h"
#include "env/mujoco/model.h"
#include "env/mujoco/same_joints.h"
#include "env/mujoco/user_model_limits.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargest = 1 << 20;  // Bytes of all files.
constexpr int kMostIncludes = 16;
constexpr double kLeastTimestep = 1e-6, kMostTimestep = 1;  // s

absl::Status Refused(const std::string& path, const std::string& why) {
  return absl::DataLossError(absl::StrCat("env.mujoco.xml_file: ", path, ": ", why));
}

// MuJoCo's messages have several lines.
std::string InOneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\n", " "}});
}

absl::StatusOr<std::string> ReadText(const fs::path& path, size_t room) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("env.mujoco.xml_file: there is no file ", path.string()));
  }
  if (!fs::is_regular_file(path, error)) return Refused(path.string(), "not a file");
  std::ifstream file(path, std::ios::binary);
  std::string text(room + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad()) return Refused(path.string(), "cannot be read");
  if (text.size() > room) return Refused(path.string(), absl::StrCat("more than ", kLargest, " bytes"));
  return text;
}

// The text without its comments, in which nothing counts.
std::string WithoutComments(const std::string& text) {
  std::string out;
  size_t begin = 0;
  for (size_t open = text.find("<!--"); open != std::string::npos; open = text.find("<!--", begin)) {
    out.append(text, begin, open - begin);
    const size_t close = text.find("-->", open + 4);
    if (close == std::string::npos) return out;
    begin = close + 3;
  }
  return out.append(text, begin, std::string::npos);
}

// The end tag of the first element; null: it has none.
const MjcfTag* EndOfRoot(const std::vector<MjcfTag>& tags) {
  int open = 0;
  for (const MjcfTag& tag : tags) {
    if (!tag.closed) open += tag.opens ? 1 : -1;
    if (open <= 0) return open == 0 && !tag.opens ? &tag : nullptr;
  }
  return nullptr;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), folder_(fs::absolute(fs::path(path)).parent_path()) {}

  // The text of the model with the contents of the files that it includes in their places.
  absl::StatusOr<std::string> Read() { return ReadOne(fs::path(path_)); }

 private:
  absl::StatusOr<std::string> ReadOne(const fs::path& path) {
    absl::StatusOr<std::string> read = ReadText(path, kLargest - bytes_);
    if (!read.ok()) return read;
    bytes_ += read->size();
    const std::string text = WithoutComments(*read);
    const auto tags = ReadMjcfTags(text);
    if (!tags) return Refused(path.string(), "is no XML, or has document types or CDATA, which are not supported");
    std::string out;
    size_t from = 0;
    for (const MjcfTag& tag : *tags) {
      if (tag.element != "include") continue;
      out.append(text, from, tag.begin - from);
      from = tag.end;
      if (!tag.opens) continue;
      if (tag.attributes.size() != 1 || tag.attributes[0].first != "file") {
        return Refused(path.string(), "an include needs the attribute file and no other");
      }
      const absl::StatusOr<std::string> part = Include(path, std::string(tag.attributes[0].second));
      if (!part.ok()) return part;
      out += *part;
    }
    return out.append(text, from, std::string::npos);
  }

  // The content of the root element of an included file.
  absl::StatusOr<std::string> Include(const fs::path& from, const std::string& name) {
    if (++includes_ > kMostIncludes)
      return Refused(from.string(), absl::StrCat("more than ", kMostIncludes, " includes"));
    std::error_code error;
    const fs::path file = fs::weakly_canonical(folder_ / name, error);
    const fs::path home = fs::weakly_canonical(folder_, error);
    const fs::path relative = file.lexically_relative(home);
    if (error || name.empty() || fs::path(name).is_absolute() || relative.empty() || *relative.begin() == "..") {
      return Refused(from.string(), absl::StrCat("includes '", name, "', which is outside of its folder"));
    }
    absl::StatusOr<std::string> text = ReadOne(file);
    if (!text.ok()) return text;
    const auto tags = ReadMjcfTags(*text);
    const MjcfTag* const end = tags ? EndOfRoot(*tags) : nullptr;
    if (end == nullptr || tags->front().element != end->element) {  // Whatever it is called, as in MuJoCo.
      return Refused(file.string(), "has no root element with something to include");
    }
    return text->substr(tags->front().end, end->begin - tags->front().end);
  }

  const std::string path_;
  const fs::path folder_;
  size_t bytes_ = 0;
  int includes_ = 0;
};

// Why the model cannot be simulated in its initial pose, or empty. (mj_step would warn.)
std::string ForwardProblem(const mjModel& model) {
  const OwnedData data(mj_makeData(&model));
  mjData* const raw = data.get();
  const HeldMujocoWarnings held;
  const std::string error = MujocoErrorOf([&model, raw] { mj_forward(&model, raw); });
  if (!error.empty()) return absl::StrCat("MuJoCo: ", error);
  if (raw->warning[mjWARN_CONTACTFULL].number > 0 || raw->warning[mjWARN_CNSTRFULL].number > 0) {
    return absl::StrCat("more touches in its initial pose than MuJoCo has memory for: ", held.newest());
  }
  const bool finite = std::all_of(raw->qacc, raw->qacc + model.nv, [](mjtNum a) { return std::abs(a) < mjMAXVAL; });
  return finite ? "" : "accelerations in its initial pose are not finite";
}

}  // namespace

absl::StatusOr<MujocoModelFacts> ReadUserModel(const std::string& path, const MujocoTask& own) {
  absl::StatusOr<std::string> text = Reader(path).Read();
  if (!text.ok()) return text.status();
  if (absl::StripAsciiWhitespace(*text).empty()) return Refused(path, "is empty");
  const auto tags = ReadMjcfTags(*text);
  if (!tags) return Refused(path, "is no XML once its includes are in their places");
  if (const std::string danger = ModelDanger(*tags); !danger.empty()) return Refused(path, InOneLine(danger));
  std::string warning;  // ModelOf will warn again, of a model that is taken.
  const absl::StatusOr<SharedModel> model = TryModel(path, *text, &warning);
  if (!model.ok()) return Refused(path, InOneLine(model.status().message()));
  const mjModel& m = **model;
  if (const std::string other = SizeDifference(own, m); !other.empty()) return Refused(path, other);
  const absl::StatusOr<SharedModel> own_model = ModelOf(own, ModelForm::kPublished);
  if (!own_model.ok()) return own_model.status();
  if (const std::string other = JointDifference(**own_model, m); !other.empty()) return Refused(path, InOneLine(other));
  if (!(m.opt.timestep >= kLeastTimestep && m.opt.timestep <= kMostTimestep)) {
    return Refused(path, absl::StrCat("timestep ", m.opt.timestep, ": want ", kLeastTimestep, " to ", kMostTimestep));
  }
  if ((m.opt.disableflags & mjDSBL_CLAMPCTRL) != 0) {
    return Refused(path, "flag clampctrl=\"disable\": actions beyond ctrlrange would act, which no task expects");
  }
  if (std::string problem = ForwardProblem(m); !problem.empty()) {
    if (!warning.empty()) absl::StrAppend(&problem, "; MuJoCo: ", warning);
    return Refused(path, InOneLine(problem));
  }
  std::string digest = absl::StrCat(absl::Hex(XXH3_64bits(text->data(), text->size()), absl::kZeroPad16));
  MujocoModelFacts facts{.mjcf = *std::move(text),
                         .digest = std::move(digest),
                         .bodies = static_cast<int>(m.nbody),
                         .tendons = static_cast<int>(m.ntendon)};
  for (int i = 0; i < m.nu; ++i) {
    if (!m.actuator_ctrllimited[i]) return Refused(path, "every actuator needs ctrllimited and ctrlrange");
    const mjtNum low = m.actuator_ctrlrange[2 * i], high = m.actuator_ctrlrange[2 * i + 1];
    if (!(std::max(std::abs(low), std::abs(high)) <= double{kNumberBound})) {
      return Refused(path, absl::StrCat("ctrlrange=\"", low, " ", high, "\" of actuator ", i,
                                        ": want numbers of at most ", kNumberBound, " in magnitude"));
    }
    facts.action_low.push_back(static_cast<float>(low));
    facts.action_high.push_back(static_cast<float>(high));
  }
  return facts;
}

}  // namespace skein
