// Paths with held-out columns: their hot loops against plain ones, at the level in use and with
// vectors of 64 bytes, and whole paths of small problems.
#pragma GCC diagnostic ignored "-Wpsabi"
#define HARDMARGIN_LEVEL_NAME wide
#define HARDMARGIN_VECTOR_BYTES 64
#include "../src/level.cpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "hardmargin/staged_vote_machines.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;

template <class T>
AlignedVector<T> normals(std::size_t n, Random& random) {
    AlignedVector<T> v(n);
    for (T& x : v) x = static_cast<T>(random.normal());
    return v;
}

double wide(auto x) { return static_cast<double>(x); }

constexpr std::size_t sizes[] = {1, 2, 3, 7, 16, 33};

// --- the loops -----------------------------------------------------------------------------------

template <class T>
void check_strip_product(const PathTable<T>& table) {
    Random random(1);
    constexpr std::size_t margin = 3 * lanes<T>;  // what is not written stays
    for (const std::size_t n_rows : {0, 1, 2, 5, 8, 17, 100})
        for (int n_columns = 1; n_columns <= 14; ++n_columns) {
            const auto width = static_cast<std::size_t>(n_columns);
            const AlignedVector<T> strip = normals<T>(n_rows * lanes<T>, random);
            const AlignedVector<T> right = normals<T>(n_rows * width, random);
            AlignedVector<std::uint16_t> small(n_rows * lanes<T>);
            for (auto& x : small) x = static_cast<std::uint16_t>(random.below(65536));
            if (n_rows) small[0] = 65535;
            const std::size_t stride = lanes<T> + margin;
            AlignedVector<T> out(width * stride, T(-7)), out_16 = out;
            table.strip_product(strip.data(), n_rows, right.data(), n_columns, out.data(), stride);
            table.strip_product_16(small.data(), n_rows, right.data(), n_columns, out_16.data(),
                                   stride);
            for (std::size_t c = 0; c < width; ++c)
                for (std::size_t l = 0; l < stride; ++l) {
                    if (l >= lanes<T>) {
                        CHECK(out[c * stride + l] == T(-7));
                        CHECK(out_16[c * stride + l] == T(-7));
                        continue;
                    }
                    double sum = 0, sum_16 = 0;
                    for (std::size_t j = 0; j < n_rows; ++j) {
                        const double factor = wide(right[j * width + c]);
                        sum += factor * wide(strip[j * lanes<T> + l]);
                        sum_16 += factor * small[j * lanes<T> + l] / 65535;
                    }
                    CHECK_CLOSE(wide(out[c * stride + l]), sum, tolerance<T> * 10);
                    CHECK_CLOSE(wide(out_16[c * stride + l]), sum_16, tolerance<T> * 10);
                }
        }
}

template <class T>
void check_strip_dots(const PathTable<T>& table) {
    Random random(2);
    for (const std::size_t n_strips : sizes)
        for (const std::size_t n_rows : sizes)
            for (int n_columns = 1; n_columns <= 7; ++n_columns) {
                const auto width = static_cast<std::size_t>(n_columns);
                const std::size_t n = n_strips * lanes<T>, stride = n + lanes<T>;
                const AlignedVector<T> strips = normals<T>(n * n_rows, random);
                const AlignedVector<T> left = normals<T>(width * stride, random);
                AlignedVector<T> sums = normals<T>(n_rows * width, random);
                std::vector<double> expected(sums.begin(), sums.end());
                for (std::size_t k = 0; k < n_rows; ++k)
                    for (std::size_t c = 0; c < width; ++c)
                        for (std::size_t i = 0; i < n; ++i)
                            expected[k * width + c] +=
                                wide(
                                    strips[(i / lanes<T> * n_rows + k) * lanes<T> + i % lanes<T>]) *
                                wide(left[c * stride + i]);
                table.strip_dots(strips.data(), n_strips, n_rows, left.data(), stride, n_columns,
                                 sums.data());
                for (std::size_t i = 0; i < expected.size(); ++i)
                    CHECK_CLOSE(wide(sums[i]), expected[i], tolerance<T> * 10);
            }
}

