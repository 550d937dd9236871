// SPDX-License-Identifier: Apache-2.0
#include "sweep/constraint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/config/config_reflection.h"
#include "base/config/nearest_name.h"
#include "base/process/message_text.h"

namespace skein {

struct Constraint::Node {
  char operation = 0;  // '+', '-', '*', '/', '%'; 0 = a leaf.
  bool is_path = false;
  std::string word;  // A leaf's path, number or text.
  std::shared_ptr<const Node> left, right;
};

namespace {

using Node = Constraint::Node;
using NodePtr = std::shared_ptr<const Node>;

constexpr int kMostNested = 100;

// Recursive descent over sum := product (+|- product)*, product := leaf (*|/|% leaf)*, leaf := (sum) | word.
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<NodePtr> Sum() { return Chain("+-", &Parser::Product); }

  // The comparison here; empty: there is none.
  std::string Comparison() {
    Skip();
    for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      const absl::string_view one(sign);
      if (text_.substr(at_, one.size()) != one) continue;
      at_ += one.size();
      return sign;
    }
    return "";
  }

  bool AtEnd() {
    Skip();
    return at_ == text_.size();
  }
  size_t at() const { return at_; }

 private:
  absl::StatusOr<NodePtr> Product() { return Chain("*/%", &Parser::Leaf); }

  absl::StatusOr<NodePtr> Chain(absl::string_view signs, absl::StatusOr<NodePtr> (Parser::*part)()) {
    auto left = (this->*part)();
    while (left.ok()) {
      Skip();
      if (at_ == text_.size() || !absl::StrContains(signs, text_[at_])) return left;
      auto node = std::make_shared<Node>();
      node->operation = text_[at_++];
      auto right = (this->*part)();
      if (!right.ok()) return right;
      node->left = *std::move(left);
      node->right = *std::move(right);
      left = NodePtr(std::move(node));
    }
    return left;
  }

  absl::StatusOr<NodePtr> Leaf() {
    Skip();
    if (at_ < text_.size() && text_[at_] == '(') {
      if (++nested_ > kMostNested) return absl::InvalidArgumentError("too many parentheses");
      ++at_;
      auto inner = Sum();
      if (!inner.ok()) return inner;
      Skip();
      if (at_ == text_.size() || text_[at_] != ')') return absl::InvalidArgumentError("expected ')'");
      ++at_;
      --nested_;
      return inner;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(begin)) ++at_;
    if (at_ == begin) return absl::InvalidArgumentError("expected a setting, a number or '('");
    auto node = std::make_shared<Node>();
    node->word = std::string(text_.substr(begin, at_ - begin));
    double number = 0;
    const bool is_number = absl::SimpleAtod(node->word, &number);
    const std::vector<std::string>& known = SettingPaths();
    node->is_path = !is_number && std::count(known.begin(), known.end(), node->word) > 0;
    if (!is_number && !node->is_path && absl::StrContains(node->word, '.')) {
      at_ = begin;
      return absl::InvalidArgumentError(config_reflection::UnknownKey(node->word));
    }
    return NodePtr(std::move(node));
  }

  // Whether the letter here belongs to the word from `begin` on: "1e-3" has a sign.
  bool IsWord(size_t begin) const {
    const char letter = text_[at_];
    if (absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '.' || letter == '_') return true;
    const bool exponent = at_ > begin && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
                          absl::ascii_isdigit(static_cast<unsigned char>(text_[begin]));
    return exponent && (letter == '-' || letter == '+');
  }

  void Skip() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int nested_ = 0;
};

std::string Text(const Node& node, const Constraint::Lookup& lookup) {
  return node.is_path ? lookup(node.word) : node.word;
}

// NaN: not a number.
double Value(const Node& node, const Constraint::Lookup& lookup) {
  if (node.operation == 0) {
    double number = 0;
    return absl::SimpleAtod(Text(node, lookup), &number) ? number : std::numeric_limits<double>::quiet_NaN();
  }
  const double left = Value(*node.left, lookup), right = Value(*node.right, lookup);
  switch (node.operation) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return right == 0 ? std::numeric_limits<double>::quiet_NaN() : left / right;
    default:
      return right == 0 ? std::numeric_limits<double>::quiet_NaN() : std::fmod(left, right);
  }
}

}  // namespace

absl::StatusOr<Constraint> Constraint::Parse(const std::string& text, size_t* column) {
  Parser parser(text);
  Constraint constraint;
  constraint.text_ = text;
  const auto fail = [&](absl::string_view problem) {
    *column = parser.at();
    return absl::InvalidArgumentError(absl::StrCat(problem, " in ", Quoted(text)));
  };
  auto left = parser.Sum();
  if (!left.ok()) return fail(left.status().message());
  constraint.comparison_ = parser.Comparison();
  if (constraint.comparison_.empty()) return fail("expected <, <=, >, >=, == or !=");
  auto right = parser.Sum();
  if (!right.ok()) return fail(right.status().message());
  if (!parser.AtEnd()) return fail("a constraint has one comparison; more than that is");
  constraint.left_ = *std::move(left);
  constraint.right_ = *std::move(right);
  return constraint;
}

std::string Constraint::NotANumber(const Lookup& lookup) const {
  const bool may_be_text = comparison_ == "==" || comparison_ == "!=";
  if (may_be_text && left_->operation == 0 && right_->operation == 0) return "";
  std::vector<const Node*> nodes = {left_.get(), right_.get()};
  while (!nodes.empty()) {
    const Node* const node = nodes.back();
    nodes.pop_back();
    double number = 0;
    if (node->operation != 0) {
      nodes.insert(nodes.end(), {node->left.get(), node->right.get()});
    } else if (!absl::SimpleAtod(Text(*node, lookup), &number)) {
      return node->word;
    }
  }
  return "";
}

bool Constraint::Holds(const Lookup& lookup) const {
  const double left = Value(*left_, lookup), right = Value(*right_, lookup);
  if (std::isnan(left) || std::isnan(right)) {
    if (left_->operation != 0 || right_->operation != 0) return false;
    const bool same = Text(*left_, lookup) == Text(*right_, lookup);
    return comparison_ == "==" ? same : comparison_ == "!=" && !same;
  }
  if (comparison_ == "<") return left < right;
  if (comparison_ == "<=") return left <= right;
  if (comparison_ == ">") return left > right;
  if (comparison_ == ">=") return left >= right;
  return comparison_ == "==" ? left == right : left != right;
}

}  // namespace skein
