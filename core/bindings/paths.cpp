#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "hardmargin/path_machines.hpp"
#include "problem.hpp"

using namespace hardmargin;

namespace {

const char* word(PathStop reason) {
    switch (reason) {
        case PathStop::patience: return "patience";
        case PathStop::n_stages: return "n_stages";
        case PathStop::max_stages: return "max_stages";
        case PathStop::rho_zero: return "rho_zero";
        case PathStop::outrun: return "outrun";
        case PathStop::max_time: return "max_time";
        case PathStop::running: break;
    }
    return "";
}

ValueSource to_source(const std::string& name) {
    if (name == "values") return ValueSource::values;
    if (name == "distances") return ValueSource::distances;
    if (name == "factor") return ValueSource::factor;
    throw std::invalid_argument("unknown source " + name);
}

// (kind, index of the array, gamma)
using Candidate = std::tuple<std::string, std::size_t, double>;

template <class T>
nb::list paths(const std::vector<Vector<T, 2>>& arrays, const std::vector<Candidate>& kernels,
               Vector<std::int32_t> classes, const Machines& machines, Vector<double> weights,
               Vector<std::uint8_t, 2> train, Vector<std::uint8_t, 2> test, const std::string& loss,
               bool bias, std::size_t n_stages, std::size_t max_stages, bool race, bool compact,
               std::size_t memory_bytes, double max_seconds, int n_threads, nb::object report) {
    PathsProblem<T> problem;
    problem.n_rows = classes.shape(0);
    for (const auto& [kind, index, gamma] : kernels) {
        const auto& array = arrays.at(index);
        const ValueSource source = to_source(kind);
        if (array.shape(0) != problem.n_rows ||
            (source != ValueSource::factor && array.shape(1) != problem.n_rows))
            throw std::invalid_argument("an array must have a row for every row");
        problem.kernels.push_back({source, array.data(), array.shape(1), gamma,
                                   compact && source == ValueSource::distances});
    }
    if (weights.shape(0) != problem.n_rows || train.shape(1) != problem.n_rows ||
        test.shape(0) != train.shape(0) || test.shape(1) != problem.n_rows)
        throw std::invalid_argument("weights and splits must have an entry for every row");
    problem.classes = classes.data();
    problem.weights = weights.data();
    for (const auto& [negative, positive] : machines)
        problem.machines.push_back({negative, positive});
    problem.n_splits = train.shape(0);
    problem.train = train.data();
    problem.test = test.data();
    problem.options.loss = loss == "exponential" ? PathLoss::exponential : PathLoss::logistic;
    problem.options.bias = bias;
    problem.options.n_stages = n_stages;
    problem.options.max_stages = max_stages;
    problem.race = race;
    problem.memory_bytes = memory_bytes;
    problem.max_seconds = max_seconds;
    problem.n_threads = n_threads;

    Control control(polling(report));
    std::vector<MachinePaths> fitted;
    {
        const nb::gil_scoped_release released;
        fitted = path_machines<T>(problem, control);
    }
    nb::list results;
    for (MachinePaths& machine : fitted) {
        nb::list of_kernels;
        for (PathResult& r : machine.paths) {
            nb::dict d;
            d["coefficients"] = to_numpy(std::move(r.coefficients));
            d["intercept"] = r.intercept;
            d["held_scores"] = to_numpy(std::move(r.held_scores));
            d["mass"] = r.mass;
            d["loss"] = r.loss;
            d["stages"] = to_numpy(std::move(r.stages));
            d["losses"] = to_numpy(std::move(r.losses));
            d["n_stages"] = r.n_stages;
            d["stop_reason"] = word(r.reason);
            of_kernels.append(d);
        }
        nb::dict d;
        d["rows"] = to_numpy(std::move(machine.rows));
        d["held_rows"] = to_numpy(std::move(machine.held_rows));
        d["held_splits"] = to_numpy(std::move(machine.held_splits));
        d["paths"] = of_kernels;
        results.append(d);
    }
    return results;
}

template <class T>
void define(nb::module_& module, const char* name) {
    module.def(name, &paths<T>, nb::arg("arrays"), nb::arg("kernels"), nb::kw_only(),
               nb::arg("classes"), nb::arg("machines"), nb::arg("weights"), nb::arg("train"),
               nb::arg("test"), nb::arg("loss"), nb::arg("bias"), nb::arg("n_stages"),
               nb::arg("max_stages"), nb::arg("race"), nb::arg("compact"), nb::arg("memory_bytes"),
               nb::arg("max_seconds"), nb::arg("n_threads"), nb::arg("report").none(),
               "Run paths of stages with held-out scores: for every machine one a kernel.");
}

}  // namespace

void bind_paths(nb::module_& module) {
    define<float>(module, "paths_float32");
    define<double>(module, "paths_float64");
}
