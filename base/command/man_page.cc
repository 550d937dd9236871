// SPDX-License-Identifier: Apache-2.0
#include "base/command/man_page.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/build_info.h"

namespace skein {
namespace {

constexpr const char* kPages[] = {"skein",      "skein-actor", "skein-bench",   "skein-coordinator",
                                  "skein-eval", "skein-fit",   "skein-learner", "skein-policy"};

// `text` without requests and escapes of roff: a line of it may begin with a dot.
std::string Roff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}, {"~", "\\(ti"}, {"^", "\\(ha"}});
  return absl::StartsWith(escaped, ".") ? "\\&" + escaped : escaped;
}

std::string FormatFlag(const Flag& flag) {
  std::string text = absl::StrCat(".TP\n\\fB", Roff(flag.name), "\\fR");
  const std::string value = flag.choices.empty() ? flag.value : absl::StrJoin(flag.choices, "|");
  if (!value.empty() && absl::StartsWith(flag.name, "-")) absl::StrAppend(&text, " \\fI", Roff(value), "\\fR");
  absl::StrAppend(&text, "\n", Roff(flag.help), ".");
  if (flag.required) absl::StrAppend(&text, " Required.");
  if (!flag.fallback.empty()) absl::StrAppend(&text, " Default: ", Roff(flag.fallback), ".");
  if (!flag.variable.empty()) absl::StrAppend(&text, " Environment: ", Roff(flag.variable), ".");
  return text + "\n";
}

std::string FormatFlags(const Command& command) {
  std::string text;
  for (const Flag& flag : command.arguments) absl::StrAppend(&text, FormatFlag(flag));
  for (const Flag& flag : command.flags) absl::StrAppend(&text, FormatFlag(flag));
  return text;
}

// Lines of text, and as they are those that begin with two spaces: commands to type.
std::string FormatFooter(const std::string& footer) {
  std::string text;
  bool literal = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(footer, '\n', absl::SkipEmpty()))) {
    const bool command = absl::StartsWith(line, "  ");
    if (command != literal) absl::StrAppend(&text, command ? ".PP\n.RS\n.nf\n" : ".fi\n.RE\n.PP\n");
    if (!command && !literal) absl::StrAppend(&text, ".PP\n");
    literal = command;
    absl::StrAppend(&text, Roff(std::string(absl::StripLeadingAsciiWhitespace(line))), "\n");
  }
  return text + (literal ? ".fi\n.RE\n" : "");
}

std::string Synopsis(const std::string& path, const Command& command) {
  std::string text = absl::StrCat(".br\n\\fB", Roff(path), "\\fR");
  for (const Flag& flag : command.arguments)
    absl::StrAppend(&text, " \\fI", Roff(absl::AsciiStrToUpper(flag.name)), "\\fR");
  return text + (command.flags.empty() ? "\n" : " [\\fIflags\\fR]\n");
}

void FormatVerbs(const std::string& path, const Command& command, std::string* synopsis, std::string* details) {
  for (const Command& verb : command.verbs) {
    if (verb.hidden) continue;
    const std::string name = absl::StrCat(path, " ", verb.name);
    if (!verb.verbs.empty()) {
      FormatVerbs(name, verb, synopsis, details);
      continue;
    }
    absl::StrAppend(synopsis, Synopsis(name, verb));
    // Verbs that other programs know have their flags there.
    const bool elsewhere = verb.flags.empty();
    absl::StrAppend(details, ".SS ", Roff(name), "\n", Roff(verb.about), ".\n",
                    elsewhere ? absl::StrCat("Its flags: ", Roff(name), " \\-\\-help.\n") : FormatFlags(verb),
                    FormatFooter(verb.footer));
  }
}

}  // namespace

std::string FormatManPage(const Command& command) {
  const std::string page = absl::StrReplaceAll(command.name, {{" ", "-"}});
  std::string synopsis = command.verbs.empty() ? Synopsis(command.name, command) : "", details;
  FormatVerbs(command.name, command, &synopsis, &details);
  std::string about(absl::StripSuffix(absl::StripPrefix(command.about, "Skein: "), "."));
  std::vector<std::string> others;
  for (const char* other : kPages) {
    if (other != page) others.push_back(absl::StrCat("\\fB", Roff(other), "\\fR(1)"));
  }
  std::string text = absl::StrCat(".TH ", absl::AsciiStrToUpper(Roff(page)), " 1 \"\" \"Skein ", BuildVersion(),
                                  "\" \"Skein\"\n", ".SH NAME\n", Roff(page), " \\- ", Roff(about),
                                  "\n.SH SYNOPSIS\n.nh\n.ad l\n", synopsis, ".hy\n.ad\n");
  if (!details.empty()) absl::StrAppend(&text, ".SH VERBS\n", details);
  absl::StrAppend(&text, ".SH FLAGS\n", FormatFlags(command), FormatFooter(command.footer));
  absl::StrAppend(&text, ".SH EXIT STATUS\n",
                  "As in sysexits(3): 0 done; 64 flags or configuration; 65 input data; 69 a service or a port is not "
                  "to be had; 70 a defect; 74 something cannot be written, standard output among it; 75 try again.\n",
                  ".SH SEE ALSO\n", absl::StrJoin(others, ",\n"), "\n");
  return text;
}

}  // namespace skein
