// SPDX-License-Identifier: Apache-2.0
#include "env/synthetic/sticky_cartpole.h"

#include "env/classic/cartpole.h"

namespace skein {
namespace {

class StickyCartPole final : public Env {
 public:
  const EnvSpec& spec() const override { return StickyCartPoleSpec(); }
  void Reset(RandomStream& random) override { env_->Reset(random); }
  bool Step(const float* action, float* reward) override { return env_->Step(action, reward); }
  void Observe(float* obs) const override { env_->Observe(obs); }

 private:
  const std::unique_ptr<Env> env_ = MakeCartPole();
};

}  // namespace

const EnvSpec& StickyCartPoleSpec() {
  static const EnvSpec spec = [] {
    EnvSpec sticky = CartPoleSpec();
    sticky.id = "StickyCartPole-v0";
    sticky.state_size = 0;
    sticky.relocatable = false;
    return sticky;
  }();
  return spec;
}

std::unique_ptr<Env> MakeStickyCartPole() { return std::make_unique<StickyCartPole>(); }

}  // namespace skein
