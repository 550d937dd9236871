# SPDX-License-Identifier: Apache-2.0
"""Suggestions of one of Optuna's samplers, for `skein sweep`: one JSON object a line, an answer to each.

    {"begin": {"sampler", "seed", "options", "direction", "space", "journal", "study", "state"}} -> {"optuna": VERSION}
    {"ask": NUMBER}                                    -> {"point": [value or null for each parameter of the space]}
    {"tell": NUMBER, "state", "value", "reports"}      -> {}
    any of them                                        -> {"error": TEXT, "code": EXIT CODE}

The study is kept in memory and begins with the journal's trials. After each ask the sampler's own state is written to
the file `state`, as it was before and after: who starts again after a crash gets the suggestions that would have come.
"""
import difflib
import importlib.util
import inspect
import json
import os
import pickle
import sys


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def sampler_class(optuna, kind):
    known = {}
    for name in dir(optuna.samplers):
        one = getattr(optuna.samplers, name)
        if inspect.isclass(one) and name.endswith("Sampler") and not inspect.isabstract(one):
            known[name[: -len("Sampler")].lower()] = one
    # Those need what a file of settings cannot hold, or are Skein's own.
    for name in ("partialfixed", "grid", "bruteforce"):
        known.pop(name, None)
    wanted = kind.lower().replace("-", "").replace("_", "")
    wanted = wanted[: -len("sampler")] if wanted.endswith("sampler") else wanted
    if wanted not in known:
        near = difflib.get_close_matches(wanted, ["grid", "random", *known], n=1, cutoff=0)
        raise Refused(64, f"there is no sampler '{kind}'; the nearest is '{near[0]}'")
    return known[wanted]


# What Optuna imports only once a sampler has seen some trials.
NEEDED_LATER = {"GPSampler": ("scipy", "torch"), "CmaEsSampler": ("cmaes",)}


def check_packages(kind):
    lacking = [name for name in NEEDED_LATER.get(kind.__name__, ()) if importlib.util.find_spec(name) is None]
    if lacking:
        names = " ".join(lacking)
        raise Refused(69, f"{kind.__name__} needs {names}; install with: {sys.executable} -m pip install {names}")


def load_sampler(path, trials):
    """As it was when the sweep had so many trials, or fewer; None: it was not saved."""
    try:
        with open(path, "rb") as file:
            states = pickle.load(file)
        usable = [number for number in states if number <= trials]
        return pickle.loads(states[max(usable)]) if usable else None
    except FileNotFoundError:
        return None
    except Exception as error:  # Whatever pickle or another release of Optuna makes of it.
        why = f"{path} cannot be read ({type(error).__name__}: {error})"
        raise Refused(70, f"{why}; without that file the sampler goes on by the journal alone") from error


def save_states(path, states):
    with open(path + ".new", "wb") as file:
        pickle.dump(states, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


class Helper:
    def begin(self, request):
        try:
            import optuna
        except ImportError as error:
            raise Refused(69, f"{error}; install it with: {sys.executable} -m pip install optuna") from error
        self.optuna = optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        earlier = []
        if request["journal"] and os.path.exists(request["journal"]):
            storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(request["journal"]))
            study = optuna.load_study(study_name=request["study"], storage=storage)
            # Without those that somebody else has added: nobody runs them.
            earlier = [trial for trial in study.get_trials(deepcopy=False) if "group" in trial.user_attrs]
        kind = sampler_class(optuna, request["sampler"])
        check_packages(kind)
        self.state_path = request["state"]
        sampler = load_sampler(self.state_path, len(earlier))
        if sampler is None:
            arguments = dict(request["options"])
            if "seed" in inspect.signature(kind).parameters:
                arguments.setdefault("seed", request["seed"] + len(earlier))
            try:
                sampler = kind(**arguments)
            except ImportError as error:
                raise Refused(69, str(error)) from error
            except (TypeError, ValueError) as error:
                raise Refused(64, f"sampler {request['sampler']}: {error}") from error
        self.study = optuna.create_study(direction=request["direction"], sampler=sampler)
        for trial in earlier:
            self.study.add_trial(trial)
        self.space = [
            (one["path"], optuna.distributions.json_to_distribution(one["distribution"]), one.get("when"))
            for one in request["space"]
        ]
        return {"optuna": optuna.__version__}

    def suggest(self, trial, path, distribution):
        kinds = self.optuna.distributions
        if isinstance(distribution, kinds.CategoricalDistribution):
            return trial.suggest_categorical(path, distribution.choices)
        if isinstance(distribution, kinds.IntDistribution):
            step = {} if distribution.log else {"step": distribution.step}
            return trial.suggest_int(path, distribution.low, distribution.high, log=distribution.log, **step)
        return trial.suggest_float(path, distribution.low, distribution.high, log=distribution.log)

    def ask(self, number):
        before = pickle.dumps(self.study.sampler)
        try:
            trial = self.study.ask()
            point = []
            for path, distribution, when in self.space:
                if when and point[when["parameter"]] not in when["values"]:
                    point.append(None)
                    continue
                point.append(distribution.to_internal_repr(self.suggest(trial, path, distribution)))
        except ImportError as error:
            raise Refused(69, str(error)) from error
        if trial.number != number:
            raise Refused(70, f"trial {number} was asked for, and the study is at {trial.number}")
        save_states(self.state_path, {number: before, number + 1: pickle.dumps(self.study.sampler)})
        return {"point": point}

    def tell(self, request):
        number, state = request["tell"], self.optuna.trial.TrialState(request["state"])
        storage = self.study._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.study._study_id, number)
        if storage.get_trial(trial_id).state.is_finished():
            return {}
        for step, value in request["reports"]:
            storage.set_trial_intermediate_value(trial_id, step, value)
        if state.is_finished():
            complete = state == self.optuna.trial.TrialState.COMPLETE
            self.study.tell(number, request["value"] if complete else None, state=state)
        return {}

    def answer(self, request):
        if "begin" in request:
            return self.begin(request["begin"])
        if "ask" in request:
            return self.ask(request["ask"])
        return self.tell(request)


def main():
    helper = Helper()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What libraries print is no answer.
    for line in sys.stdin:
        try:
            answer = helper.answer(json.loads(line))
        except Refused as error:
            answer = {"error": str(error), "code": error.code}
        except Exception as error:  # The other side says what it was about.
            answer = {"error": f"{type(error).__name__}: {error}", "code": 70}
        print(json.dumps(answer), file=answers)


main()
