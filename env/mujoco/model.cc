// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/model.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "env/mujoco/library.h"

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

// Where nothing touches but listed pairs, MuJoCo 2 need not look for anything else; MuJoCo 3 finds that out by itself.
void SearchOnlyPairs(mjModel* model) {
#if mjVERSION_HEADER < 300
  if (model->npair == 0) return;
  for (int geom = 0; geom < model->ngeom; ++geom) {
    if (model->geom_contype[geom] != 0 || model->geom_conaffinity[geom] != 0) return;
  }
  model->opt.collision = mjCOL_PAIR;
#else
  static_cast<void>(model);
#endif
}

}  // namespace

absl::StatusOr<SharedModel> CompileModel(const std::string& name, const std::string& mjcf, double total_mass) {
  InstallMujocoHandlers();
  // MuJoCo's compiler keeps the last model read in a global. Nothing else ever waits for this lock.
  static absl::Mutex compiler(absl::kConstInit);
  absl::MutexLock lock(&compiler);

  const VirtualFile file(mjcf);
  char message[1000] = "";
  mjModel* model = file.added() ? mj_loadXML(kFileName, file.vfs(), message, sizeof(message)) : nullptr;
  SharedModel owned(model, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); });
  if (model == nullptr) {
    return absl::InternalError(
        absl::StrCat("MuJoCo ", MujocoLibraryVersion(), " does not accept the model of ", name, ": ", message));
  }
  if (message[0] != '\0') mju_user_warning(message);  // Our handler.
  SearchOnlyPairs(model);
  // Not the attribute settotalmass, which MuJoCo 4 warns about; the arithmetic is the same to the bit.
  mj_setTotalmass(model, total_mass);
  const OwnedData data(mj_makeData(model));
  mj_setConst(model, data.get());
  return owned;
}

}  // namespace skein
