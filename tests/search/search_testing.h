#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "chess/fen.h"
#include "chess/notation.h"
#include "nn/evaluator.h"
#include "search/player.h"
#include "search/static_eval.h"
#include "tests/test_paths.h"

namespace tahl::search {

inline Position position_of(const std::string& fen) {
  const auto position = parse_fen(fen);
  EXPECT_TRUE(position) << fen;
  return position ? *position : Position::initial();
}

// "" for `moves`, or UCI moves with spaces between.
inline Game game_of(const std::string& fen, const std::string& moves = "") {
  Game game(position_of(fen));
  std::istringstream words(moves);
  for (std::string word; words >> word;) {
    const auto m = parse_uci(game.position(), word);
    EXPECT_TRUE(m) << word;
    if (m) game.play(*m);
  }
  return game;
}

inline std::string uci(const Game& game, Move m) { return to_uci(game.position(), m); }

// Knows material; likes captures and, most of all, one move that a test may name. Counts what it is
// asked.
class ScriptedEvaluator : public nn::Evaluator {
 public:
  explicit ScriptedEvaluator(std::string favourite = "", double value_scale = 1)
      : favourite_(std::move(favourite)), value_scale_(value_scale) {}
  std::vector<nn::Evaluation> evaluate(std::span<const nn::EvalRequest> batch) override {
    std::vector<nn::Evaluation> result;
    for (const auto& request : batch) {
      const Position& p = request.game->position();
      nn::Evaluation e;
      const double lead = material(p, p.side_to_move()) - material(p, ~p.side_to_move());
      e.value = static_cast<float>(value_scale_ * std::tanh(lead / 600));
      for (const Move m : *request.legal)
        e.logits.push_back(to_uci(p, m) == favourite_ ? 6.f : p.is_capture(m) ? 1.f : 0.f);
      result.push_back(std::move(e));
    }
    return result;
  }
  std::unique_ptr<nn::Evaluator> clone() const override {
    return std::make_unique<ScriptedEvaluator>(favourite_, value_scale_);
  }
  std::string name() const override { return "scripted"; }

 private:
  std::string favourite_;
  double value_scale_;
};

// Positions with a mate in one, own work and classics, and all moves that mate.
struct MateInOne {
  const char* fen;
  const char* mates;
};
inline const MateInOne kMatesInOne[] = {
    {"6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1a8"},  // back rank
    {"r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1"},  // the same for Black
    {"r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", "h5f7"},  // scholar's
    {"rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq g3 0 2", "d8h4"},       // fool's
    {"6rk/6pp/8/6N1/8/8/8/6K1 w - - 0 1", "g5f7"},                                    // smothered
    {"7k/5K2/8/6Q1/8/8/8/8 w - - 0 1", "g5g7 g5g8 g5h5 g5h4 g5h6"},
    {"k7/2P5/1K6/8/8/8/8/8 w - - 0 1", "c7c8q c7c8r"},  // by promotion
    {"r1bq1r2/pp2n3/4N2k/3pPppP/1b1n2Q1/2N5/PP3PP1/R1B1K2R w KQ g6 0 15",
     "h5g6"},                                      // en passant (Gundersen - Faul 1928)
    {"6k1/5p1p/8/8/8/8/5PPP/R5K1 w - - 0 1", ""},  // g7 is free
};

// Rows of ../shared/cases/positions.tsv, where it is there.
struct CaseRow {
  std::string id, kind, fen, moves, best, avoid, result;
};
inline std::vector<CaseRow> case_rows() {
  std::vector<CaseRow> rows;
  const auto path = test::shared_path("cases/positions.tsv");
  if (!path) return rows;
  std::ifstream in(*path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> f;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, '\t');) f.push_back(field);
    f.resize(13);
    rows.push_back({f[0], f[1], f[2], f[3], f[5], f[7], f[9]});
  }
  return rows;
}
inline bool has_word(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

}  // namespace tahl::search
