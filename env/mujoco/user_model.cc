// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/user_model.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "env/mujoco/model.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargest = 1 << 20;  // Bytes of all files.
constexpr int kMostIncludes = 16;
constexpr int kMostBodies = 1000;

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

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), folder_(fs::path(path).parent_path()) {}

  // The text of the model with the contents of the files that it includes in their places.
  absl::StatusOr<std::string> Read() { return ReadOne(fs::path(path_)); }

 private:
  absl::StatusOr<std::string> ReadOne(const fs::path& path) {
    absl::StatusOr<std::string> read = ReadText(path, kLargest - bytes_);
    if (!read.ok()) return read;
    bytes_ += read->size();
    const std::string text = WithoutComments(*read);
    if (absl::Status status = CheckText(path.string(), text); !status.ok()) return status;
    static const auto* const include =
        new std::regex(R"re(<include\s+file\s*=\s*("([^"]*)"|'([^']*)')\s*(/>|>\s*</include\s*>))re");
    std::string out;
    auto from = text.cbegin();
    for (std::smatch match; std::regex_search(from, text.cend(), match, *include); from = match[0].second) {
      out.append(from, match[0].first);
      const absl::StatusOr<std::string> part = Include(path, match[2].matched ? match[2] : match[3]);
      if (!part.ok()) return part;
      out += *part;
    }
    out.append(from, text.cend());
    if (out.find("<include") != std::string::npos) return Refused(path.string(), "an include that cannot be read");
    return out;
  }

  // The content of the root element of an included file.
  absl::StatusOr<std::string> Include(const fs::path& from, const std::string& name) {
    if (++includes_ > kMostIncludes)
      return Refused(from.string(), absl::StrCat("more than ", kMostIncludes, " includes"));
    std::error_code error;
    const fs::path file = fs::weakly_canonical(folder_ / name, error);
    const fs::path home = fs::weakly_canonical(folder_.empty() ? fs::path(".") : folder_, error);
    const fs::path relative = file.lexically_relative(home);
    if (error || name.empty() || fs::path(name).is_absolute() || relative.empty() || *relative.begin() == "..") {
      return Refused(from.string(), absl::StrCat("includes '", name, "', which is outside of its folder"));
    }
    absl::StatusOr<std::string> text = ReadOne(file);
    if (!text.ok()) return text;
    const size_t root = text->find("<mujoco");
    const size_t open = root == std::string::npos ? root : text->find('>', root);
    const size_t close = text->rfind("</mujoco");
    if (open == std::string::npos || close == std::string::npos || close < open) {
      return Refused(file.string(), "has no element mujoco to include");
    }
    return text->substr(open + 1, close - open - 1);
  }

  absl::Status CheckText(const std::string& path, const std::string& text) {
    for (const char* const element : {"mesh", "hfield", "texture", "skin", "plugin", "extension", "composite",
                                      "flexcomp", "replicate", "attach", "model"}) {
      static const auto* const after = new std::string(" \t\r\n/>");
      const std::string begin = absl::StrCat("<", element);
      for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
        const size_t next = at + begin.size();
        if (next >= text.size() || after->find(text[next]) == std::string::npos) continue;
        // A texture that the compiler draws itself needs no file.
        const std::string tag = text.substr(at, text.find('>', at) - at);
        if (std::string(element) == "texture" && tag.find("file") == std::string::npos) continue;
        return Refused(path, absl::StrCat("element <", element, "> is not supported"));
      }
    }
    if (text.find("<!") != std::string::npos) return Refused(path, "document types and CDATA are not supported");
    for (size_t at = text.find("<body"); at != std::string::npos; at = text.find("<body", at + 1)) {
      if (++bodies_ > kMostBodies) return Refused(path, absl::StrCat("more than ", kMostBodies, " bodies"));
    }
    return absl::OkStatus();
  }

  const std::string path_;
  const fs::path folder_;
  size_t bytes_ = 0;
  int includes_ = 0, bodies_ = 0;
};

}  // namespace

absl::StatusOr<MujocoModelFacts> ReadUserModel(const std::string& path) {
  absl::StatusOr<std::string> text = Reader(path).Read();
  if (!text.ok()) return text.status();
  if (absl::StripAsciiWhitespace(*text).empty()) return Refused(path, "is empty");
  const absl::StatusOr<SharedModel> model = CompileModel(path, *text, 0);
  if (!model.ok()) return Refused(path, InOneLine(model.status().message()));
  const mjModel& m = **model;
  MujocoModelFacts facts{.mjcf = *std::move(text), .bodies = static_cast<int>(m.nbody)};
  for (int i = 0; i < m.nu; ++i) {
    if (!m.actuator_ctrllimited[i]) return Refused(path, "every actuator needs ctrllimited and ctrlrange");
    facts.action_low.push_back(static_cast<float>(m.actuator_ctrlrange[2 * i]));
    facts.action_high.push_back(static_cast<float>(m.actuator_ctrlrange[2 * i + 1]));
  }
  return facts;
}

}  // namespace skein
