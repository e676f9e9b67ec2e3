// Blocks of kernel values and sums of kernel functions against plain loops.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hardmargin/expansion.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

// Rows held densely and as CSR; only the given columns are used.
struct Rows {
    std::size_t n, n_cols;
    std::vector<double> dense;
    std::vector<double> data;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts{0};

    Rows(std::size_t n_rows, std::size_t width, std::size_t used, Random& random)
        : n(n_rows), n_cols(width), dense(n_rows * width) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t k = 0; k < used && i % 11 != 5; ++k) {  // some rows are empty
                const std::size_t column = k * (width / used);
                // every other column has two values
                const double x = k % 2 ? static_cast<double>(random.below(2)) : random.normal();
                dense[i * width + column] = x;
                data.push_back(x);
                indices.push_back(static_cast<std::int32_t>(column));
            }
            starts.push_back(static_cast<std::int64_t>(data.size()));
        }
    }

    Matrix matrix(bool sparse) const {
        Matrix m;
        m.n_rows = n;
        m.n_cols = n_cols;
        m.data = sparse ? data.data() : dense.data();
        m.row_stride = static_cast<std::ptrdiff_t>(n_cols);
        if (sparse) {
            m.indices = indices.data();
            m.row_starts = starts.data();
        }
        return m;
    }
};

double naive_matern(const KernelSpec& kernel, double square) {
    const bool is_smoother = kernel.kind == KernelKind::matern52;
    const double s = std::sqrt((is_smoother ? 5 : 3) * kernel.gamma * square);
    return (1 + s + (is_smoother ? s * s / 3 : 0)) * std::exp(-s);
}

double kernel_value(const KernelSpec& kernel, const Rows& queries, std::size_t q,
                    const Rows& support, std::size_t s) {
    double square = 0, absolute = 0, product = 0, x_square = 0, z_square = 0;
    for (std::size_t k = 0; k < queries.n_cols; ++k) {
        const double x = queries.dense[q * queries.n_cols + k];
        const double z = support.dense[s * support.n_cols + k];
        square += (x - z) * (x - z);
        absolute += std::abs(x - z);
        product += x * z;
        x_square += x * x;
        z_square += z * z;
    }
    switch (kernel.kind) {
        case KernelKind::rbf: return std::exp(-kernel.gamma * square);
        case KernelKind::laplacian: return std::exp(-kernel.gamma * absolute);
        case KernelKind::matern32:
        case KernelKind::matern52: return naive_matern(kernel, square);
        case KernelKind::linear: return product;
        case KernelKind::cosine:
            return product == 0 ? 0 : product / std::sqrt(x_square) / std::sqrt(z_square);
        case KernelKind::poly:
            return std::pow(kernel.gamma * product + kernel.coef0, kernel.degree);
        case KernelKind::sigmoid: return std::tanh(kernel.gamma * product + kernel.coef0);
    }
    return 0;
}

// Support row s takes part in machines s, s + 3, ... of n_machines, and every fifth in none.
struct Machines {
    std::size_t n;
    std::vector<std::int64_t> starts{0};
    std::vector<std::int32_t> machines;
    std::vector<double> values;

    Machines(std::size_t n_machines, std::size_t n_support, Random& random) : n(n_machines) {
        for (std::size_t s = 0; s < n_support; ++s) {
            for (std::size_t m = s % 3; m < n && s % 5 != 4; m += 3) {
                machines.push_back(static_cast<std::int32_t>(m));
                values.push_back(random.normal());
            }
            starts.push_back(static_cast<std::int64_t>(values.size()));
        }
    }
    Coefficients coefficients() const { return {n, starts.data(), machines.data(), values.data()}; }
};

