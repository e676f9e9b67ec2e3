#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "hardmargin/machines.hpp"
#include "problem.hpp"

using namespace hardmargin;

namespace {

const char* word(StopReason reason) {
    switch (reason) {
        case StopReason::converged: return "converged";
        case StopReason::exhausted: return "exhausted";
        case StopReason::max_stages: return "max_stages";
        case StopReason::max_time: return "max_time";
    }
    return "";
}

// method: "auto", "fused", "lazy", "bits" or "lazy-bits"
void set_method(GreedyProblem& problem, const std::string& method) {
    if (method == "auto") return;
    const bool lazy = method.starts_with("lazy");
    problem.options.schedule = lazy ? Schedule::lazy : Schedule::eager;
    problem.use_bits = problem.need_bits = method.ends_with("bits");
}

nb::list greedy(nb::object matrix, std::optional<Spec> kernel, nb::object column,
                Vector<std::int32_t> classes, int n_classes, const Machines& machines,
                std::optional<Vector<double>> weights, std::optional<Vector<double>> diagonal,
                const std::string& method, bool exact, double max_visits, double step_tol,
                std::size_t max_stages, std::size_t memory_bytes, double max_seconds,
                std::size_t block_rows, int n_threads, nb::object report) {
    const HeldMatrix held = to_matrix(matrix);
    GreedyProblem problem;
    set_machines(problem, held, kernel, column, classes, n_classes, machines);
    problem.options.max_visits = max_visits;
    problem.options.step_tol = step_tol;
    problem.options.max_stages = max_stages;
    problem.options.memory_bytes = memory_bytes;
    problem.options.weights = weights ? weights->data() : nullptr;
    problem.options.diagonal = diagonal ? diagonal->data() : nullptr;
    problem.block_rows = block_rows;
    problem.max_seconds = max_seconds;
    problem.n_threads = n_threads;
    set_method(problem, method);

    Control control(polling(report));
    GreedyMachines fitted;
    {
        const nb::gil_scoped_release released;
        fitted = exact ? greedy_machines<double>(problem, control)
                       : greedy_machines<float>(problem, control);
    }
    nb::list results;
    for (GreedyResult& r : fitted.results) {
        nb::dict d;
        d["rows"] = to_numpy(std::move(r.rows));
        d["steps"] = to_numpy(std::move(r.steps));
        d["support"] = to_numpy(std::move(r.support));
        d["multipliers"] = to_numpy(std::move(r.multipliers));
        d["losses"] = to_numpy(std::move(r.losses));
        d["squared_norm"] = r.squared_norm;
        d["violation"] = r.violation;
        d["n_values"] = r.n_values;
        d["stop_reason"] = word(r.reason);
        d["method"] = !fitted.bits ? (r.lazy ? "lazy" : "fused") : (r.lazy ? "lazy-bits" : "bits");
        results.append(d);
    }
    return results;
}

}  // namespace

void bind_greedy(nb::module_& module) {
    module.def("greedy", &greedy, nb::arg("matrix"), nb::arg("kernel").none(),
               nb::arg("column").none(), nb::kw_only(), nb::arg("classes"), nb::arg("n_classes"),
               nb::arg("machines"), nb::arg("weights").none(), nb::arg("diagonal").none(),
               nb::arg("method"), nb::arg("exact"), nb::arg("max_visits"), nb::arg("step_tol"),
               nb::arg("max_stages"), nb::arg("memory_bytes"), nb::arg("max_seconds"),
               nb::arg("block_rows"), nb::arg("n_threads"), nb::arg("report").none(),
               "Train greedy stagewise machines; one dict of results each.");
}
