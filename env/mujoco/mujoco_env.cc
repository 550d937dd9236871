// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/mujoco_env.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "env/mujoco/library.h"
#include "env/mujoco/model.h"
#include "env/mujoco/user_model.h"

namespace skein {
namespace {

// Simulation data for the calling thread to step all its environments of a model in: what belongs to an environment is
// its state. So the working memory of MuJoCo stays in the thread's caches, whichever environment steps next.
mjData* DataOfThread(const SharedModel& model) {
  static thread_local SharedModel of;
  static thread_local OwnedData data;
  if (of != model) {
    data.reset(mj_makeData(model.get()));
    of = model;
  }
  return data.get();
}

// Where an array is in MuJoCo's data, and in what tasks see.
struct ArrayMembers {
  double* mjData::*data;
  const double* MujocoView::*view;
};

ArrayMembers MembersOf(MujocoArray array) {
  switch (array) {
    case MujocoArray::kXpos:
      return {&mjData::xpos, &MujocoView::xpos};
    case MujocoArray::kXipos:
      return {&mjData::xipos, &MujocoView::xipos};
    case MujocoArray::kCinert:
      return {&mjData::cinert, &MujocoView::cinert};
    case MujocoArray::kCvel:
      return {&mjData::cvel, &MujocoView::cvel};
    case MujocoArray::kCfrcExt:
      return {&mjData::cfrc_ext, &MujocoView::cfrc_ext};
    case MujocoArray::kQfrcActuator:
      return {&mjData::qfrc_actuator, &MujocoView::qfrc_actuator};
    case MujocoArray::kQfrcConstraint:
      return {&mjData::qfrc_constraint, &MujocoView::qfrc_constraint};
    case MujocoArray::kSiteXpos:
      return {&mjData::site_xpos, &MujocoView::site_xpos};
  }
  return {};
}

class MujocoEnv final : public Env {
 public:
  MujocoEnv(std::shared_ptr<const MujocoTask> task, SharedModel model, std::vector<int> named_bodies)
      : task_(std::move(task)),
        model_(std::move(model)),
        named_bodies_(std::move(named_bodies)),
        decision_time_(task_->facts().frame_skip * model_->opt.timestep),
        state_(task_->spec().state_size),
        tendons_(2 * static_cast<size_t>(model_->ntendon)),
        terms_(task_->facts().reward_terms.size()) {
    double* next = state_.data();
    const auto take = [&next](int size) { return std::exchange(next, next + size); };
    time_ = take(1);
    qpos_ = take(static_cast<int>(model_->nq));
    qvel_ = take(static_cast<int>(model_->nv));
    warmstart_ = take(static_cast<int>(model_->nv));
    view_ = {.qpos = qpos_,
             .qvel = qvel_,
             .ten_length = tendons_.data(),
             .ten_velocity = tendons_.data() + model_->ntendon,
             .body_mass = model_->body_mass,
             .qpos0 = model_->qpos0,
             .bodies = static_cast<int>(model_->nbody),
             .timestep = model_->opt.timestep,
             .named = named_bodies_.data()};
    for (const MujocoArray array : task_->facts().reads) {
      const auto [in_data, in_view] = MembersOf(array);
      const int size = task_->ReadSize(array);
      kept_.push_back({in_data, take(size), size});
      view_.*in_view = kept_.back().values;
      contact_forces_ = contact_forces_ || array == MujocoArray::kCfrcExt;
    }
    view_.episode = take(task_->facts().episode_columns);
    sums_ = next;
  }

  MujocoEnv(const MujocoEnv&) = delete;
  MujocoEnv& operator=(const MujocoEnv&) = delete;

  const EnvSpec& spec() const override { return task_->spec(); }

  void Reset(RandomStream& random) override {
    mjData* const data = DataOfThread(model_);
    mj_resetData(model_.get(), data);
    std::fill(state_.begin(), state_.end(), 0.0);
    velocity_ = {};
    task_->Start(random, data->qpos, data->qvel);
    task_->StartEpisode(random, view_.episode);
    // As Gymnasium does: the contact solver's first start comes from here.
    const std::string error = MujocoErrorOf([this, data] { mj_forward(model_.get(), data); });
    if (!error.empty()) {
      mj_resetData(model_.get(), data);
      throw std::runtime_error(absl::StrCat("MuJoCo: ", error));
    }
    Take(*data);
  }

