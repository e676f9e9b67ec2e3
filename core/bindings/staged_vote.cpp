#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <tuple>

#include "hardmargin/staged_vote_machines.hpp"
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

// (kind, index of the array, gamma)
using Source = std::tuple<std::string, std::int64_t, double>;

// Arrays of numbers, or sparse rows.
template <class T>
struct HeldSources {
    std::vector<Grid<const T>> grids;
    std::vector<HeldMatrix> sparse;
    std::vector<std::pair<bool, std::size_t>> places;  // whether it is sparse, and where it is

    void add(const nb::object& array, const std::string& name, std::size_t n_rows) {
        const bool is_sparse = nb::isinstance<nb::tuple>(array);
        places.emplace_back(is_sparse, is_sparse ? sparse.size() : grids.size());
        std::size_t rows = 0, cols = 0;
        if (is_sparse) {
            const Matrix& matrix = sparse.emplace_back(to_matrix(array, name)).matrix;
            if (matrix.is_double != (sizeof(T) == 8))
                refuse(name, " has numbers of another type than expected");
            rows = matrix.n_rows, cols = matrix.n_cols;
        } else {
            const Grid<const T>& grid = grids.emplace_back(array, name);
            grid.check_has_no_gaps(name);
            rows = grid.n_rows, cols = grid.n_cols;
        }
        if (rows != n_rows) refuse(name, " has ", rows, " rows, expected ", n_rows);
        if (cols == 0) refuse(name, " has 0 columns, expected at least 1");
    }
};

template <class T>
KernelSource<T> to_source(const Source& given, const std::string& name, const HeldSources<T>& held,
                          std::size_t n_rows, bool compact) {
    const auto& [kind, index, gamma] = given;
    const auto source = to_choice<ValueSource>(name + "[0]", kind,
                                               {{"values", ValueSource::values},
                                                {"distances", ValueSource::distances},
                                                {"sqeuclidean", ValueSource::points},
                                                {"cityblock", ValueSource::points},
                                                {"factor", ValueSource::factor},
                                                {"rows", ValueSource::rows}});
    if (index < 0 || index >= static_cast<std::int64_t>(held.places.size()))
        throw std::out_of_range(
            text(name, "[1] is ", index, ", but there are ", held.places.size(), " arrays"));
    to_number(name + "[2] (gamma)", gamma, 0.0, true);
    const auto [is_sparse, place] = held.places[static_cast<std::size_t>(index)];
    if (is_sparse != (source == ValueSource::rows))
        refuse("arrays[", index, "] is ", is_sparse ? "" : "not ", "sparse, which does not suit ",
               kind);
    if (is_sparse) {
        const Matrix& matrix = held.sparse[place].matrix;
        return {source,         static_cast<const T*>(matrix.data),
                matrix.n_cols,  gamma,
                false,          KernelKind::rbf,
                matrix.indices, matrix.row_starts};
    }
    const Grid<const T>& array = held.grids[place];
    if (source == ValueSource::points)
        return {source, array.data, array.n_cols, gamma, compact, to_metric(kind, name + "[0]")};
    if (source != ValueSource::factor && array.n_cols != n_rows)
        refuse("arrays[", index, "] has ", array.n_cols, " columns, expected ", n_rows, " for ",
               kind);
    return {source, array.data, array.n_cols, gamma, compact && source == ValueSource::distances};
}

