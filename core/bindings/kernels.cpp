#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "convert.hpp"
#include "hardmargin/expansion.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;
using Spec = std::tuple<std::string, double, double, double>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

namespace {

template <class T>
void block(const Spec& spec, nb::object queries, nb::object support, Output<T> out, int n_threads) {
    const KernelSpec kernel = to_kernel(spec);
    const HeldMatrix q = to_matrix(queries), s = to_matrix(support);
    Control control(polling(nb::none()));
    T* to = out.data();
    const nb::gil_scoped_release released;
    kernel_block<T>(kernel, q.matrix, s.matrix, to, n_threads, control);
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
}