template <class T>
void check_decay(const PathTable<T>& table) {
    Random random(3);
    const double least = sizeof(T) == 4 ? 1e-18 : 1e-36;
    for (const std::size_t n_strips : sizes)
        for (const double gamma : {0.0, 1e-30, 0.3, 20.0, 1e30}) {
            const std::size_t n = n_strips * lanes<T>;
            AlignedVector<T> distances = normals<T>(n, random);
            for (T& d : distances) d = std::abs(d);
            distances[0] = 0;
            distances[n - 1] = std::numeric_limits<T>::max();
            AlignedVector<T> out(n + lanes<T>, T(-7));
            AlignedVector<std::uint16_t> small(n + lanes<T>, 7);
            table.decay(distances.data(), gamma, out.data(), n);
            table.decay_16(distances.data(), gamma, small.data(), n);
            CHECK(out[0] == 1 && small[0] == 65535);
            CHECK(out[n] == T(-7) && small[n] == 7);
            for (std::size_t i = 0; i < n; ++i) {
                const double expected = std::exp(-gamma * wide(distances[i]));
                CHECK(out[i] == 0 || wide(out[i]) >= least);
                CHECK_CLOSE(wide(out[i]), expected, tolerance<T>);
                if (expected > 2 * least)  // in relative terms too
                    CHECK_CLOSE(wide(out[i]) / expected, 1.0, 100 * tolerance<T>);
                CHECK(std::abs(small[i] - 65535 * expected) <= 0.51 + 65535 * tolerance<T>);
            }
        }
}

// Values of a kernel, squared, are those of two, four or sixteen times its gamma.
template <class T>
void check_square(const PathTable<T>& table) {
    Random random(8);
    const double least = sizeof(T) == 4 ? 1e-18 : 1e-36;
    for (const std::size_t n_strips : sizes)
        for (const int times : {1, 2, 4}) {
            const std::size_t n = n_strips * lanes<T>;
            AlignedVector<T> distances = normals<T>(n, random);
            for (std::size_t i = 0; i < n; ++i) distances[i] = std::abs(distances[i]) * T(i % 40);
            distances[n - 1] = std::numeric_limits<T>::max();
            AlignedVector<T> out(n + lanes<T>, T(7));
            table.decay(distances.data(), 0.5, out.data(), n);
            table.square(out.data(), times, n);
            CHECK(out[0] == 1 && out[n] == T(7));
            for (std::size_t i = 0; i < n; ++i) {
                const double expected = std::exp(-0.5 * (1 << times) * wide(distances[i]));
                CHECK(out[i] == 0 || wide(out[i]) >= least);
                CHECK_CLOSE(wide(out[i]), expected, (1 << times) * tolerance<T>);
            }
        }
}

double naive_logistic(double z) { return 1 / (1 + std::exp(std::clamp(z, -40.0, 40.0))); }

template <class T>
void check_logistic(const PathTable<T>& table) {
    Random random(4);
    for (const std::size_t n_strips : sizes)
        for (const double bias : {0.0, -1.5, 300.0}) {
            const std::size_t n = n_strips * lanes<T>;
            AlignedVector<T> labels(n), weights(n), scores = normals<T>(n, random);
            for (T& y : labels) y = static_cast<T>(random.below(3)) - T(1);
            for (T& v : weights) v = static_cast<T>(std::abs(random.normal()));
            weights[n / 2] = 0;
            scores[n - 1] = T(1e4);
            scores[0] = T(-1e4);
            double positive = 0, negative = 0, curvature = 0;
            std::vector<double> expected(n);
            for (std::size_t i = 0; i < n; ++i) {
                if (labels[i] == 0) continue;
                const double p = naive_logistic(2 * wide(labels[i]) * (wide(scores[i]) + bias));
                expected[i] = wide(weights[i]) * p;
                (labels[i] > 0 ? positive : negative) += expected[i];
                curvature += expected[i] * (1 - p);
            }
            AlignedVector<T> out(n + lanes<T>, T(-7));
            const LogisticSums sums =
                table.logistic(labels.data(), weights.data(), scores.data(), bias, out.data(), n);
            const LogisticSums alone =
                table.logistic(labels.data(), weights.data(), scores.data(), bias, nullptr, n);
            const double slack = 30 * tolerance<T>;
            for (const LogisticSums& found : {sums, alone}) {
                CHECK_CLOSE(found.positive, positive, slack);
                CHECK_CLOSE(found.negative, negative, slack);
                CHECK_CLOSE(found.curvature, curvature, slack);
            }
            for (std::size_t i = 0; i < n; ++i) {
                CHECK_CLOSE(wide(out[i]), expected[i], slack);
                if (labels[i] == 0) CHECK(out[i] == 0);
            }
            CHECK(out[n] == T(-7));
        }
}