template <class T>
std::vector<StagedVoteResult>
staged_vote(const std::vector<nb::object>& arrays, const std::vector<std::vector<Source>>& kernels,
            nb::handle classes, const Machines& machines, nb::handle weights, nb::handle train,
            nb::handle test, nb::handle shuffles, const std::string& loss, bool bias,
            bool all_columns, double sharpness, std::int64_t n_stages, std::int64_t max_stages,
            bool race, bool compact, std::int64_t memory_bytes, std::int64_t n_threads,
            const nb::object& monitor) {
    StagedVoteProblem<T> problem;
    const Vector<const std::int32_t> codes(classes, "classes");
    problem.n_rows = codes.size;
    problem.classes = codes.data;
    problem.machines = to_machines(machines, std::numeric_limits<std::int32_t>::max());

    HeldSources<T> held;
    for (std::size_t k = 0; k < arrays.size(); ++k)
        held.add(arrays[k], text("arrays[", k, "]"), codes.size);
    if (kernels.empty()) refuse("kernels is empty, expected at least one");
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        auto& sources = problem.kernels.emplace_back();
        for (std::size_t c = 0; c < kernels[k].size(); ++c)
            sources.push_back(to_source<T>(kernels[k][c], text("kernels[", k, "][", c, "]"), held,
                                           codes.size, compact));
    }

    const Vector<const double> row_weights(weights, "weights", codes.size);
    for (std::size_t i = 0; i < codes.size; ++i)
        if (const double w = row_weights.data[i]; !(w >= 0) || std::isinf(w))
            refuse("weights[", i, "] is ", w, ", expected a finite number of at least 0");
    problem.weights = row_weights.data;
    const Grid<const std::uint8_t> trained(train, "train");
    trained.check_has_no_gaps("train");
    if (trained.n_cols != codes.size)
        refuse("train has ", trained.n_cols, " columns, expected ", codes.size);
    const Grid<const std::uint8_t> tested(test, "test", trained.n_rows, trained.n_cols);
    tested.check_has_no_gaps("test");
    problem.n_splits = trained.n_rows;
    problem.train = trained.data;
    problem.test = tested.data;
    const Grid<const std::int32_t> shuffled(shuffles, "shuffles");
    shuffled.check_has_no_gaps("shuffles");
    if (shuffled.n_cols != codes.size)
        refuse("shuffles has ", shuffled.n_cols, " columns, expected ", codes.size);
    problem.n_shuffles = shuffled.n_rows;
    problem.shuffles = shuffled.data;
    for (std::size_t k = 0; k < kernels.size(); ++k)
        if (kernels[k].size() != 1 &&
            (kernels[k].size() != problem.n_splits + 1 || problem.n_shuffles))
            refuse("kernels[", k, "] has ", kernels[k].size(), " sources, expected 1",
                   problem.n_shuffles ? std::string() : text(" or ", problem.n_splits + 1));

    problem.options.loss = to_choice<PathLoss>(
        "loss", loss, {{"logistic", PathLoss::logistic}, {"exponential", PathLoss::exponential}});
    problem.options.bias = bias;
    problem.options.all_columns = all_columns;
    problem.options.sharpness = to_number("sharpness", sharpness, 0.0);
    problem.options.n_stages = to_count("n_stages", n_stages);
    problem.options.max_stages = to_count("max_stages", max_stages);
    if (n_stages > max_stages)
        refuse("n_stages is ", n_stages, ", expected at most max_stages, ", max_stages);
    problem.race = race;
    problem.memory_bytes = to_count("memory_bytes", memory_bytes);
    problem.n_threads = to_n_threads(n_threads);
    const Monitor heard(monitor);
    problem.max_seconds = heard.seconds_left();
    Control control(heard.poll());
    const nb::gil_scoped_release released;
    return staged_vote_machines<T>(problem, control);
}

template <class T>
void define(nb::module_& module, const char* name) {
    module.def(name, &staged_vote<T>, nb::arg("arrays"), nb::arg("kernels"), nb::kw_only(),
               nb::arg("classes"), nb::arg("machines"), nb::arg("weights"), nb::arg("train"),
               nb::arg("test"), nb::arg("shuffles"), nb::arg("loss"), nb::arg("bias"),
               nb::arg("all_columns"), nb::arg("sharpness"), nb::arg("n_stages"),
               nb::arg("max_stages"), nb::arg("race"), nb::arg("compact"), nb::arg("memory_bytes"),
               nb::arg("n_threads"), nb::arg("monitor").none(),
               "Run the paths of all kernels for all machines; one result per machine.");
}

}  // namespace

void bind_staged_vote(nb::module_& module) {
    auto path = nb::class_<StagedVotePath>(module, "StagedVotePath", "The path of one kernel.");
    def_array(path, "coefficients", &StagedVotePath::coefficients);
    def_array(path, "held_scores", &StagedVotePath::held_scores);
    def_array(path, "stages", &StagedVotePath::stages);
    def_array(path, "losses", &StagedVotePath::losses);
    path.def_ro("intercept", &StagedVotePath::intercept)
        .def_ro("mass", &StagedVotePath::mass)
        .def_ro("loss", &StagedVotePath::loss)
        .def_ro("n_stages", &StagedVotePath::n_stages)
        .def_prop_ro("stop_reason", [](const StagedVotePath& p) { return word(p.reason); });
    auto result = nb::class_<StagedVoteResult>(module, "StagedVoteResult",
                                               "The paths of all kernels for one machine.");
    def_array(result, "rows", &StagedVoteResult::rows);
    def_array(result, "splits", &StagedVoteResult::splits);
    def_array(result, "held_rows", &StagedVoteResult::held_rows);
    def_array(result, "held_splits", &StagedVoteResult::held_splits);
    result.def_ro("paths", &StagedVoteResult::paths);
    define<float>(module, "staged_vote_float32");
    define<double>(module, "staged_vote_float64");
}
