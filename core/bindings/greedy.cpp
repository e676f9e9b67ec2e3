#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "hardmargin/greedy_machines.hpp"
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

struct Method {
    Schedule schedule;
    bool use_bits, need_bits;
};

Method to_method(const std::string& name) {
    return to_choice<Method>("method", name,
                             {{"auto", {Schedule::automatic, true, false}},
                              {"fused", {Schedule::eager, false, false}},
                              {"lazy", {Schedule::lazy, false, false}},
                              {"bits", {Schedule::eager, true, true}},
                              {"lazy-bits", {Schedule::lazy, true, true}}});
}

std::vector<GreedyResult>
greedy(nb::handle matrix, nb::handle kernel, nb::handle column, nb::handle classes,
       std::int64_t n_classes, const Machines& machines, nb::handle weights, nb::handle diagonal,
       const std::string& method, const std::string& dtype, double max_visits, double step_tol,
       std::int64_t max_stages, std::int64_t memory_bytes, std::int64_t block_rows,
       std::int64_t n_threads, const std::string& folder, const std::vector<nb::bytes>& states,
       nb::handle keep, double keep_seconds, const nb::object& monitor) {
    HeldProblem held(matrix, kernel, column, classes, n_classes, machines);
    GreedyProblem problem;
    held.set(problem);
    const Method chosen = to_method(method);
    problem.options.schedule = chosen.schedule;
    problem.use_bits = chosen.use_bits;
    problem.need_bits = chosen.need_bits;
    problem.options.max_visits = to_number("max_visits", max_visits, 1.0);
    problem.options.step_tol = to_number("step_tol", step_tol, 0.0);
    problem.options.max_stages = to_count("max_stages", max_stages);
    problem.options.memory_bytes = to_count("memory_bytes", memory_bytes);
    problem.options.weights = held.row_numbers(weights, "weights", true);
    problem.options.diagonal = held.row_numbers(diagonal, "diagonal", false);
    problem.block_rows = to_count("block_rows", block_rows, 1);
    problem.n_threads = to_n_threads(n_threads);
    problem.folder = folder;
    if (!states.empty() && states.size() != problem.machines.size())
        refuse("states has ", states.size(), " entries for ", problem.machines.size(), " machines");
    to_number("keep_seconds", keep_seconds, 0.0);
    if (!keep.is_none() && !PyCallable_Check(keep.ptr()))
        throw nb::type_error("keep must be a function or None");
    for (std::size_t m = 0; m < states.size(); ++m) {
        Resumption resumption{{states[m].c_str(), states[m].size()}, {}, keep_seconds};
        if (!keep.is_none())
            resumption.keep = [keep, m](const std::string& state) {
                const nb::gil_scoped_acquire gil;
                return nb::cast<double>(keep(m, nb::bytes(state.data(), state.size())));
            };
        problem.resumptions.push_back(std::move(resumption));
    }
    const bool has_bounds = problem.source == Source::rows && problem.kernel.is_distance();
    if (chosen.schedule == Schedule::lazy && (!has_bounds || problem.options.diagonal))
        refuse("method is '", method,
               "', which needs a kernel that decays with a distance, and no diagonal");
    const bool wide = is_float64(dtype);
    const Monitor heard(monitor);
    problem.max_seconds = heard.seconds_left();
    Control control(heard.poll());
    const nb::gil_scoped_release released;
    return wide ? greedy_machines<double>(problem, control)
                : greedy_machines<float>(problem, control);
}

}  // namespace

void bind_greedy(nb::module_& module) {
    auto result = nb::class_<GreedyResult>(module, "GreedyResult", "A greedy machine.");
    def_array(result, "rows", &GreedyResult::rows);
    def_array(result, "steps", &GreedyResult::steps);
    def_array(result, "losses", &GreedyResult::losses);
    def_array(result, "support", &GreedyResult::support);
    def_array(result, "multipliers", &GreedyResult::multipliers);
    result.def_ro("squared_norm", &GreedyResult::squared_norm)
        .def_ro("violation", &GreedyResult::violation)
        .def_ro("n_values", &GreedyResult::n_values)
        .def_prop_ro("stop_reason", [](const GreedyResult& r) { return word(r.reason); })
        .def_prop_ro("method", [](const GreedyResult& r) {
            if (r.bits) return r.lazy ? "lazy-bits" : "bits";
            return r.lazy ? "lazy" : "fused";
        });
    module.def("greedy", &greedy, nb::arg("matrix"), nb::arg("kernel").none(),
               nb::arg("column").none(), nb::kw_only(), nb::arg("classes"), nb::arg("n_classes"),
               nb::arg("machines"), nb::arg("weights").none(), nb::arg("diagonal").none(),
               nb::arg("method"), nb::arg("dtype"), nb::arg("max_visits"), nb::arg("step_tol"),
               nb::arg("max_stages"), nb::arg("memory_bytes"), nb::arg("block_rows"),
               nb::arg("n_threads"), nb::arg("folder"), nb::arg("states"), nb::arg("keep").none(),
               nb::arg("keep_seconds"), nb::arg("monitor").none(),
               "Train greedy stagewise machines; one result each.");
}