template <class T>
void check_temper(const PathTable<T>& table) {
    Random random(5);
    for (const std::size_t n_strips : sizes)
        for (const double scale : {0.01, 1.0, 5.0}) {
            const std::size_t n = n_strips * lanes<T>;
            const AlignedVector<T> margins = normals<T>(n, random);
            AlignedVector<T> weights(n);
            for (T& v : weights) v = static_cast<T>(std::abs(random.normal()));
            weights[n - 1] = 0;  // padding
            double slope = 0, curvature = 0, loss = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const double z = 2 * scale * wide(margins[i]), p = naive_logistic(z);
                loss += wide(weights[i]) * (std::log1p(std::exp(-std::abs(z))) + std::max(-z, 0.0));
                slope += wide(weights[i]) * z * p;
                curvature += wide(weights[i]) * z * z * p * (1 - p);
            }
            const TemperSums sums = table.temper(margins.data(), weights.data(), scale, n);
            CHECK_CLOSE(sums.slope, slope, 100 * tolerance<T>);
            CHECK_CLOSE(sums.curvature, curvature, 100 * tolerance<T>);
            CHECK_CLOSE(table.log_loss(margins.data(), weights.data(), scale, n), loss,
                        100 * tolerance<T>);
        }
}

template <class T>
void check_step(const PathTable<T>& table) {
    Random random(6);
    for (const std::size_t n_strips : sizes) {
        const std::size_t n = n_strips * lanes<T>;
        const auto a = normals<T>(n, random), h = normals<T>(n, random), d = normals<T>(n, random);
        const auto scores = normals<T>(n, random), last = normals<T>(n, random);
        StepSums expected{};
        for (std::size_t i = 0; i < n; ++i) {
            expected.gain += wide(a[i]) * wide(d[i]);
            expected.along += wide(a[i]) * (wide(scores[i]) - wide(last[i]));
            expected.mass += wide(h[i]);
            expected.first += wide(h[i]) * wide(d[i]);
            expected.second += wide(h[i]) * wide(d[i]) * wide(d[i]);
        }
        const StepSums sums =
            table.step(a.data(), h.data(), d.data(), scores.data(), last.data(), n);
        const double slack = 50 * tolerance<T>;
        CHECK_CLOSE(sums.gain, expected.gain, slack);
        CHECK_CLOSE(sums.along, expected.along, slack);
        CHECK_CLOSE(sums.mass, expected.mass, slack);
        CHECK_CLOSE(sums.first, expected.first, slack);
        CHECK_CLOSE(sums.second, expected.second, slack);
    }
}

template <class T>
void check_advance(const PathTable<T>& table) {
    Random random(7);
    for (const std::size_t n_strips : sizes)
        for (const double momentum : {0.0, 0.6}) {
            const std::size_t n = n_strips * lanes<T>;
            AlignedVector<T> scores = normals<T>(n + lanes<T>, random);
            AlignedVector<T> last = normals<T>(n + lanes<T>, random);
            const AlignedVector<T> direction = normals<T>(n, random);
            const AlignedVector<T> scores_before = scores, last_before = last;
            table.advance(scores.data(), last.data(), direction.data(), 0.3, momentum, n);
            for (std::size_t i = 0; i < n; ++i) {
                const double next = wide(scores_before[i]) + 0.3 * wide(direction[i]);
                CHECK_CLOSE(wide(last[i]), next, tolerance<T>);
                CHECK_CLOSE(wide(scores[i]), next + momentum * (next - wide(last_before[i])),
                            tolerance<T>);
            }
            for (std::size_t i = n; i < n + lanes<T>; ++i)
                CHECK(scores[i] == scores_before[i] && last[i] == last_before[i]);
        }
}

