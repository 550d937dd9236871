// SPDX-License-Identifier: Apache-2.0
#include "base/command/completion.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

struct Word {
  std::string text, help;
};

// What can follow a verb; `path` is all words up to it, "skein certs init".
struct Place {
  std::string path;
  std::vector<Word> words;
  std::vector<Flag> taking_values;
  bool takes_runs = false;  // Names of folders in --runs-dir.
};

void CollectPlaces(const Command& command, const std::string& path, std::vector<Place>* places) {
  Place place{path, {}, {}, false};
  for (const Command& verb : command.verbs) {
    if (!verb.hidden) place.words.push_back({verb.name, verb.about});
  }
  for (const Flag& argument : command.arguments) {
    for (const std::string& choice : argument.choices) place.words.push_back({choice, argument.help});
    place.takes_runs = place.takes_runs || argument.value == "RUN";
  }
  for (const Flag& flag : command.flags) {
    place.words.push_back({flag.name, flag.help});
    if (!flag.value.empty()) place.taking_values.push_back(flag);
  }
  places->push_back(place);
  for (const Command& verb : command.verbs) {
    if (!verb.hidden) CollectPlaces(verb, absl::StrCat(path, " ", verb.name), places);
  }
}

// TEXT is what the library calls a value of which nothing more is said.
bool TakesFile(const Flag& flag) { return flag.value == "FILE" || flag.value == "DIR" || flag.value == "TEXT"; }

// A word of a shell, whatever is in it.
std::string Literal(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// "'skein train'|'skein head'", of all places but the program itself.
std::string VerbPaths(const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (size_t i = 1; i < places.size(); ++i) paths.push_back(Literal(places[i].path));
  return absl::StrJoin(paths, "|");
}

// The cases of a flag that waits for its value, for bash and zsh: what offers choices, files, or nothing.
std::string ValueCases(const std::vector<Place>& places, const std::string& choices, const std::string& files) {
  std::string cases;
  std::vector<std::string> with_files, others;
  for (const Place& place : places) {
    for (const Flag& flag : place.taking_values) {
      const std::string pattern = Literal(absl::StrCat(place.path, " ", flag.name));
      if (!flag.choices.empty()) {
        absl::StrAppend(&cases, "    ", pattern, ") ",
                        absl::StrReplaceAll(choices, {{"CHOICES", absl::StrJoin(flag.choices, " ")}}), " ;;\n");
      } else {
        (TakesFile(flag) ? with_files : others).push_back(pattern);
      }
    }
  }
  if (!with_files.empty()) absl::StrAppend(&cases, "    ", absl::StrJoin(with_files, "|"), ") ", files, " ;;\n");
  if (!others.empty()) absl::StrAppend(&cases, "    ", absl::StrJoin(others, "|"), ") return ;;\n");
  return cases;
}

std::string Bash(const std::string& program, const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    std::vector<std::string> words;
    for (const Word& word : place.words) words.push_back(word.text);
    absl::StrAppend(&cases, "    ", Literal(place.path), ") words=", Literal(absl::StrJoin(words, " ")),
                    place.takes_runs
                        ? "; mapfile -t names < <(CDPATH= cd -- \"$runs\" &> /dev/null && compgen -d -- \"$word\")"
                        : "",
                    " ;;\n");
  }
  const std::string function = absl::StrCat("_", program);
  return absl::StrCat(
      "# Completion for ", program, "; source it, or put it into ~/.local/share/bash-completion/completions/", program,
      "\n", function, "() {\n",
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at=", program, " words= runs=runs i\n",
      "  local -a names=()\n  COMPREPLY=()\n", "  for ((i = 1; i < COMP_CWORD; ++i)); do\n",
      "    case \"$at ${COMP_WORDS[i]}\" in ", VerbPaths(places), ") at=\"$at ${COMP_WORDS[i]}\" ;; esac\n",
      "    [[ ${COMP_WORDS[i-1]} != --runs-dir ]] || runs=${COMP_WORDS[i]}\n",
      "    [[ ${COMP_WORDS[i-2]} != --runs-dir || ${COMP_WORDS[i-1]} != '=' ]] || runs=${COMP_WORDS[i]}\n", "  done\n",
      // Bash makes three words of --flag=value.
      "  if [[ $before == '=' && ${COMP_WORDS[COMP_CWORD-2]} == --* ]]; then before=${COMP_WORDS[COMP_CWORD-2]}\n",
      "  elif [[ $word == '=' && $before == --* ]]; then word=; fi\n", "  case \"$at $before\" in\n",
      ValueCases(places,
                 "COMPREPLY=($(compgen -W 'CHOICES' -- \"$word\")); "
                 "[[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace; return",
                 "compopt -o default; return"),
      "  esac\n", "  case \"$at\" in\n", cases, "  esac\n", "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n",
      // Names of folders are quoted, whatever is in them.
      "  for i in \"${names[@]}\"; do COMPREPLY+=(\"$(printf %q \"$i\")\"); done\n",
      "  [[ $word == -* || -n $words && -n ${COMPREPLY[*]} ]] || compopt -o default\n", "}\ncomplete -F ", function,
      " ", program, "\n");
}

