#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "hardmargin/exact_machines.hpp"
#include "problem.hpp"

using namespace hardmargin;

namespace {

const char* word(ExactStop reason) {
    switch (reason) {
        case ExactStop::converged: return "converged";
        case ExactStop::rho_zero: return "rho_zero";
        case ExactStop::max_stages: return "max_stages";
        case ExactStop::max_time: return "max_time";
    }
    return "";
}

nb::list exact_fits(nb::object matrix, std::optional<Spec> kernel, nb::object column,
                    Vector<std::int32_t> classes, int n_classes, const Machines& machines,
                    std::optional<Vector<double>> diagonal, bool bias, double tol,
                    std::size_t max_stages, bool exact, std::size_t memory_bytes,
                    double max_seconds, int n_threads, nb::object report) {
    const HeldMatrix held = to_matrix(matrix);
    ExactProblem problem;
    set_machines(problem, held, kernel, column, classes, n_classes, machines);
    problem.options.bias = bias;
    problem.options.tol = tol;
    problem.options.max_stages = max_stages;
    problem.options.memory_bytes = memory_bytes;
    problem.options.diagonal = diagonal ? diagonal->data() : nullptr;
    problem.max_seconds = max_seconds;
    problem.n_threads = n_threads;

    Control control(polling(report));
    std::vector<ExactResult> fitted;
    {
        const nb::gil_scoped_release released;
        fitted = exact ? exact_machines<double>(problem, control)
                       : exact_machines<float>(problem, control);
    }
    nb::list results;
    for (ExactResult& r : fitted) {
        nb::dict d;
        d["support"] = to_numpy(std::move(r.support));
        d["multipliers"] = to_numpy(std::move(r.multipliers));
        d["intercept"] = r.intercept;
        d["rho"] = r.rho;
        d["rho_lower_bound"] = r.rho_lower_bound;
        d["violation"] = r.violation;
        d["n_stages"] = r.n_stages;
        d["n_values"] = r.n_values;
        d["stop_reason"] = word(r.reason);
        results.append(d);
    }
    return results;
}

}  // namespace

void bind_exact(nb::module_& module) {
    module.def("exact", &exact_fits, nb::arg("matrix"), nb::arg("kernel").none(),
               nb::arg("column").none(), nb::kw_only(), nb::arg("classes"), nb::arg("n_classes"),
               nb::arg("machines"), nb::arg("diagonal").none(), nb::arg("bias"), nb::arg("tol"),
               nb::arg("max_stages"), nb::arg("exact"), nb::arg("memory_bytes"),
               nb::arg("max_seconds"), nb::arg("n_threads"), nb::arg("report").none(),
               "Train exact hard-margin machines; one dict of results each.");
}