template <class T>
void check_loops(const PathTable<T>& table) {
    check_strip_product(table);
    check_strip_dots(table);
    check_decay(table);
    check_square(table);
    check_logistic(table);
    check_temper(table);
    check_step(table);
    check_advance(table);
}

// --- products ------------------------------------------------------------------------------------

// Rows on a line, of three classes in turn: their distances, and a factor, also as sparse rows.
template <class T>
struct Rows {
    std::size_t n, width = 3;
    std::vector<T> distances, factor;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> row_starts{0};
    std::vector<std::int32_t> classes;
    std::vector<double> weights;
    std::vector<std::uint8_t> train, test;  // three splits
    static constexpr std::size_t n_splits = 3;

    explicit Rows(std::size_t n_rows, unsigned seed = 1, int n_classes = 3) : n(n_rows) {
        Random random(seed);
        std::vector<double> x = random.normals(n);
        for (std::size_t i = 0; i < n; ++i) {
            classes.push_back(static_cast<std::int32_t>(i) % n_classes);
            x[i] += 1.5 * classes[i];
            weights.push_back(0.5 + std::abs(random.normal()));
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j)
                distances.push_back(static_cast<T>((x[i] - x[j]) * (x[i] - x[j])));
            for (const double value : {1.0, x[i], x[i] * x[i]})
                factor.push_back(static_cast<T>(value));
            for (const std::int32_t column : {5, 0, 3}) columns.push_back(column);
            row_starts.push_back(static_cast<std::int64_t>(columns.size()));
        }
        for (std::size_t k = 0; k < n_splits; ++k)
            for (std::size_t i = 0; i < n; ++i) {
                test.push_back(i / 3 % n_splits == k);
                train.push_back(!test.back());
            }
    }

    StagedVoteProblem<T> problem() const {
        StagedVoteProblem<T> p;
        for (const double gamma : {0.1, 1.0, 10.0})
            p.kernels.push_back({{ValueSource::distances, distances.data(), n, gamma, false}});
        p.kernels.push_back({{ValueSource::factor, factor.data(), width, 0, false}});
        p.options.max_stages = 150;
        p.options.sharpness = 0.3;
        p.n_rows = n;
        p.classes = classes.data();
        p.weights = weights.data();
        p.machines = {{{0}, {1}}};
        p.n_splits = n_splits;
        p.train = train.data();
        p.test = test.data();
        return p;
    }
};

template <class T>
void test_products_are_those_of_the_chosen_rows() {
    for (const std::size_t n : {1, 2, 15, 16, 17, 70, 130}) {
        const Rows<T> rows(n);
        const std::size_t stride = round_up(n, lanes<T>);
        for (const std::size_t every : {1, 2}) {
            std::vector<std::int32_t> chosen;
            for (std::size_t i = 0; i < n; i += every)
                chosen.push_back(static_cast<std::int32_t>(i));
            Control control;
            Meter meter(control, true);
            KernelProduct<T> product;  // filled again and again
            for (const int kind : {0, 1, 2, 3, 4})
                for (const int n_vectors : {1, 4, 7, 8, 19}) {
                    KernelSource<T> source{ValueSource::values, rows.distances.data(), n, 0, false};
                    if (kind == 1 || kind == 2)
                        source = {ValueSource::distances, rows.distances.data(), n, 0.3, kind == 2};
                    if (kind == 3)
                        source = {ValueSource::factor, rows.factor.data(), rows.width, 0, false};
                    if (kind == 4)
                        source = {ValueSource::rows,
                                  rows.factor.data(),
                                  6,
                                  0.5,
                                  false,
                                  KernelKind::rbf,
                                  rows.columns.data(),
                                  rows.row_starts.data()};
                    product.fill(source, chosen, meter);
                    Random random(8);
                    const auto width = static_cast<std::size_t>(n_vectors);
                    const AlignedVector<T> vectors = [&] {
                        AlignedVector<T> v(width * stride, T(0));
                        for (std::size_t c = 0; c < width; ++c)
                            for (std::size_t j = 0; j < chosen.size(); ++j)
                                v[c * stride + j] = static_cast<T>(random.normal());
                        return v;
                    }();
                    AlignedVector<T> out(width * stride);
                    product(vectors.data(), n_vectors, out.data(), stride);
                    double largest = 1;
                    for (std::size_t c = 0; c < width; ++c)
                        for (std::size_t i = 0; i < chosen.size(); ++i) {
                            double sum = 0;
                            for (std::size_t j = 0; j < chosen.size(); ++j) {
                                const auto a = static_cast<std::size_t>(chosen[i]);
                                const auto b = static_cast<std::size_t>(chosen[j]);
                                double value = wide(rows.distances[a * n + b]);
                                if (kind == 1 || kind == 2) value = std::exp(-0.3 * value);
                                if (kind >= 3) {
                                    value = 0;
                                    for (std::size_t k = 0; k < rows.width; ++k)
                                        value += wide(rows.factor[a * rows.width + k]) *
                                                 wide(rows.factor[b * rows.width + k]);
                                }
                                if (kind == 4) value *= 0.5;
                                sum += value * wide(vectors[c * stride + j]);
                                largest = std::max(largest, std::abs(value));
                            }
                            const double slack = kind == 2 ? 1e-4 : 30 * tolerance<T>;
                            CHECK_CLOSE(wide(out[c * stride + i]) / largest, sum / largest,
                                        slack * 10);
                        }
                }
        }
    }
}

