#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "convert.hpp"
#include "hardmargin/expansion.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;

namespace {

template <class T>
void block(nb::handle kernel, nb::handle queries, nb::handle support, nb::handle out,
           std::int64_t n_threads, const nb::object& check) {
    const KernelSpec spec = to_kernel(kernel);
    const auto [q, s] = to_matrices(queries, support);
    const Grid<T> to(out, "out", q.matrix.n_rows, s.matrix.n_rows);
    q.check_apart_from("out", to.array, "queries");
    s.check_apart_from("out", to.array, "support");
    const int threads = to_n_threads(n_threads);
    Control control(to_poll(check));
    const nb::gil_scoped_release released;
    kernel_block<T>(spec, q.matrix, s.matrix, to.data, to.stride, threads, control);
}

// Coefficients of all machines by support row, as in a CSR matrix, and the arrays they are in.
struct HeldCoefficients {
    Vector<const std::int64_t> starts;
    Vector<const std::int32_t> machines;
    Vector<const double> values;
    Coefficients coefficients;

    HeldCoefficients(nb::handle starts_of, nb::handle machines_of, nb::handle values_of,
                     const std::string& names, std::size_t n_support, std::size_t n_machines)
        : starts(starts_of, names + "starts", n_support + 1),
          machines(machines_of, names + "machines"),
          values(values_of, names + "values", machines.size),
          coefficients{n_machines, starts.data, machines.data, values.data} {
        check_starts(names + "starts", starts, machines.size);
        check_indices(names + "machines", machines.data, machines.size, n_machines);
    }
};

Grid<double> to_sums(nb::handle out, const HeldMatrix& queries, const HeldMatrix& support) {
    Grid<double> sums(out, "out");
    sums.check_has_no_gaps("out");
    if (sums.n_rows != queries.matrix.n_rows)
        refuse("out has ", sums.n_rows, " rows, but queries has ", queries.matrix.n_rows);
    queries.check_apart_from("out", sums.array, "queries");
    support.check_apart_from("out", sums.array, "support");
    return sums;
}

void expansion(nb::handle kernel, nb::handle queries, nb::handle support, nb::handle starts,
               nb::handle machines, nb::handle values, nb::handle out, const std::string& dtype,
               std::int64_t n_threads, const nb::object& check) {
    const KernelSpec spec = to_kernel(kernel);
    const auto [q, s] = to_matrices(queries, support);
    const Grid<double> sums = to_sums(out, q, s);
    const HeldCoefficients held(starts, machines, values, "", s.matrix.n_rows, sums.n_cols);
    check_apart("out", sums.array, "values", held.values.array);
    const bool wide = is_float64(dtype);
    const int threads = to_n_threads(n_threads);
    Control control(to_poll(check));
    const nb::gil_scoped_release released;
    if (wide)
        expand<double>(spec, q.matrix, s.matrix, held.coefficients, sums.data, threads, control);
    else expand<float>(spec, q.matrix, s.matrix, held.coefficients, sums.data, threads, control);
}

void expansion_of_decays(const std::string& metric, const std::vector<double>& gammas,
                         nb::handle queries, nb::handle support,
                         const std::vector<nb::tuple>& coefficients, nb::handle out,
                         const std::string& dtype, std::int64_t n_threads) {
    const KernelKind kind = to_metric(metric);
    const auto [q, s] = to_matrices(queries, support);
    const Grid<double> sums = to_sums(out, q, s);
    if (gammas.empty()) refuse("gammas is empty, expected one per kernel");
    if (coefficients.size() != gammas.size())
        refuse("coefficients has ", coefficients.size(), " entries, but gammas has ",
               gammas.size());
    std::vector<HeldCoefficients> held;
    std::vector<Coefficients> of_kernels;
    for (std::size_t k = 0; k < gammas.size(); ++k) {
        to_number(text("gammas[", k, "]"), gammas[k], 0.0, true);
        const nb::tuple& parts = coefficients[k];
        const std::string name = text("coefficients[", k, "]");
        if (parts.size() != 3)
            throw nb::type_error(
                text(name, " has ", parts.size(), " parts, expected (starts, machines, values)")
                    .c_str());
        held.emplace_back(parts[0], parts[1], parts[2], name + ".", s.matrix.n_rows, sums.n_cols);
        check_apart("out", sums.array, name, held.back().values.array);
        of_kernels.push_back(held.back().coefficients);
    }
    const bool wide = is_float64(dtype);
    const int threads = to_n_threads(n_threads);
    Control control(Monitor().poll());
    const nb::gil_scoped_release released;
    if (wide)
        expand_decays<double>(kind, gammas, q.matrix, s.matrix, of_kernels, sums.data, threads,
                              control);
    else
        expand_decays<float>(kind, gammas, q.matrix, s.matrix, of_kernels, sums.data, threads,
                             control);
}

template <class T>
void define_block(nb::module_& module, const char* name) {
    module.def(name, &block<T>, nb::arg("kernel"), nb::arg("queries"), nb::arg("support"),
               nb::arg("out"), nb::arg("n_threads"), nb::arg("check").none(),
               "Fill out[q, s] with the kernel of queries[q] and support[s]. `check` is called now "
               "and then, and may raise.");
}

}  // namespace

void bind_kernels(nb::module_& module) {
    module.def(
        "level", [] { return std::string(level().name); },
        "Name of the CPU level in use: 'avx512', 'avx2' or 'baseline'.");
    define_block<float>(module, "block_float32");
    define_block<double>(module, "block_float64");
    module.def("expand", &expansion, nb::arg("kernel"), nb::arg("queries"), nb::arg("support"),
               nb::arg("starts"), nb::arg("machines"), nb::arg("values"), nb::arg("out"),
               nb::arg("dtype"), nb::arg("n_threads"), nb::arg("check").none(),
               "Fill out[q, m] with the sum over s of coef[s, m] times the kernel; coef is CSR by "
               "support row. `check` is called now and then, and may raise.");
    module.def("expand_decays", &expansion_of_decays, nb::arg("metric"), nb::arg("gammas"),
               nb::arg("queries"), nb::arg("support"), nb::arg("coefficients"), nb::arg("out"),
               nb::arg("dtype"), nb::arg("n_threads"),
               "Add to out[q, m] the sums of several kernels exp(-gamma * distance) of one metric, "
               "each with its own coefficients, CSR by support row.");
}
