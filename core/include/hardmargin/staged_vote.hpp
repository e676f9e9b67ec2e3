// A path whose stages are judged on held-out rows: the machine of all rows and one machine per
// split advance in lockstep, so that held-out scores need no extra product. They share a kernel
// matrix, unless every split has found a kernel of its own.
//
// Column 0 holds the labels y of all rows; column k holds those of split k, with 0 for the other
// rows. More columns may hold shuffled labels, which show what chance alone can do. With scores F
// and bias b of each column, the steps of a stage are:
//
// 1. w = v / (1 + exp(2 y (F + b))): logistic weights, where v are the sample weights. With
//    PathLoss::exponential they are those of IJCAI-07, w = v exp(-yF).
// 2. a = y w / (2 * sum of w in the row's class), and a Newton step of b. Without bias, b = 0 and
//    a = y w / sum of w.
// 3. G = K a: one product for all columns, or one for each.
// 4. F <- F + eta G, with Nesterov's momentum and restarts. eta, common to all columns, is a damped
//    Newton step of column 0.
// 5. Judge the stage by the logistic loss of the held-out scores at their best scale. It votes with
//    the weight exp(-sharpness * n * (its loss - the least)). (Not every later stage is judged.)
// 6. Stop when the loss has not fallen for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/kernel_product.hpp"

namespace hardmargin {

enum class PathLoss { logistic, exponential };
enum class PathStop { running, patience, n_stages, max_stages, rho_zero, outrun, max_time };

struct PathOptions {
    PathLoss loss = PathLoss::logistic;
    bool bias = true;
    std::size_t n_stages = 0;  // at most max_stages; 0: chosen by the held-out loss
    std::size_t max_stages = 0;
    double sharpness = 0;
    bool all_columns = false;  // return the coefficients of all columns
};

// A two-class problem with its splits. Arrays of T are padded with zeros to whole strips.
template <class T>
struct PathData {
    std::vector<std::int32_t> rows;  // original rows, ascending
    std::size_t padded = 0;
    int n_columns = 1;
    std::vector<std::int32_t> splits{-1};  // of the columns: -1 for all rows, then the splits,
                                           // then n_splits, n_splits + 1, .. if labels are shuffled
    AlignedVector<T> labels;               // [column][row]
    AlignedVector<T> weights;              // [row]
    std::vector<std::uint32_t> held_rows;  // places in `rows` that are scored ..
    std::vector<std::uint32_t> held_columns;  // .. the column that scores each ..
    std::vector<std::int32_t> held_splits;    // .. and its split
    AlignedVector<T> held_weights;
    double evidence = 0;  // number of rows that the weights stand for
    double held_weight = 0;
};

struct StagedVotePath {
    std::vector<double> coefficients;  // of the vote of all stages, by row, [column][row]
    double intercept = 0;
    std::vector<double> held_scores;   // its held-out scores, positive for the positive class
    double mass = 0;                   // sum of the stages' weights
    double loss = 0;                   // the least held-out loss
    std::vector<std::int64_t> stages;  // those judged ..
    std::vector<double> losses;        // .. and their losses
    std::size_t n_stages = 0;
    PathStop reason = PathStop::running;
};

// The kernel matrix of all columns, or one for each.
template <class T>
using Matrices = std::vector<std::unique_ptr<KernelProduct<T>>>;

template <class T>
class Path {
  public:
    // Both must outlive the path.
    Path(const PathData<T>& data, const PathOptions& options);

    // Runs up to a stage, on kernel matrices of the data's rows.
    void run(const Matrices<T>& matrices, std::size_t until, Clock::time_point deadline,
             Meter& meter);

    bool is_running() const { return reason_ == PathStop::running; }
    void stop(PathStop reason) { reason_ = reason; }
    // Ends the path before its first stage.
    void give_up(PathStop reason);
    bool is_outrun() const { return reason_ == PathStop::outrun; }
    std::size_t n_stages() const { return stage_; }
    double loss() const { return loss_; }
    double mass() const { return mass_; }
    // The least loss up to a stage.
    double loss_at(std::size_t stage) const;

    StagedVotePath result() const;

  private:
    void weigh(int column);
    void weigh_exponentially(int column);
    void step(const Matrices<T>& matrices);
    void multiply(const Matrices<T>& matrices);
    double step_length(const StepSums& sums) const;
    double spread_in_classes() const;
    void judge();
    double shift_of(const LogisticSums& sums) const;
    void fit_scale();
    double held_loss() const;
    bool is_judged(std::size_t stage) const;
    void stop_when_due();

    std::size_t at(int column) const { return static_cast<std::size_t>(column) * data_.padded; }

    const PathData<T>& data_;
    const PathOptions& options_;
    const PathTable<T>& table_ = level().paths<T>();
    AlignedVector<T> scores_, last_, direction_, steps_, weights_;  // [column][row]
    AlignedVector<T> h_, margins_;
    std::vector<double> bias_, judged_bias_;                      // of every column
    std::vector<double> coefficients_, last_coefficients_, mix_;  // [column][row]
    std::vector<double> held_mix_;
    double momentum_ = 1, log_scale_ = 0;
    double mix_intercept_ = 0, mass_ = 0, loss_ = std::numeric_limits<double>::infinity();
    std::size_t stage_ = 0, best_stage_ = 0;
    bool is_any_judged_ = false;
    std::vector<std::int64_t> stages_;
    std::vector<double> losses_;
    PathStop reason_ = PathStop::running;
};

}  // namespace hardmargin
