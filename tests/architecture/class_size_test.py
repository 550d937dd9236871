#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No class of this tree is too large, and no main(). Run in the root of the tree."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import class_size

APART = ("tests", "build", "third_party", "runs")

# Classes that may be larger, and why. A class that is small enough by now must not be here.
EXCEPTIONS = {
    "skein::CoordinatorMetrics": "a member for each metric",
    "skein::LearnerMetrics": "a member for each metric",
}


def ThisTree():
    files = {}
    for path in pathlib.Path(".").rglob("*"):
        if path.suffix in (".h", ".cc") and not path.parts[0].startswith("."):
            if not path.parts[0].startswith(APART):
                files[str(path)] = path.read_text()
    return files


def IsTooLarge(one):
    return one.lines > class_size.MAX_LINES or one.members > class_size.MAX_MEMBERS


class TreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.classes, cls.mains = class_size.Measure(ThisTree())

    def test_enough_is_found(self):  # Else it looked in the wrong place.
        self.assertGreater(len(self.classes), 300)
        self.assertGreater(len(self.mains), 4)

    def test_no_class_is_too_large(self):
        for one in self.classes:
            if one.name not in EXCEPTIONS:
                with self.subTest(one.name):
                    self.assertFalse(IsTooLarge(one), f"{one.lines} lines, {one.members} data members: {one.path}")

    def test_exceptions_are_needed(self):
        large = {one.name for one in self.classes if IsTooLarge(one)}
        self.assertEqual(set(EXCEPTIONS) - large, set())

    def test_no_main_is_too_long(self):
        for main in self.mains:
            with self.subTest(main.path):
                self.assertLess(main.lines, class_size.MAX_MAIN_LINES)


def Sizes(files):
    classes, _ = class_size.Measure(files)
    return {one.name: (one.lines, one.members) for one in classes}


class MeasuringTest(unittest.TestCase):
    def test_lines_of_all_files_are_one_class(self):
        sizes = Sizes({
            "a.h": "namespace n {\n// Comment.\nclass A {\n public:\n  A();\n  int B() const;\n\n private:\n  int c_;\n};\n}\n",
            "a.cc": "namespace n {\nA::A()\n    : c_(1) {\n}\n}\n",
            "a_more.cc": "namespace n {\nint A::B() const {\n  if (c_) {\n    return 1;\n  }\n  return c_;\n}\nint Free() { return 1; }\n}\n",
        })
        self.assertEqual(sizes, {"n::A": (8 + 3 + 6, 1)})

    def test_a_nested_class_is_a_part_of_the_outer_one(self):
        sizes = Sizes({
            "a.h": "class A {\n  struct Inner;\n  class Other {\n    int a_, b_;\n  };\n  Inner* inner_;\n};\n",
            "a.cc": "struct A::Inner {\n  int x = 1;\n  void F();\n};\nvoid A::Inner::F() {\n}\nvoid A::G() {\n}\n",
        })
        self.assertEqual(sizes, {"A": (7 + 4 + 2 + 2, 1), "A::Other": (3, 2), "A::Inner": (4 + 2, 1)})

    def test_classes_of_one_name_in_two_sources_are_two(self):
        sizes, _ = class_size.Measure({
            "a.cc": "namespace {\nstruct S {\n  void F();\n};\nvoid S::F() {\n\n}\n}\n",
            "b.cc": "namespace {\nstruct S {\n  int a;\n};\n}\n",
        })
        self.assertEqual([(one.path, one.lines, one.members) for one in sizes], [("a.cc", 6, 0), ("b.cc", 3, 1)])

    def test_what_is_a_data_member(self):
        members = {
            "int a_;": 1,
            "int a_, b_ = 2;": 2,
            "std::map<int, std::pair<int, int>> a_;": 1,
            "std::function<absl::Status(int, int)> f_;": 1,
            "std::vector<int> a_ ABSL_GUARDED_BY(mu_) = {1, 2};": 1,
            "Backoff backoff_{absl::Milliseconds(200), absl::Seconds(5)};": 1,
            "double a_ = Compute(1, 2);": 1,
            "std::function<void()> f_ = [] { Call(); };": 1,
            "void (*f_)(int);": 1,
            "mutable absl::Mutex mu_; int a_;": 2,
            "struct B { int x; } b_, c_;": 2,
            "struct B { int x; } b_ = {1}; int y_;": 2,
            "struct B { int x; };": 0,
            "struct { int x; int y; } b_;": 1,
            "union { int x; float y; };": 1,
            "enum class B { kA, kB } b_, c_;": 2,
            "static constexpr int kA = 1;": 0,
            "static const char* const kNames[] = {\"a\", \"b\"};": 0,
            "void F(int a, int b);": 0,
            "void F(int a = 1) const { int b; }": 0,
            "A() = default; ~A(); A(const A&) = delete; A& operator=(const A&) = default;": 0,
            "bool operator==(const A& other) const = default;": 0,
            "A(int a, int b) : a_(a), b_{b} { int c; }": 0,
            "virtual absl::StatusOr<int> F(const std::vector<int>& a) = 0;": 0,
            "using B = int; typedef int C; friend class D; class E; enum class F { kA, kB };": 0,
            "template <typename T> void F(T t) { int a; }": 0,
            "int a_;  // int b_;\n/* int c_; */": 1,
            "#define X int b_;\nint a_;": 1,
        }
        for text, count in members.items():
            with self.subTest(text):
                self.assertEqual(Sizes({"a.h": "class A {\n public:\n" + text + "\n};\n"})["A"][1], count)

    def test_heads_of_classes(self):
        for head in ("class A", "struct A", "class A final : public B<C>, private D", "class ABSL_LOCKABLE A",
                     "template <typename T, int N = 3>\nclass A", "union A"):
            with self.subTest(head):
                self.assertEqual(Sizes({"a.h": "namespace n::m {\n%s {\n  int a_;\n};\n}\n" % head})["n::m::A"][1], 1)

    def test_heads_of_functions(self):
        for function in ("A::A(int a) : a_(a), b_{1}, c_([] { return 1; }) {", "A::~A() {", "bool A::operator()(int a) const {",
                         "A& A::operator=(A&& other) noexcept {", "auto A::F() -> std::vector<int> {",
                         "template <typename T>\nvoid A::F(T t) const {", "std::pair<int, int> A::F(std::vector<int> a = {1}) {",
                         "void A::F() ABSL_LOCKS_EXCLUDED(mu_) {", "int* A::F() {"):
            with self.subTest(function):
                sizes = Sizes({"a.h": "class A {\n  int a_;\n};\n", "a.cc": function + "\n  if (1) { \"}\"; }\n}\nint x;\n"})
                self.assertEqual(sizes["A"], (3 + function.count("\n") + 3, 1))

    def test_a_main_is_measured(self):
        _, mains = class_size.Measure({"a.cc": "int main(int argc, char** argv) {\n  return 0;\n}\n"})
        self.assertEqual([(one.path, one.lines) for one in mains], [("a.cc", 3)])


if __name__ == "__main__":
    unittest.main()