// --- whole paths ---------------------------------------------------------------------------------

template <class T>
std::vector<StagedVoteResult> solve(const StagedVoteProblem<T>& problem) {
    Control control;
    return staged_vote_machines(problem, control);
}

void check_identical(const StagedVoteResult& a, const StagedVoteResult& b) {
    CHECK(a.rows == b.rows && a.held_rows == b.held_rows && a.held_splits == b.held_splits);
    CHECK(a.paths.size() == b.paths.size());
    for (std::size_t k = 0; k < a.paths.size(); ++k) {
        const StagedVotePath &p = a.paths[k], &q = b.paths[k];
        CHECK(p.coefficients == q.coefficients && p.held_scores == q.held_scores);
        CHECK(p.stages == q.stages && p.losses == q.losses);
        CHECK(p.intercept == q.intercept && p.mass == q.mass && p.loss == q.loss);
        CHECK(p.n_stages == q.n_stages && p.reason == q.reason);
    }
}

// The first stage, without held-out rows: nothing is scaled.
template <class T>
void test_first_stage_is_a_damped_newton_step() {
    for (const std::size_t n : {9, 40}) {
        const Rows<T> rows(n);
        StagedVoteProblem<T> problem = rows.problem();
        problem.n_splits = 0;
        problem.options.n_stages = 1;
        const StagedVoteResult found = solve(problem).at(0);
        std::vector<double> y;
        for (const std::int32_t i : found.rows) {
            const std::int32_t c = rows.classes[static_cast<std::size_t>(i)];
            CHECK(c == 0 || c == 1);
            y.push_back(c == 1 ? 1 : -1);
        }
        const std::size_t m = y.size();
        CHECK(found.held_rows.empty());
        const auto v = [&](std::size_t i) {
            return rows.weights[static_cast<std::size_t>(found.rows[i])];
        };
        double sides[2] = {}, mass[2] = {};
        for (std::size_t i = 0; i < m; ++i) sides[y[i] > 0] += v(i);
        const double bias = 0.5 * std::log(sides[1] / sides[0]);
        std::vector<double> a(m), p(m), g(m);
        for (std::size_t i = 0; i < m; ++i) {
            p[i] = naive_logistic(2 * y[i] * bias);
            mass[y[i] > 0] += v(i) * p[i];
        }
        for (std::size_t i = 0; i < m; ++i) a[i] = 0.5 * y[i] * v(i) * p[i] / mass[y[i] > 0];
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < m; ++j)
                g[i] += a[j] *
                        std::exp(-wide(rows.distances[static_cast<std::size_t>(found.rows[i]) * n +
                                                      static_cast<std::size_t>(found.rows[j])]));
        double rho = 0, h_sum = 0, first = 0, second = 0;
        for (std::size_t i = 0; i < m; ++i) {
            const double h = std::abs(a[i]) * (1 - p[i]);
            rho += a[i] * g[i];
            h_sum += h;
            first += h * g[i];
            second += h * g[i] * g[i];
        }
        const double curvature = 2 * (second - first * first / h_sum);
        const double rate = std::min(0.2 / 1.2 * rho / curvature, 1 / rho);
        const StagedVotePath& path = found.paths.at(1);  // gamma = 1
        CHECK(path.n_stages == 1 && path.reason == PathStop::n_stages && path.mass == 1);
        for (std::size_t i = 0; i < m; ++i)
            CHECK_CLOSE(path.coefficients[i], rate * a[i], 100 * tolerance<T>);
    }
}

