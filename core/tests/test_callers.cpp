// Callers on several threads at once, each with threads of its own: they share the rows alone, and
// find what one caller finds. Which CPU level to use is chosen by whoever comes first.
#include <barrier>
#include <thread>
#include <vector>

#include "greedy_cases.hpp"
#include "hardmargin/expansion.hpp"
#include "hardmargin/hard_margin_machines.hpp"
#include "hardmargin/soft_margin.hpp"
#include "hardmargin/staged_vote_machines.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

constexpr std::size_t n_rows = 90, n_cols = 12;
constexpr int n_callers = 8, n_threads = 2;
const std::vector<MachineSpec> pairs{{{0}, {1}}, {{0}, {2}}, {{1}, {2}}};

using Numbers = std::vector<double>;

void append(Numbers& all, const Numbers& some) { all.insert(all.end(), some.begin(), some.end()); }

void set(MachineProblem& problem, const Data& data) {
    problem.kernel = laplacian;
    problem.matrix = data.matrix();
    problem.classes = data.classes.data();
    problem.n_classes = 3;
    problem.machines = pairs;
    problem.n_threads = n_threads;
}

template <class T>
Numbers kernel_values(const Data& data) {
    std::vector<T> values(n_rows * n_rows);
    Control control;
    kernel_block<T>(laplacian, data.matrix(), data.matrix(), values.data(), n_rows, n_threads,
                    control);
    return {values.begin(), values.end()};
}

template <class T>
Numbers greedy(const Data& data) {
    GreedyProblem problem;
    set(problem, data);
    problem.options.max_stages = 200;
    Numbers found;
    Control control;
    for (const auto& result : greedy_machines<T>(problem, control)) append(found, result.steps);
    return found;
}

template <class T>
Numbers hard_margin(const Data& data) {
    HardMarginProblem problem;
    set(problem, data);
    problem.options.max_stages = 500;
    Numbers found;
    Control control;
    for (const auto& result : hard_margin_machines<T>(problem, control))
        append(found, result.multipliers);
    return found;
}

template <class T>
Numbers soft_margin(const Data& data) {
    SoftMarginProblem problem;
    set(problem, data);
    problem.max_stages = 500;
    Numbers found;
    Control control;
    for (const auto& result : soft_margin_machines<T>(problem, control))
        append(found, result.multipliers);
    return found;
}

// Takes kernel values for distances; every fourth row is held out.
template <class T>
Numbers staged_vote(const Data& data) {
    const Numbers values = kernel_values<T>(data);
    const std::vector<T> matrix(values.begin(), values.end());
    const Numbers weights(n_rows, 1.0);
    std::vector<std::uint8_t> train(n_rows), test(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) (i % 4 ? train : test)[i] = 1;
    StagedVoteProblem<T> problem;
    for (const double gamma : {0.5, 2.0})
        problem.kernels.push_back({{ValueSource::distances, matrix.data(), n_rows, gamma, false}});
    problem.n_rows = n_rows;
    problem.classes = data.classes.data();
    problem.weights = weights.data();
    problem.machines = pairs;
    problem.n_splits = 1;
    problem.train = train.data();
    problem.test = test.data();
    problem.options.max_stages = 50;
    problem.n_threads = n_threads;
    Numbers found;
    Control control;
    for (const auto& result : staged_vote_machines<T>(problem, control))
        for (const auto& path : result.paths)
            found.insert(found.end(), path.coefficients.begin(), path.coefficients.end());
    return found;
}

template <class T>
std::vector<Numbers> everything(const Data& data) {
    return {kernel_values<T>(data), greedy<T>(data), hard_margin<T>(data), soft_margin<T>(data),
            staged_vote<T>(data)};
}

template <class T>
void test_callers_find_what_one_finds(const Data& data) {
    std::vector<std::vector<Numbers>> found(n_callers);
    {
        std::barrier together(n_callers);
        std::vector<std::jthread> callers;
        for (auto& own : found)
            callers.emplace_back([&] {
                together.arrive_and_wait();
                own = everything<T>(data);
            });
    }
    const std::vector<Numbers> alone = everything<T>(data);
    for (const Numbers& numbers : alone) CHECK(!numbers.empty());
    for (const auto& own : found) CHECK(own == alone);
}

}  // namespace

int main() {
    // Columns of numbers, and columns of zeros and ones alone, whose kernel values are looked up.
    for (const std::size_t n_bits : {std::size_t{4}, n_cols}) {
        const Data data(n_rows, n_cols, n_bits, 3, 0);
        test_callers_find_what_one_finds<float>(data);
        test_callers_find_what_one_finds<double>(data);
    }
}
