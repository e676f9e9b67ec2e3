// The hot loops. This file is compiled once per CPU level with HARDMARGIN_LEVEL_NAME set, each
// time with other compiler flags; everything in it is internal but the one table, so that no
// code built for a newer CPU can be linked into the rest.
//
// It is written in GCC's vector extensions: one source for every width.
#include "hardmargin/level.hpp"

#include "level/logistic.hpp"
#include "level/pairs.hpp"
#include "level/strips.hpp"
#include "level/sums.hpp"
#include "level/tiles.hpp"
#include "level/tilts.hpp"

namespace hardmargin {
namespace {

template <class T>
constexpr LevelTable<T> table = {values<T>,   reach<T>,   accumulate<T>, mix<T>,      mix_some<T>,
                                 exchange<T>, partner<T>, adjust<T>,     companion<T>};

template <class T>
constexpr PathTable<T> paths = {strip_product<T, T>, strip_product<T, std::uint16_t>,
                                strip_dots<T>,       decay<T>,
                                decay_16<T>,         logistic<T>,
                                temper<T>,           step_sums<T>,
                                advance<T>};

#define HARDMARGIN_STRING_(x) #x
#define HARDMARGIN_STRING(x) HARDMARGIN_STRING_(x)

}  // namespace

#define HARDMARGIN_TABLE_(name) level_##name
#define HARDMARGIN_TABLE(name) HARDMARGIN_TABLE_(name)

extern const Level HARDMARGIN_TABLE(HARDMARGIN_LEVEL_NAME);
const Level HARDMARGIN_TABLE(HARDMARGIN_LEVEL_NAME) = {HARDMARGIN_STRING(HARDMARGIN_LEVEL_NAME),
                                                       table<float>,
                                                       table<double>,
                                                       paths<float>,
                                                       paths<double>,
                                                       {largest, longest_step, tilt}};

}  // namespace hardmargin