// Held-out scores are those of the split's machine, at their best scale.
template <class T>
void test_held_out_rows_judge_the_stages() {
    const Rows<T> rows(60);
    StagedVoteProblem<T> problem = rows.problem();
    problem.race = false;
    const StagedVoteResult found = solve(problem).at(0);
    CHECK(found.held_rows.size() == found.rows.size());
    for (std::size_t p = 0; p < found.held_rows.size(); ++p)
        CHECK(rows.test[static_cast<std::size_t>(found.held_splits[p]) * rows.n +
                        static_cast<std::size_t>(found.held_rows[p])]);
    for (const StagedVotePath& path : found.paths) {
        CHECK(path.losses.size() == path.stages.size());
        CHECK(path.loss == *std::min_element(path.losses.begin(), path.losses.end()));
        CHECK(path.mass >= 1 && path.mass <= static_cast<double>(path.stages.size()));
    }
    CHECK(found.paths[0].loss < 0.65);  // better than chance
    problem.options.n_stages = 5;
    const StagedVotePath path = solve(problem).at(0).paths.at(1);
    const auto loss_at = [&](double factor) {
        double sum = 0, total = 0;
        for (std::size_t p = 0; p < found.held_rows.size(); ++p) {
            const auto row = static_cast<std::size_t>(found.held_rows[p]);
            const double y = rows.classes[row] == 1 ? 1 : -1;
            sum += rows.weights[row] * std::log1p(std::exp(-2 * factor * y * path.held_scores[p]));
            total += rows.weights[row];
        }
        return sum / total;
    };
    CHECK_CLOSE(loss_at(1), path.loss, 100 * tolerance<T>);
    CHECK(loss_at(1) <= loss_at(0.97) && loss_at(1) <= loss_at(1.03));
}

template <class T>
void test_how_it_is_run_changes_no_bit() {
    const Rows<T> rows(60);
    for (const bool many : {false, true})
        for (const PathLoss loss : {PathLoss::logistic, PathLoss::exponential}) {
            StagedVoteProblem<T> problem = rows.problem();
            problem.options.loss = loss;
            if (many) problem.machines = {{{0}, {1}}, {{0}, {2}}, {{1}, {2}}, {{0, 1}, {2}}};
            const auto expected = solve(problem);
            for (const int n_threads : {1, 3})
                for (const std::size_t memory_bytes : {std::size_t{0}, std::size_t{1} << 30}) {
                    problem.n_threads = n_threads;
                    problem.memory_bytes = memory_bytes;
                    const auto found = solve(problem);
                    for (std::size_t m = 0; m < expected.size(); ++m)
                        check_identical(found[m], expected[m]);
                }
            for (std::size_t m = 0; m < expected.size(); ++m) {
                StagedVoteProblem<T> alone = problem;
                alone.machines = {problem.machines[m]};
                check_identical(solve(alone).at(0), expected[m]);
            }
        }
}

// Weights with a small sum still stand for the same number of rows: their scale changes no bit.
template <class T>
void test_the_scale_of_small_weights_changes_no_bit() {
    Rows<T> rows(60);
    const auto scaled = [&](double factor) {
        Rows<T> copy = rows;
        for (double& w : copy.weights) w *= factor;
        return solve(copy.problem()).at(0);
    };
    const StagedVoteResult expected = scaled(0x1p-10);
    for (const double factor : {0x1p-20, 0x1p-900}) check_identical(scaled(factor), expected);
    CHECK(scaled(0x1p10).paths[0].mass < expected.paths[0].mass);  // more rows: a sharper vote
}