  bool Step(const float* action, float* reward) override {
    mjData* const data = DataOfThread(model_);
    task_->Disturb(view_, qvel_);
    data->time = *time_;
    std::copy_n(qpos_, model_->nq, data->qpos);
    std::copy_n(qvel_, model_->nv, data->qvel);
    std::copy_n(warmstart_, model_->nv, data->qacc_warmstart);
    std::copy_n(action, model_->nu, data->ctrl);
    // mj_step leaves what follows from positions (xpos, contacts) one substep behind qpos; tasks expect it so.
    const std::array<double, 3> before = task_->Place(view_);
    const std::string error = MujocoErrorOf([this, data] {
      for (int i = 0; i < task_->facts().frame_skip; ++i) mj_step(model_.get(), data);
    });
    // Of a user's model, for instance where more touches than MuJoCo has memory for.
    if (!error.empty()) mj_resetData(model_.get(), data);
    if (!error.empty() || HasDiverged(*data)) {
      Take(*data);
      mj_resetData(model_.get(), data);
      *reward = std::numeric_limits<float>::quiet_NaN();
      return false;
    }
    if (contact_forces_) mj_rnePostConstraint(model_.get(), data);
    Take(*data);
    velocity_ = task_->Place(view_);
    for (int i = 0; i < 3; ++i) velocity_[i] = (velocity_[i] - before[i]) / decision_time_;
    const MujocoOutcome outcome = task_->Judge(view_, velocity_, action, terms_.data());
    for (size_t i = 0; i < terms_.size(); ++i) sums_[i] += terms_[i];
    if (task_->facts().info.x_velocity) sums_[terms_.size()] += velocity_[0];
    *reward = static_cast<float>(outcome.reward);
    return outcome.terminated;
  }

  void Observe(float* obs) const override { task_->Observe(view_, obs); }

  void EpisodeMetrics(float* metrics) const override {
    for (size_t i = 0; i < terms_.size(); ++i) *metrics++ = static_cast<float>(sums_[i]);
    if (task_->facts().info.x_velocity) {
      const double steps = std::max(1.0, std::round(*time_ / decision_time_));
      *metrics++ = static_cast<float>(sums_[terms_.size()] / steps);
    }
    for (const MujocoInfo& info : task_->facts().info.last) {
      *metrics++ = static_cast<float>(info.value(view_, velocity_));
    }
  }

  void SaveState(double* state) const override { std::copy(state_.begin(), state_.end(), state); }

  void LoadState(const double* state) override {
    velocity_ = {};
    std::copy_n(state, state_.size(), state_.begin());
    std::fill(tendons_.begin(), tendons_.end(), 0.0);
  }

 private:
  struct Kept {
    double* mjData::*source;
    double* values;  // In state_.
    int size;
  };

  // Everything that is kept of a simulation.
  void Take(const mjData& data) {
    *time_ = data.time;
    std::copy_n(data.qpos, model_->nq, qpos_);
    std::copy_n(data.qvel, model_->nv, qvel_);
    std::copy_n(data.qacc_warmstart, model_->nv, warmstart_);
    for (const Kept& kept : kept_) std::copy_n(data.*kept.source, kept.size, kept.values);
    std::copy_n(data.ten_length, model_->ntendon, tendons_.begin());
    std::copy_n(data.ten_velocity, model_->ntendon, tendons_.begin() + model_->ntendon);
  }

