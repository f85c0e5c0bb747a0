#include "nn/evaluator_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "chess/fen.h"
#include "chess/notation.h"
#include "nn/net_file.h"
#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

// Answers by a hash of what it may see, and counts the questions.
class CountingEvaluator : public Evaluator {
 public:
  explicit CountingEvaluator(std::shared_ptr<std::atomic<int>> count, int positions = 1)
      : count_(std::move(count)), positions_(positions) {}
  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    std::vector<Evaluation> result;
    for (const EvalRequest& request : batch) {
      ++*count_;
      const EvaluationKey key = evaluation_key(*request.game, *request.legal, positions_);
      Evaluation& e = result.emplace_back();
      e.value = static_cast<float>(key.place % 2001) / 1000 - 1;
      e.draw = static_cast<float>(key.check % 1000) / 1000;
      for (int i = 0; i < request.legal->size(); ++i)
        e.logits.push_back(static_cast<float>((key.place >> 3) % (7 + static_cast<unsigned>(i))));
    }
    return result;
  }
  std::unique_ptr<Evaluator> clone() const override {
    return std::make_unique<CountingEvaluator>(count_, positions_);
  }
  std::string name() const override { return "counting"; }
  int positions_read() const override { return positions_; }

 private:
  std::shared_ptr<std::atomic<int>> count_;
  int positions_;
};

struct Question {
  Game game;
  MoveList legal;
  explicit Question(const Game& g) : game(g), legal(legal_moves(g.position())) {}
};

// Positions of random games.
std::vector<Question> questions(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Question> result;
  Game game;
  while (static_cast<int>(result.size()) < count) {
    const MoveList legal = legal_moves(game.position());
    if (legal.empty() || game.ply() > 150) {
      game = Game();
      continue;
    }
    result.emplace_back(game);
    game.play(legal[static_cast<int>(random() % static_cast<unsigned>(legal.size()))]);
  }
  return result;
}

void expect_equal(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.draw, b.draw);
  EXPECT_EQ(a.logits, b.logits);
}

Game game_after(const std::string& moves) {
  Game game;
  std::istringstream words(moves);
  for (std::string word; words >> word;) game.play(*parse_uci(game.position(), word));
  return game;
}

EvaluationKey key_of(const Game& game, int positions = 1) {
  return evaluation_key(game, legal_moves(game.position()), positions);
}
EvaluationKey key_of(const char* fen) { return key_of(Game(*parse_fen(fen))); }