template <class T>
void test_splits_without_both_classes_are_left_out() {
    Rows<T> rows(60);
    for (std::size_t i = 0; i < rows.n; ++i)
        if (rows.classes[i] == 1) rows.train[rows.n + i] = 0;
    const StagedVoteResult found = solve(rows.problem()).at(0);
    CHECK(!found.held_splits.empty());
    for (const std::int32_t split : found.held_splits) CHECK(split != 1);
    for (std::size_t i = 0; i < rows.test.size(); ++i)
        if (rows.classes[i % rows.n] == 1) rows.test[i] = 0;
    const StagedVoteResult one_sided = solve(rows.problem()).at(0);
    CHECK(one_sided.held_rows.empty());
    for (const StagedVotePath& path : one_sided.paths) CHECK(path.loss == 0 && path.mass > 0);
}

template <class T>
void test_limits_keep_a_path() {
    const Rows<T> rows(60);
    StagedVoteProblem<T> problem = rows.problem();
    problem.options.max_stages = 5;
    const StagedVoteResult short_paths = solve(problem).at(0);
    for (const StagedVotePath& path : short_paths.paths)
        CHECK(path.n_stages == 5 && path.reason == PathStop::max_stages);
    problem.max_seconds = 1e-9;
    const StagedVoteResult cut = solve(problem).at(0);
    for (const StagedVotePath& path : cut.paths) {
        CHECK(path.reason == PathStop::max_time);
        for (const double c : path.coefficients) CHECK(std::isfinite(c));
    }
}

void test_odd_problems_are_finite() {
    for (const int n_classes : {2, 3}) {
        Rows<float> rows(30, 2, n_classes);
        std::fill(rows.distances.begin(), rows.distances.end(), 0.0f);  // all in one place
        for (const PathLoss loss : {PathLoss::logistic, PathLoss::exponential})
            for (const bool bias : {false, true}) {
                StagedVoteProblem<float> problem = rows.problem();
                problem.kernels.pop_back();
                problem.options.loss = loss;
                problem.options.bias = bias;
                const StagedVoteResult found = solve(problem).at(0);
                for (const StagedVotePath& path : found.paths) {
                    CHECK(std::isfinite(path.intercept) && std::isfinite(path.loss));
                    for (const double c : path.coefficients) CHECK(std::isfinite(c));
                }
            }
    }
}

void test_a_side_without_rows_is_refused() {
    const Rows<double> rows(30);
    for (const int n_threads : {1, 2}) {
        StagedVoteProblem<double> problem = rows.problem();
        problem.n_threads = n_threads;
        problem.machines = {{{0}, {1}}, {{0}, {7}}};
        CHECK_THROWS(std::invalid_argument, solve(problem));
        problem.machines = {{{7}, {1}}};
        CHECK_THROWS(std::invalid_argument, solve(problem));
    }
}

void test_caller_can_stop_or_interrupt() {
    const Rows<double> rows(700);
    for (const bool many : {false, true})
        for (const int n_threads : {1, 2}) {
            StagedVoteProblem<double> problem = rows.problem();
            problem.options.n_stages = problem.options.max_stages = 1'000'000;
            problem.n_threads = n_threads;
            if (many) problem.machines = {{{0}, {1}}, {{0}, {2}}, {{1}, {2}}};
            Control stopping([](const Progress&) { return false; });
            for (const StagedVoteResult& machine : staged_vote_machines(problem, stopping))
                for (const StagedVotePath& path : machine.paths)
                    CHECK(path.reason == PathStop::max_time);
            Control interrupting([](const Progress&) -> bool { throw std::domain_error("stop"); });
            CHECK_THROWS(std::domain_error, staged_vote_machines(problem, interrupting));
        }
}

template <class T>
void test_paths() {
    test_products_are_those_of_the_chosen_rows<T>();
    test_first_stage_is_a_damped_newton_step<T>();
    test_held_out_rows_judge_the_stages<T>();
    test_how_it_is_run_changes_no_bit<T>();
    test_the_scale_of_small_weights_changes_no_bit<T>();
    test_splits_without_both_classes_are_left_out<T>();
    test_limits_keep_a_path<T>();
}

}  // namespace

int main() {
    for (const Level* tested : {&level(), &level_wide}) {
        check_loops(tested->paths_float32);
        check_loops(tested->paths_float64);
    }
    test_paths<float>();
    test_paths<double>();
    test_odd_problems_are_finite();
    test_a_side_without_rows_is_refused();
    test_caller_can_stop_or_interrupt();
}
