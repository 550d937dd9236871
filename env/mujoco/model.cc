// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/model.h"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "env/mujoco/contacts.h"
#include "env/mujoco/library.h"
#include "env/mujoco/same_joints.h"

namespace skein {
namespace {

constexpr char kFileName[] = "model.xml";

// MuJoCo's file system in memory; what differs between its versions is here.
class VirtualFile {
 public:
  explicit VirtualFile(const std::string& text) : vfs_(std::make_unique<mjVFS>()) {
    mj_defaultVFS(vfs_.get());
#if mjVERSION_HEADER >= 300
    added_ = mj_addBufferVFS(vfs_.get(), kFileName, text.data(), static_cast<int>(text.size())) == 0;
#else
    added_ = mj_makeEmptyFileVFS(vfs_.get(), kFileName, static_cast<int>(text.size())) == 0;
    if (added_) std::memcpy(vfs_->filedata[mj_findFileVFS(vfs_.get(), kFileName)], text.data(), text.size());
#endif
  }
  ~VirtualFile() { mj_deleteVFS(vfs_.get()); }
  VirtualFile(const VirtualFile&) = delete;
  VirtualFile& operator=(const VirtualFile&) = delete;

  bool added() const { return added_; }
  const mjVFS* vfs() const { return vfs_.get(); }

 private:
  std::unique_ptr<mjVFS> vfs_;  // Two megabytes in MuJoCo 2.
  bool added_ = false;
};

struct Models {
  absl::StatusOr<SharedModel> stepped, published;
};

// Of MJCF text. `warning`: as in TryModel.
absl::StatusOr<mjModel*> LoadText(const std::string& name, const std::string& mjcf, std::string* warning) {
  InstallMujocoHandlers();
  // MuJoCo's compiler keeps the last model read in a global. Nothing else ever waits for this lock.
  static absl::Mutex compiler(absl::kConstInit);
  absl::MutexLock lock(&compiler);

  const VirtualFile file(mjcf);
  HeldMujocoWarnings held;  // From MuJoCo 3 on the compiler gives some to the handler, too.
  char message[1000] = "";
  mjModel* const model = file.added() ? mj_loadXML(kFileName, file.vfs(), message, sizeof(message)) : nullptr;
  if (model == nullptr) {
    return absl::InternalError(
        absl::StrCat("MuJoCo ", MujocoLibraryVersion(), " does not accept the model of ", name, ": ", message));
  }
  *warning = message[0] != '\0' ? message : held.newest();
  return model;
}

SharedModel Owned(mjModel* model) {
  return {model, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); }};
}

Models CompileModels(const MujocoTask& task) {
  const MujocoTask::Facts& facts = task.facts();
  const std::string& mjcf = task.mjcf();
  absl::StatusOr<SharedModel> published = CompileModel(facts.id, mjcf, facts.total_mass);
  if (!published.ok()) return {published, published};
  if (const std::string difference = SizeDifference(task, **published); !difference.empty()) {
    const absl::Status other = absl::DataLossError(difference);
    return {other, other};
  }
  // The tasks' own models were compared in hundreds of thousands of states; a user's one was not.
  if (mjcf != facts.mjcf && TouchWithSeveralGeoms(**published)) return {published, published};
  const std::optional<std::string> listed = ListContacts(mjcf, **published);
  if (!listed) return {published, published};
  absl::StatusOr<SharedModel> stepped = CompileModel(facts.id, *listed, facts.total_mass, true);
  if (!stepped.ok() || !ListsAllContacts(**stepped, **published)) return {published, published};
  return {std::move(stepped), std::move(published)};
}

}  // namespace

absl::StatusOr<SharedModel> CompileModel(const std::string& name, const std::string& mjcf, double total_mass,
                                         bool only_pairs) {
  std::string warning;
  const absl::StatusOr<mjModel*> model = LoadText(name, mjcf, &warning);
  if (!model.ok()) return model.status();
  SharedModel owned = Owned(*model);
  if (!warning.empty()) mju_user_warning(warning.c_str());  // Our handler.
  if (only_pairs) CollideOnlyPairs(*model);
  if (total_mass == 0) return owned;
  // Not the attribute settotalmass, which MuJoCo 4 warns about; the arithmetic is the same to the bit.
  mj_setTotalmass(*model, total_mass);
  const OwnedData data(mj_makeData(*model));
  mj_setConst(*model, data.get());
  return owned;
}

absl::StatusOr<SharedModel> TryModel(const std::string& name, const std::string& mjcf, std::string* warning) {
  const absl::StatusOr<mjModel*> model = LoadText(name, mjcf, warning);
  if (!model.ok()) return model.status();
  return Owned(*model);
}

absl::StatusOr<SharedModel> ModelOf(const MujocoTask& task, ModelForm form) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* const compiled = new std::map<std::string, Models>;  // By the text, which begins with the task's name.
  absl::MutexLock lock(&mu);
  const std::string key = absl::StrCat(task.facts().id, " ", task.mjcf());
  auto found = compiled->find(key);
  if (found == compiled->end()) found = compiled->emplace(key, CompileModels(task)).first;
  return form == ModelForm::kStepped ? found->second.stepped : found->second.published;
}

}  // namespace skein
