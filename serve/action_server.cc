// SPDX-License-Identifier: Apache-2.0
#include "serve/action_server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/number/philox.h"
#include "base/process/clock.h"

namespace skein {
namespace {

// The noise of one request's samples, after those of `noise`.
void AddNoise(const PortableActor& actor, uint64_t seed, const BatchJob& job, std::vector<float>* noise) {
  RandomStream random(seed, RandomPurpose::kAction, job.number, 0);
  const bool discrete = actor.portable().spec.discrete;
  for (size_t i = 0; i < job.rows * static_cast<size_t>(actor.action_size()); ++i) {
    noise->push_back(static_cast<float>(discrete ? random.Uniform() : random.Normal()));
  }
}

bool SameInterface(const PortableActor& a, const PortableActor& b) {
  const PortablePolicy &one = a.portable(), &other = b.portable();
  return one.env_id == other.env_id && a.observation_size() == b.observation_size() &&
         one.spec.discrete == other.spec.discrete && one.spec.action_size == other.spec.action_size &&
         a.state_size() == b.state_size() && one.network.memory == other.network.memory;
}

}  // namespace

ActionServer::ActionServer(const Options& options, std::shared_ptr<const ServedPolicy> policy, ServeMetrics* metrics)
    : options_(options),
      metrics_(metrics),
      sessions_(options.most_sessions, options.session_idle),
      policy_(std::move(policy)),
      batcher_(options.batch_wait, options.batch_rows, [this](std::vector<BatchJob>* jobs) { Compute(jobs); }) {}

std::shared_ptr<const ServedPolicy> ActionServer::policy() const {
  absl::MutexLock lock(&mu_);
  return policy_;
}

absl::Status ActionServer::Replace(std::shared_ptr<const ServedPolicy> policy) {
  absl::MutexLock lock(&mu_);
  if (!SameInterface(policy_->actor, policy->actor)) {
    return absl::FailedPreconditionError(
        absl::StrCat(policy->checkpoint,
                     " is of another environment or has other sizes than the policy that is "
                     "served; start another server for it"));
  }
  policy_ = std::move(policy);
  return absl::OkStatus();
}

absl::Status ActionServer::EndSession(const std::string& name) {
  const absl::Status ended = sessions_.End(name);
  metrics_->SetSessions(sessions_.size());
  return ended;
}

absl::Status ActionServer::Check(const Step& step, const ServedPolicy& policy) const {
  const size_t size = static_cast<size_t>(policy.actor.observation_size()), rows = step.observations.size() / size;
  if (rows < 1 || rows > kMostRows || step.observations.size() % size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("observations: got ", step.observations.size(), " numbers, want ",
                                                   size, " for each of 1 to ", kMostRows, " rows"));
  }
  if (!step.resets.empty() && step.resets.size() != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("resets: got ", step.resets.size(), ", want one for each of ", rows, " rows, or none"));
  }
  const auto bad = std::find_if(step.observations.begin(), step.observations.end(),
                                [](float value) { return !std::isfinite(value); });
  if (bad == step.observations.end()) return absl::OkStatus();
  const size_t at = static_cast<size_t>(bad - step.observations.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("observations: number ", at % size, " of row ", at / size, " is not finite"));
}

void ActionServer::Act(Step step, std::function<void(absl::StatusOr<Acted>)> done) {
  const absl::Duration begin = MonotonicNow();
  const auto refuse = [this, &done](const absl::Status& why) {
    metrics_->Refused();
    done(why);
  };
  const std::shared_ptr<const ServedPolicy> policy = this->policy();
  if (absl::Status status = Check(step, *policy); !status.ok()) return refuse(status);
  const auto S = static_cast<size_t>(policy->actor.state_size());
  BatchJob job;
  job.rows = step.observations.size() / static_cast<size_t>(policy->actor.observation_size());
  job.resets = std::move(step.resets);
  job.resets.resize(job.rows, 0);
  std::shared_ptr<std::vector<float>> own;  // Without a session.
  if (step.session.empty()) {
    own = std::make_shared<std::vector<float>>(job.rows * S);
    job.state = own.get();
    std::fill(job.resets.begin(), job.resets.end(), uint8_t{1});
  } else {
    const auto session = sessions_.Take(step.session, begin);
    if (!session.ok()) return refuse(session.status());
    if ((*session)->rows != 0 && (*session)->rows != job.rows) {
      const size_t before = (*session)->rows;
      sessions_.Return(step.session, begin);
      return refuse(
          absl::InvalidArgumentError(absl::StrCat("observations: got ", job.rows, " rows, this session has ", before)));
    }
    if ((*session)->rows == 0) {
      (*session)->rows = job.rows;
      (*session)->state.resize(job.rows * S);
      std::fill(job.resets.begin(), job.resets.end(), uint8_t{1});
      metrics_->SetSessions(sessions_.size());
    }
    job.state = &(*session)->state;
  }
  job.observations = std::move(step.observations);
  job.sample = step.sample;
  job.number = requests_.fetch_add(1);
  job.done = [this, done = std::move(done), begin, rows = job.rows, session = std::move(step.session), own](
                 std::vector<float> actions, std::shared_ptr<const ServedPolicy> by) {
    const absl::Duration now = MonotonicNow();
    if (!session.empty()) sessions_.Return(session, now);
    metrics_->Answered(rows, now - begin);
    done(Acted{std::move(actions), rows, std::move(by)});
  };
  batcher_.Add(std::move(job));
}

void ActionServer::Compute(std::vector<BatchJob>* jobs) {
  const std::shared_ptr<const ServedPolicy> policy = this->policy();
  const PortableActor& actor = policy->actor;
  const auto A = static_cast<size_t>(actor.action_size()), H = static_cast<size_t>(actor.head_size());
  std::vector<float> observations, state, noise;
  std::vector<uint8_t> resets;
  size_t rows = 0;
  for (const BatchJob& job : *jobs) {
    rows += job.rows;
    observations.insert(observations.end(), job.observations.begin(), job.observations.end());
    resets.insert(resets.end(), job.resets.begin(), job.resets.end());
    state.insert(state.end(), job.state->begin(), job.state->end());
  }
  std::vector<float> head(rows * H);
  actor.Head(observations.data(), resets.data(), static_cast<int64_t>(rows), state.data(), head.data());
  metrics_->Computed(rows);
  size_t row = 0, kept = 0;
  for (BatchJob& job : *jobs) {
    std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(kept), job.state->size(), job.state->begin());
    kept += job.state->size();
    noise.clear();
    if (job.sample) AddNoise(actor, options_.seed, job, &noise);
    std::vector<float> actions(job.rows * A);
    actor.Action(head.data() + row * H, job.sample ? noise.data() : nullptr, static_cast<int64_t>(job.rows),
                 actions.data());
    row += job.rows;
    job.done(std::move(actions), policy);
  }
}

}  // namespace skein