TEST(EvaluationKey, TellsEverythingApartThatAnEncodingSees) {
  const auto start = key_of("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
  EXPECT_EQ(start, key_of("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 7"));  // the move's number is unseen
  EXPECT_NE(start, key_of("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"));
  EXPECT_NE(start, key_of("r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1"));
  EXPECT_NE(start, key_of("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 1"));
  EXPECT_NE(start, key_of("r3k2r/8/8/8/8/8/8/R3K1R1 w Qkq - 0 1"));
  // The square behind a double step counts even where nothing can capture: rdt19 shows it.
  EXPECT_NE(key_of(game_after("e2e4")),
            key_of("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"));
}

TEST(EvaluationKey, CountsRepetitions) {
  EXPECT_NE(key_of(game_after("g1f3 g8f6 f3g1 f6g8")),
            key_of("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3"));
}

TEST(EvaluationKey, SeesAsFarBackAsItIsTold) {
  const Game one = game_after("g1f3 g8f6 b1c3"), other = game_after("b1c3 g8f6 g1f3");
  EXPECT_EQ(key_of(one, 1), key_of(other, 1));
  EXPECT_NE(key_of(one, 2), key_of(other, 2));
  EXPECT_NE(key_of(one, 8), key_of(other, 8));
  EXPECT_NE(key_of(one, Evaluator::kWholeGame), key_of(other, Evaluator::kWholeGame));
  const Game longer = game_after("g1f3 g8f6 b1c3 b8c6 e2e4 e7e5 f1b5 a7a6 b5a4 b7b5");
  const Game late = game_after("b1c3 g8f6 g1f3 b8c6 e2e4 e7e5 f1b5 a7a6 b5a4 b7b5");
  EXPECT_EQ(key_of(longer, 8), key_of(late, 8));
  EXPECT_NE(key_of(longer, Evaluator::kWholeGame), key_of(late, Evaluator::kWholeGame));
  // As far as there is anything: the start is not the same as a history of one.
  EXPECT_NE(key_of(Game(one.position()), 8), key_of(one, 8));
}

TEST(EvaluationKey, DependsOnTheMovesAndTheirOrder) {
  const Game game;
  MoveList moves = legal_moves(game.position()), fewer, turned;
  for (int i = 1; i < moves.size(); ++i) fewer.push_back(moves[i]);
  for (int i = moves.size(); i-- > 0;) turned.push_back(moves[i]);
  EXPECT_NE(evaluation_key(game, moves, 1), evaluation_key(game, fewer, 1));
  EXPECT_NE(evaluation_key(game, moves, 1), evaluation_key(game, turned, 1));
}

TEST(EvaluationKey, DiffersForDifferentPositions) {
  std::set<std::uint64_t> places, checks;
  std::set<std::string> fens;
  for (const Question& q : questions(20'000, 1)) {
    // What the key tells apart: FEN but the move's number, the square behind a double step,
    // repetition.
    const std::string fen = to_fen(q.game.position());
    fens.insert(fmt::format("{} {} {}", fen.substr(0, fen.rfind(' ')),
                            static_cast<int>(q.game.position().en_passant_square()),
                            q.game.repetitions() > 1));
    const EvaluationKey key = key_of(q.game);
    places.insert(key.place);
    checks.insert(key.check);
  }
  EXPECT_EQ(places.size(), fens.size());
  EXPECT_EQ(checks.size(), fens.size());
}

TEST(Cache, AnswersTheSecondTimeFromMemoryAndTheSame) {
  const auto count = std::make_shared<std::atomic<int>>(0);
  const auto cached = with_cache(std::make_unique<CountingEvaluator>(count), 4 << 20);
  CountingEvaluator plain(std::make_shared<std::atomic<int>>(0));
  const Question q((Game()));
  const Evaluation first = cached->evaluate(q.game, q.legal);
  const Evaluation second = cached->evaluate(q.game, q.legal);
  const Evaluation third = cached->clone()->evaluate(q.game, q.legal);
  EXPECT_EQ(*count, 1);
  const Evaluation truth = static_cast<Evaluator&>(plain).evaluate(q.game, q.legal);
  for (const Evaluation& e : {first, second, third}) expect_equal(e, truth);
}

TEST(Cache, AsksOnlyForWhatIsMissingOfABatch) {
  const auto count = std::make_shared<std::atomic<int>>(0);
  const auto cached = with_cache(std::make_unique<CountingEvaluator>(count), 4 << 20);
  CountingEvaluator plain(std::make_shared<std::atomic<int>>(0));
  const std::vector<Question> all = questions(60, 2);
  std::vector<EvalRequest> batch;
  for (std::size_t i = 0; i < all.size(); i += 3) batch.push_back({&all[i].game, &all[i].legal});
  cached->evaluate(batch);
  const int asked = *count;
  batch.clear();
  for (const Question& q : all) batch.push_back({&q.game, &q.legal});
  const auto answers = cached->evaluate(batch);
  EXPECT_LE(*count, asked + 40);
  const auto truth = plain.evaluate(batch);
  for (std::size_t i = 0; i < all.size(); ++i) expect_equal(answers[i], truth[i]);
}

TEST(Cache, ForgetsTheOldButNeverConfuses) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100'000}, std::size_t{1'000'000}}) {
    const auto count = std::make_shared<std::atomic<int>>(0);
    const auto cached = with_cache(std::make_unique<CountingEvaluator>(count), bytes);
    CountingEvaluator plain(std::make_shared<std::atomic<int>>(0));
    for (const int seed : {3, 4, 3}) {
      for (const Question& q : questions(20'000, static_cast<std::uint32_t>(seed))) {
        const EvalRequest request{&q.game, &q.legal};
        expect_equal(cached->evaluate({&request, 1})[0], plain.evaluate({&request, 1})[0]);
      }
    }
    EXPECT_GT(*count, 40'000) << bytes;  // there is no room for 20,000
    // The last ones are still there, as far as there is any room.
    if (bytes < 1'000'000) continue;
    const int before = *count;
    const std::vector<Question> again = questions(20'000, 3);
    for (std::size_t i = again.size() - 500; i < again.size(); ++i) {
      const EvalRequest request{&again[i].game, &again[i].legal};
      cached->evaluate({&request, 1});
    }
    EXPECT_LT(*count - before, 50);
  }
}

TEST(Cache, TakesPositionsWithoutMoves) {
  const auto cached =
      with_cache(std::make_unique<CountingEvaluator>(std::make_shared<std::atomic<int>>(0)), 1000);
  const Question mated(Game(*parse_fen("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1")));
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(static_cast<Evaluator&>(*cached).evaluate(mated.game, mated.legal).logits.empty());
}

TEST(Cache, ServesManyThreads) {
  const auto count = std::make_shared<std::atomic<int>>(0);
  const auto cached = with_cache(std::make_unique<CountingEvaluator>(count), 300'000);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t, mine = std::shared_ptr<Evaluator>(cached->clone())] {
        CountingEvaluator plain(std::make_shared<std::atomic<int>>(0));
        for (const Question& q : questions(4000, 7 + t % 2)) {  // two ask the same
          const EvalRequest request{&q.game, &q.legal};
          const auto a = mine->evaluate({&request, 1}), b = plain.evaluate({&request, 1});
          if (a[0].value != b[0].value || a[0].logits != b[0].logits) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Cache, GivesWhatARealNetGives) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "cache-net.safetensors";
  ASSERT_TRUE(write_net(testing::random_net({.channels = 16, .blocks = 2}, 5), path));
  auto plain = load_evaluator(path.string());
  ASSERT_TRUE(plain);
  const auto cached = with_cache((*plain)->clone(), 1 << 20);
  const std::vector<Question> all = questions(40, 9);
  std::vector<EvalRequest> batch;
  for (const Question& q : all) batch.push_back({&q.game, &q.legal});
  for (std::size_t i = 0; i < all.size(); i += 2) cached->evaluate(all[i].game, all[i].legal);
  const auto truth = (*plain)->evaluate(batch), answers = cached->evaluate(batch);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(truth[i].value, answers[i].value, 1e-5);
    for (std::size_t k = 0; k < truth[i].logits.size(); ++k)
      EXPECT_NEAR(truth[i].logits[k], answers[i].logits[k], 1e-4);
  }
}

}  // namespace
}  // namespace tahl::nn