std::string Zsh(const std::string& program, const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    std::vector<std::string> words;
    for (const Word& word : place.words) {
      words.push_back(Literal(absl::StrCat(absl::StrReplaceAll(word.text, {{":", "\\:"}}), ":", OneLine(word.help))));
    }
    absl::StrAppend(&cases, "    ", Literal(place.path), ") words_here=(", absl::StrJoin(words, " "), ")",
                    place.takes_runs ? "; names=($runs/*(N-/:t))" : "", " ;;\n");
  }
  const std::string function = absl::StrCat("_", program);
  return absl::StrCat(
      "#compdef ", program, "\n# Completion for ", program, "; a file _", program,
      " in a folder of $fpath, or source it after compinit\n", function, "() {\n", "  local at=", program,
      " i before=${words[CURRENT-1]} runs=runs none=1\n", "  local -a words_here names\n",
      "  for ((i = 2; i < CURRENT; ++i)); do\n", "    case \"$at ${words[i]}\" in ", VerbPaths(places),
      ") at=\"$at ${words[i]}\" ;; esac\n", "    [[ ${words[i-1]} != --runs-dir ]] || runs=${words[i]}\n",
      "    [[ ${words[i]} != --runs-dir=* ]] || runs=${words[i]#*=}\n", "  done\n",
      "  if [[ ${words[CURRENT]} == --*=* ]]; then before=${words[CURRENT]%%=*}; compset -P 1 '*='; fi\n",
      "  case \"$at $before\" in\n",
      // No blank behind `key=`, whose value follows.
      ValueCases(places,
                 "words_here=(CHOICES); compadd -S '' -- ${(M)words_here:#*=} && none=0; "
                 "compadd -- ${words_here:#*=} && none=0; return none",
                 "_files; return"),
      "  esac\n", "  case \"$at\" in\n", cases, "  esac\n", "  (( $#names )) && compadd -a names && none=0\n",
      "  _describe ", program, " words_here && none=0\n", "  (( none )) && _files\n", "}\n",
      "if [ \"$funcstack[1]\" = ", function, " ]; then ", function, " \"$@\"; else compdef ", function, " ", program,
      "; fi\n");
}

std::string Fish(const std::string& program, const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (size_t i = 1; i < places.size(); ++i) paths.push_back(Literal(places[i].path));
  const std::string function = absl::StrCat("__", program, "_at"), runs = absl::StrCat("__", program, "_runs");
  std::string text = absl::StrCat(
      "# Completion for ", program, "; put it into ~/.config/fish/completions/", program, ".fish\n", "function ", runs,
      "\n  set -l words (commandline -opc)\n  set -l runs runs\n"
      "  if set -l i (contains -i -- --runs-dir $words); and test $i -lt (count $words)\n"
      "    set runs $words[(math $i + 1)]\n  end\n"
      "  for word in (string match -- '--runs-dir=*' $words)\n    set runs (string replace -- '--runs-dir=' '' $word)\n"
      "  end\n  set -l folders $runs/*/\n"
      "  string replace -r '.*/([^/]+)/$' '$1' -- $folders\nend\n",
      "function ", function, "\n  set -l at ", program,
      "\n  for word in (commandline -opc)[2..-1]\n    if contains -- \"$at $word\" ", absl::StrJoin(paths, " "),
      "\n      set at \"$at $word\"\n    end\n  end\n  test \"$at\" = \"$argv\"\nend\n", "complete -c ", program,
      " -f\n");
  for (const Place& place : places) {
    const std::string begin =
        absl::StrCat("complete -c ", program, " -n ", Literal(absl::StrCat(function, " ", place.path)));
    if (place.takes_runs) absl::StrAppend(&text, begin, " -a ", Literal(absl::StrCat("(", runs, ")")), "\n");
    for (const Word& word : place.words) {
      if (!absl::StartsWith(word.text, "--")) {
        absl::StrAppend(&text, begin, " -a ", Literal(word.text), " -d ", Literal(OneLine(word.help)), "\n");
        continue;
      }
      absl::StrAppend(&text, begin, " -l ", word.text.substr(2), " -d ", Literal(OneLine(word.help)));
      for (const Flag& flag : place.taking_values) {
        if (flag.name != word.text) continue;
        absl::StrAppend(&text, TakesFile(flag) ? " -r -F" : " -x");
        if (!flag.choices.empty()) absl::StrAppend(&text, " -a ", Literal(absl::StrJoin(flag.choices, " ")));
      }
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> FormatCompletion(const Command& command, const std::string& shell) {
  std::vector<Place> places;
  CollectPlaces(command, command.name, &places);
  if (shell == "bash") return Bash(command.name, places);
  if (shell == "zsh") return Zsh(command.name, places);
  if (shell == "fish") return Fish(command.name, places);
  return absl::InvalidArgumentError(absl::StrCat("shell ", Quoted(shell), ": want bash, zsh or fish"));
}

}  // namespace skein