template <class T>
void check_expansion(const KernelSpec& kernel, const Rows& queries, const Rows& support,
                     bool sparse, std::size_t n_machines, int n_threads, Random& random) {
    const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
    const Matrix q = queries.matrix(sparse), s = support.matrix(sparse);
    Control control;
    std::vector<T> block(queries.n * support.n);
    kernel_block<T>(kernel, q, s, block.data(), s.n_rows, n_threads, control);
    const Machines machines(n_machines, support.n, random);
    std::vector<double> sums(queries.n * n_machines, -7.0);
    expand<T>(kernel, q, s, machines.coefficients(), sums.data(), n_threads, control);
    for (std::size_t i = 0; i < queries.n; ++i) {
        std::vector<double> expected(n_machines, 0.0);
        for (std::size_t j = 0; j < support.n; ++j) {
            const double value = kernel_value(kernel, queries, i, support, j);
            CHECK_CLOSE(block[i * support.n + j], value, tolerance);
            for (auto p = machines.starts[j]; p < machines.starts[j + 1]; ++p)
                expected[static_cast<std::size_t>(machines.machines[p])] +=
                    machines.values[static_cast<std::size_t>(p)] * value;
        }
        for (std::size_t m = 0; m < n_machines; ++m)
            CHECK_CLOSE(sums[i * n_machines + m], expected[m], tolerance * 10);
    }
}

template <class T>
void check_shapes(bool sparse, std::size_t width, std::size_t used) {
    Random random(1);
    const double unit = std::min(1.0, 14.0 / static_cast<double>(used));  // of gamma
    const KernelSpec kernels[] = {{KernelKind::rbf, 0.2 * unit, 0, 3},
                                  {KernelKind::laplacian, 0.1 * unit, 0, 3},
                                  {KernelKind::matern32, 0.2 * unit, 0, 3},
                                  {KernelKind::matern52, 0.2 * unit, 0, 3},
                                  {KernelKind::linear, 1, 0, 3},
                                  {KernelKind::cosine, 1, 0, 3},
                                  {KernelKind::poly, 0.3 * unit, 1, 2},
                                  {KernelKind::sigmoid, 0.1 * unit, -0.2, 3}};
    const std::size_t shapes[][2] = {{0, 5}, {5, 0}, {1, 1}, {65, 25}, {130, 7}};
    for (const auto& [n_queries, n_support] : shapes) {
        const Rows queries(n_queries, width, used, random);
        const Rows support(n_support, width, used, random);
        for (const KernelSpec& kernel : kernels)
            for (const std::size_t n_machines : {1, 8})
                check_expansion<T>(kernel, queries, support, sparse, n_machines,
                                   n_queries > 100 ? 2 : 1, random);
    }
}

void test_dense_rows() {
    check_shapes<float>(false, 1, 1);
    check_shapes<double>(false, 1, 1);
    check_shapes<float>(false, 14, 14);
    check_shapes<double>(false, 14, 14);
}

// Numbers and bits, enough of each that distances come from products and norms.
void test_wide_dense_rows() {
    check_shapes<float>(false, 150, 150);
    check_shapes<double>(false, 150, 150);
    check_shapes<float>(false, 1100, 1100);
    check_shapes<double>(true, 400, 200);
}

