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

// The array in `data`.
double* ArrayOf(MujocoArray array, mjData* data) {
  switch (array) {
    case MujocoArray::kXpos:
      return data->xpos;
    case MujocoArray::kXipos:
      return data->xipos;
    case MujocoArray::kCinert:
      return data->cinert;
    case MujocoArray::kCvel:
      return data->cvel;
    case MujocoArray::kCfrcExt:
      return data->cfrc_ext;
    case MujocoArray::kQfrcActuator:
      return data->qfrc_actuator;
    case MujocoArray::kQfrcConstraint:
      return data->qfrc_constraint;
    case MujocoArray::kSiteXpos:
      return data->site_xpos;
  }
  return nullptr;
}

class MujocoEnv final : public Env {
 public:
  MujocoEnv(std::shared_ptr<const MujocoTask> task, SharedModel model, std::vector<int> named_bodies)
      : task_(std::move(task)),
        model_(std::move(model)),
        data_(mj_makeData(model_.get())),
        named_bodies_(std::move(named_bodies)),
        episode_(task_->facts().episode_columns),
        view_{.qpos = data_->qpos,
              .qvel = data_->qvel,
              .xpos = data_->xpos,
              .xipos = data_->xipos,
              .cinert = data_->cinert,
              .cvel = data_->cvel,
              .cfrc_ext = data_->cfrc_ext,
              .qfrc_actuator = data_->qfrc_actuator,
              .qfrc_constraint = data_->qfrc_constraint,
              .site_xpos = data_->site_xpos,
              .ten_length = data_->ten_length,
              .ten_velocity = data_->ten_velocity,
              .body_mass = model_->body_mass,
              .qpos0 = model_->qpos0,
              .bodies = static_cast<int>(model_->nbody),
              .timestep = model_->opt.timestep,
              .episode = episode_.data(),
              .named = named_bodies_.data()},
        decision_time_(task_->facts().frame_skip * model_->opt.timestep),
        terms_(task_->facts().reward_terms.size()),
        sums_(terms_.size() + (task_->facts().info.x_velocity ? 1 : 0)) {
    for (const MujocoArray array : task_->facts().reads) {
      kept_.push_back({ArrayOf(array, data_.get()), task_->ReadSize(array)});
      contact_forces_ = contact_forces_ || array == MujocoArray::kCfrcExt;
    }
  }

  const EnvSpec& spec() const override { return task_->spec(); }

  void Reset(RandomStream& random) override {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    velocity_ = {};
    mj_resetData(model_.get(), data_.get());
    task_->Start(random, data_->qpos, data_->qvel);
    std::fill(episode_.begin(), episode_.end(), 0.0);
    task_->StartEpisode(random, episode_.data());
    // As Gymnasium does: the contact solver's first start comes from here.
    const std::string error = MujocoErrorOf([this] { mj_forward(model_.get(), data_.get()); });
    if (!error.empty()) throw std::runtime_error(absl::StrCat("MuJoCo: ", error));
  }

  bool Step(const float* action, float* reward) override {
    std::copy_n(action, model_->nu, data_->ctrl);
    task_->Disturb(view_, data_->qvel);
    // mj_step leaves what follows from positions (xpos, contacts) one substep behind qpos; tasks expect it so.
    const std::array<double, 3> before = task_->Place(view_);
    const std::string error = MujocoErrorOf([this] {
      for (int i = 0; i < task_->facts().frame_skip; ++i) mj_step(model_.get(), data_.get());
    });
    // Of a user's model, for instance where more touches than MuJoCo has memory for.
    if (!error.empty()) mj_resetData(model_.get(), data_.get());
    if (!error.empty() || HasDiverged(*data_)) {
      *reward = std::numeric_limits<float>::quiet_NaN();
      return false;
    }
    if (contact_forces_) mj_rnePostConstraint(model_.get(), data_.get());
    velocity_ = task_->Place(view_);
    for (int i = 0; i < 3; ++i) velocity_[i] = (velocity_[i] - before[i]) / decision_time_;
    const MujocoOutcome outcome = task_->Judge(view_, velocity_, action, terms_.data());
    for (size_t i = 0; i < terms_.size(); ++i) sums_[i] += terms_[i];
    if (task_->facts().info.x_velocity) sums_.back() += velocity_[0];
    *reward = static_cast<float>(outcome.reward);
    return outcome.terminated;
  }

  void Observe(float* obs) const override { task_->Observe(view_, obs); }

  void EpisodeMetrics(float* metrics) const override {
    for (const double sum : sums_) *metrics++ = static_cast<float>(sum);
    if (task_->facts().info.x_velocity) {
      const double steps = std::max(1.0, std::round(data_->time / decision_time_));
      metrics[-1] = static_cast<float>(sums_.back() / steps);
    }
    for (const MujocoInfo& info : task_->facts().info.last) {
      *metrics++ = static_cast<float>(info.value(view_, velocity_));
    }
  }

  void SaveState(double* state) const override {
    *state++ = data_->time;
    state = std::copy_n(data_->qpos, model_->nq, state);
    state = std::copy_n(data_->qvel, model_->nv, state);
    state = std::copy_n(data_->qacc_warmstart, model_->nv, state);
    for (const Kept& kept : kept_) state = std::copy_n(kept.values, kept.size, state);
    state = std::copy(episode_.begin(), episode_.end(), state);
    std::copy(sums_.begin(), sums_.end(), state);
  }

  void LoadState(const double* state) override {
    velocity_ = {};
    mj_resetData(model_.get(), data_.get());
    data_->time = *state++;
    const auto load = [&state](double* values, int size) {
      std::copy_n(state, size, values);
      state += size;
    };
    load(data_->qpos, static_cast<int>(model_->nq));
    load(data_->qvel, static_cast<int>(model_->nv));
    load(data_->qacc_warmstart, static_cast<int>(model_->nv));
    for (const Kept& kept : kept_) load(kept.values, kept.size);
    load(episode_.data(), static_cast<int>(episode_.size()));
    std::copy_n(state, sums_.size(), sums_.begin());
  }

 private:
  struct Kept {
    double* values;  // In data_.
    int size;
  };

  const std::shared_ptr<const MujocoTask> task_;
  const SharedModel model_;
  const OwnedData data_;
  const std::vector<int> named_bodies_;
  std::vector<double> episode_;  // What the task keeps of the episode.
  const MujocoView view_;
  const double decision_time_;   // s
  std::vector<Kept> kept_;       // What observations, rewards and velocities need besides qpos and qvel.
  bool contact_forces_ = false;  // Whether the task reads them.
  // Of the last step. The velocity, of Place, is 0 before the first one.
  std::vector<double> terms_;
  std::array<double, 3> velocity_ = {};
  std::vector<double> sums_;  // Of the reward terms and the x-velocity, for the metrics of the episode.
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

constexpr absl::string_view kAnyDigest = "any";

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
  if (!digest.empty() && digest != kAnyDigest && digest != facts->digest) {
    return refused(absl::StrCat("has changed, or is another node's: its digest is ", facts->digest,
                                ", that of the file with which the run was planned ", digest,
                                "; restore it, or take it as it is by env.mujoco.xml_digest=any"));
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
