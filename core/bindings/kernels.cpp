#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "convert.hpp"
#include "hardmargin/expansion.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;
using Spec = std::tuple<std::string, double, double, double>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

namespace {

template <class T>
void block(const Spec& spec, nb::object queries, nb::object support, Strided<T> out,
           int n_threads) {
    if (out.size() > 0 && out.stride(1) != 1)
        throw std::invalid_argument("rows of out must be contiguous");
    const KernelSpec kernel = to_kernel(spec);
    const HeldMatrix q = to_matrix(queries), s = to_matrix(support);
    Control control(polling(nb::none()));
    T* to = out.data();
    const nb::gil_scoped_release released;
    kernel_block<T>(kernel, q.matrix, s.matrix, to, static_cast<std::size_t>(out.stride(0)),
                    n_threads, control);
}

void expansion(const Spec& spec, nb::object queries, nb::object support,
               Vector<std::int64_t> starts, Vector<std::int32_t> machines, Vector<double> values,
               Output<double> out, bool exact, int n_threads) {
    const KernelSpec kernel = to_kernel(spec);
    const HeldMatrix q = to_matrix(queries), s = to_matrix(support);
    const Coefficients coefficients{out.shape(1), starts.data(), machines.data(), values.data()};
    Control control(polling(nb::none()));
    double* to = out.data();
    const nb::gil_scoped_release released;
    if (exact) expand<double>(kernel, q.matrix, s.matrix, coefficients, to, n_threads, control);
    else expand<float>(kernel, q.matrix, s.matrix, coefficients, to, n_threads, control);
}

using SparseCoefficients = std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>>;

void expansion_of_decays(const std::string& metric, const std::vector<double>& gammas,
                         nb::object queries, nb::object support,
                         const std::vector<SparseCoefficients>& coefficients, Output<double> out,
                         bool exact, int n_threads) {
    const KernelKind kind = to_kernel({metric, 1.0, 0.0, 1.0}).kind;
    const HeldMatrix q = to_matrix(queries), s = to_matrix(support);
    std::vector<Coefficients> of_kernels;
    for (const auto& [starts, machines, values] : coefficients)
        of_kernels.push_back({out.shape(1), starts.data(), machines.data(), values.data()});
    if (of_kernels.empty() || of_kernels.size() != gammas.size())
        throw std::invalid_argument("coefficients and gammas must be one for each kernel");
    Control control(polling(nb::none()));
    double* to = out.data();
    const nb::gil_scoped_release released;
    if (exact)
        expand_decays<double>(kind, gammas, q.matrix, s.matrix, of_kernels, to, n_threads, control);
    else expand_decays<float>(kind, gammas, q.matrix, s.matrix, of_kernels, to, n_threads, control);
}

}  // namespace

void bind_kernels(nb::module_& module) {
    module.def(
        "level", [] { return std::string(level().name); },
        "Name of the CPU level in use: 'avx512', 'avx2' or 'baseline'.");
    module.def("block_float32", &block<float>, nb::arg("kernel"), nb::arg("queries"),
               nb::arg("support"), nb::arg("out"), nb::arg("n_threads"),
               "Fill out[q, s] with the kernel of queries[q] and support[s].");
    module.def("block_float64", &block<double>, nb::arg("kernel"), nb::arg("queries"),
               nb::arg("support"), nb::arg("out"), nb::arg("n_threads"),
               "Fill out[q, s] with the kernel of queries[q] and support[s].");
    module.def("expand", &expansion, nb::arg("kernel"), nb::arg("queries"), nb::arg("support"),
               nb::arg("starts"), nb::arg("machines"), nb::arg("values"), nb::arg("out"),
               nb::arg("exact"), nb::arg("n_threads"),
               "Fill out[q, m] with the sum over s of coef[s, m] times the kernel; coef is CSR by "
               "support row.");
    module.def("expand_decays", &expansion_of_decays, nb::arg("metric"), nb::arg("gammas"),
               nb::arg("queries"), nb::arg("support"), nb::arg("coefficients"), nb::arg("out"),
               nb::arg("exact"), nb::arg("n_threads"),
               "Add to out[q, m] the sums of several kernels exp(-gamma * distance) of one metric, "
               "each with coefficients of its own, CSR by support row.");
}