  const std::shared_ptr<const MujocoTask> task_;
  const SharedModel model_;
  const std::vector<int> named_bodies_;
  const double decision_time_;  // s
  std::vector<double> state_;   // As MujocoTask::spec() says. The pointers below, and those of view_, lead into it.
  double *time_ = nullptr, *qpos_ = nullptr, *qvel_ = nullptr, *warmstart_ = nullptr;
  std::vector<Kept> kept_;       // What observations, rewards and velocities need besides qpos and qvel.
  double* sums_ = nullptr;       // Of the reward terms, and of the x-velocity, for the metrics of the episode.
  std::vector<double> tendons_;  // Lengths, then velocities; not in a saved state.
  MujocoView view_ = {};
  bool contact_forces_ = false;  // Whether the task reads them.
  // Of the last step. The velocity, of Place, is 0 before the first one.
  std::vector<double> terms_;
  std::array<double, 3> velocity_ = {};
};

// As Gymnasium takes a number, whatever the names of bodies are; -1: the model has none of this name or number.
int FindBody(const mjModel& model, const std::string& body) {
  const bool is_number = std::all_of(body.begin(), body.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  if (!is_number) return mj_name2id(&model, mjOBJ_BODY, body.c_str());
  int number = -1;
  return absl::SimpleAtoi(body, &number) && number < model.nbody ? number : -1;
}

// The numbers of Facts::named_bodies in the model. InvalidArgument: it lacks one.
absl::StatusOr<std::vector<int>> FindBodies(const mjModel& model, const MujocoTask& task) {
  std::vector<int> numbers;
  for (const std::string& body : task.facts().named_bodies) {
    numbers.push_back(FindBody(model, body));
    if (numbers.back() < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model of ", task.facts().id, " has no body '", body, "'"));
    }
  }
  return numbers;
}

// The path with the home folder in place of a leading "~", as Gymnasium takes it.
std::string WithHome(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && absl::StartsWith(path, "~/") ? home + path.substr(1) : path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(std::shared_ptr<const MujocoTask> task) {
  absl::StatusOr<SharedModel> model = ModelOf(*task, ModelForm::kStepped);
  if (!model.ok()) return model.status();
  absl::StatusOr<std::vector<int>> named_bodies = FindBodies(**model, *task);
  if (!named_bodies.ok()) return named_bodies.status();
  return std::make_unique<MujocoEnv>(std::move(task), *std::move(model), *std::move(named_bodies));
}

absl::StatusOr<std::shared_ptr<const MujocoTask>> FindMujocoTask(const std::string& env_id,
                                                                 const MujocoOptions& options) {
  const std::string file = TextOf(options, "xml_file"), digest = TextOf(options, "xml_digest");
  if (file.empty()) {
    auto task = MakeMujocoTask(env_id, options);
    if (!task.ok() || options.arguments.count("main_body") == 0) return task;  // Others are in the task's own model.
    const absl::StatusOr<SharedModel> model = ModelOf(**task, ModelForm::kPublished);
    if (!model.ok()) return model.status();
    if (const auto bodies = FindBodies(**model, **task); !bodies.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("env.mujoco.main_body: ", bodies.status().message()));
    }
    return task;
  }
  const auto own = MakeMujocoTask(env_id);
  if (!own.ok()) return own.status();
  const std::string path = WithHome(file);
  const auto refused = [&path](absl::string_view why) {
    return absl::DataLossError(absl::StrCat("env.mujoco.xml_file: ", path, ": ", why));
  };
  const absl::StatusOr<MujocoModelFacts> facts = ReadUserModel(path, **own);
  if (!facts.ok()) return facts.status();
  if (!digest.empty() && digest != kAnyModelDigest && digest != facts->digest) {
    return refused(absl::StrCat("has changed, or is another node's: its digest is ", facts->digest,
                                ", that of the file with which the run was planned ", digest,
                                "; restore it, or take it as it is by env.mujoco.xml_digest=", kAnyModelDigest));
  }
  absl::StatusOr<std::shared_ptr<const MujocoTask>> task = MakeMujocoTask(env_id, options, &*facts);
  if (!task.ok()) return task;
  const absl::StatusOr<SharedModel> model = ModelOf(**task, ModelForm::kPublished);
  if (!model.ok()) return model.status();
  if (const auto bodies = FindBodies(**model, **task); !bodies.ok()) return refused(bodies.status().message());
  return task;
}

absl::StatusOr<std::string> UserModelDigest(const std::string& env_id, const MujocoOptions& options) {
  const std::string file = TextOf(options, "xml_file");
  if (file.empty()) return std::string();
  const auto own = MakeMujocoTask(env_id);
  if (!own.ok()) return own.status();
  const absl::StatusOr<MujocoModelFacts> facts = ReadUserModel(WithHome(file), **own);
  if (!facts.ok()) return facts.status();
  return facts->digest;
}

}  // namespace skein