// Half of the matrix of rows with themselves is evaluated, the other half copied.
// Kernels of the same distances, some of which are powers of others.
template <class T>
void check_decays(KernelKind metric, const std::vector<double>& gammas) {
    const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;
    Random random(6);
    const Rows queries(70, 9, 9, random), support(90, 9, 9, random);
    const Matrix q = queries.matrix(false), s = support.matrix(false);
    std::vector<Machines> machines;
    std::vector<Coefficients> coefficients;
    for (std::size_t k = 0; k < gammas.size(); ++k) machines.emplace_back(2, support.n, random);
    for (const Machines& of_kernel : machines) coefficients.push_back(of_kernel.coefficients());
    Control control;
    std::vector<double> sums(queries.n * 2, 0.0), expected = sums, of_kernel = sums;
    expand_decays<T>(metric, gammas, q, s, coefficients, sums.data(), 1, control);
    for (std::size_t k = 0; k < gammas.size(); ++k) {
        const KernelSpec kernel{metric, gammas[k], 0, 3};
        expand<double>(kernel, q, s, coefficients[k], of_kernel.data(), 1, control);
        for (std::size_t i = 0; i < sums.size(); ++i) expected[i] += of_kernel[i];
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        CHECK_CLOSE(sums[i], expected[i], tolerance * 10 * static_cast<double>(gammas.size()));
}

void test_decays() {
    for (const KernelKind metric : {KernelKind::rbf, KernelKind::laplacian})
        for (const std::vector<double>& gammas :
             {std::vector{0.1}, {0.4, 0.1}, {0.1, 0.3, 1.2}, {1.6, 0.1, 0.4, 25.6, 0.1, 1e30}}) {
            check_decays<float>(metric, gammas);
            check_decays<double>(metric, gammas);
        }
}

template <class T>
void check_matrix_of_rows(bool sparse, std::size_t width, std::size_t used) {
    Random random(4);
    const Rows rows(150, width, used, random);
    const Rows copy = rows;
    Control control;
    std::vector<T> half(rows.n * rows.n), whole(rows.n * rows.n);
    for (const KernelKind kind : {KernelKind::rbf, KernelKind::laplacian, KernelKind::matern32,
                                  KernelKind::matern52, KernelKind::linear, KernelKind::cosine}) {
        const KernelSpec kernel{kind, 0.01, 0, 3};
        const Matrix m = rows.matrix(sparse), c = copy.matrix(sparse);
        kernel_block<T>(kernel, m, m, half.data(), m.n_rows, 2, control);
        kernel_block<T>(kernel, m, c, whole.data(), m.n_rows, 1, control);
        CHECK(half == whole);
        for (std::size_t i = 0; i < rows.n && kernel.is_distance(); ++i)
            CHECK(half[i * rows.n + i] == T(1));
    }
}

void test_matrix_of_rows() {
    check_matrix_of_rows<float>(false, 14, 14);
    check_matrix_of_rows<double>(false, 150, 150);
    check_matrix_of_rows<float>(false, 150, 150);
    check_matrix_of_rows<float>(true, 5000, 60);
    check_matrix_of_rows<double>(true, 5000, 60);
}

// Two near rows far from all others: what their products lose to rounding must not be seen.
template <class T>
void check_near_rows(bool sparse) {
    Random random(5);
    for (const double size : {1e2, 1e6, 1e15}) {
        Rows rows(3, 5000, 100, random);
        for (std::size_t k = 0; k < rows.n_cols; ++k) {
            rows.dense[rows.n_cols + k] = rows.dense[k];
            rows.dense[2 * rows.n_cols + k] = -rows.dense[k];
        }
        for (double& x : rows.dense) x = std::round(x * 64) * size;
        rows.dense[rows.n_cols] += 64 * size;
        rows.data.clear();
        rows.indices.clear();
        rows.starts = {0};
        for (std::size_t i = 0; i < rows.n; ++i) {
            for (std::size_t k = 0; k < rows.n_cols; ++k)
                if (const double x = rows.dense[i * rows.n_cols + k]; x != 0 || k == 0) {
                    rows.data.push_back(x);
                    rows.indices.push_back(static_cast<std::int32_t>(k));
                }
            rows.starts.push_back(static_cast<std::int64_t>(rows.data.size()));
        }
        const KernelSpec kernel{KernelKind::rbf, 1 / (64 * 64 * size * size), 0, 3};
        const Matrix m = rows.matrix(sparse);
        Control control;
        std::vector<T> block(9);
        kernel_block<T>(kernel, m, m, block.data(), 3, 1, control);
        CHECK_CLOSE(block[1], std::exp(-1.0), sizeof(T) == 4 ? 1e-5 : 1e-12);
        CHECK(block[0] == T(1) && block[8] == T(1) && block[2] < T(1e-6));
    }
}

void test_near_rows() {
    check_near_rows<float>(false);
    check_near_rows<double>(false);
    check_near_rows<float>(true);
    check_near_rows<double>(true);
}

void test_narrow_sparse_rows() {
    check_shapes<float>(true, 14, 14);
    check_shapes<double>(true, 14, 7);
}

void test_wide_sparse_rows() {
    Random random(3);
    CHECK(!is_packable(Rows(3, 5000, 6, random).matrix(true)));
    check_shapes<float>(true, 5000, 6);
    check_shapes<double>(true, 5000, 6);
}

void test_caller_can_interrupt() {
    Random random(2);
    const Rows rows(100, 20, 20, random);
    const Matrix m = rows.matrix(false);
    std::vector<double> block(rows.n * rows.n);
    Control control([](const Progress&) -> bool { throw std::domain_error("Ctrl-C"); });
    CHECK_THROWS(std::domain_error,
                 kernel_block<double>({}, m, m, block.data(), m.n_rows, 1, control));
}

}  // namespace

int main() {
    test_dense_rows();
    test_wide_dense_rows();
    test_decays();
    test_matrix_of_rows();
    test_near_rows();
    test_narrow_sparse_rows();
    test_wide_sparse_rows();
    test_caller_can_interrupt();
}
