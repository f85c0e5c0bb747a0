#include "chess/movegen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "chess/fen.h"
#include "chess/movegen_table.h"
#include "chess/perft.h"
#include "chess/slider_lookup.h"
#include "tests/test_paths.h"

namespace tahl {
namespace {

// Each back end of each generator that this processor can run.
struct Subject {
  const MovegenTable* movegen;
  SliderBackend sliders;
  const MovegenTable::Backend& backend() const { return (*movegen)[sliders]; }
};

std::vector<Subject> subjects() {
  std::vector<Subject> result;
  for (const MovegenTable* movegen : available_movegens())
    for (const SliderBackend b : kSliderBackends)
      if ((*movegen)[b].legal_moves != nullptr) result.push_back({movegen, b});
  return result;
}

std::vector<std::uint16_t> sorted_bits(const Move* begin, const Move* end) {
  std::vector<std::uint16_t> bits;
  for (const Move* m = begin; m != end; ++m) bits.push_back(m->bits());
  std::ranges::sort(bits);
  return bits;
}

class MovegenTest : public testing::TestWithParam<Subject> {};

TEST_P(MovegenTest, SlidersAgreeWithTheSlowWalkOnTwoMillionBoards) {
  const MovegenTable::Backend& backend = GetParam().backend();
  std::mt19937_64 random(1992);
  Move written[64];
  const auto check = [&](Square s, Bitboard own, Bitboard enemy, Bitboard expected,
                         MovegenTable::Backend::Moves moves, MovegenTable::Backend::Count count,
                         MovegenTable::Backend::Write write) {
    ASSERT_EQ(moves(s, own, enemy), expected) << int{s} << ' ' << own << ' ' << enemy;
    ASSERT_EQ(count(s, own, enemy), popcount(expected));
    Bitboard targets = 0;
    const Move* const end = write(s, own, enemy, written);
    for (const Move* m = written; m != end; ++m) {
      ASSERT_EQ(*m, Move(s, m->to()));
      targets |= bit(m->to());
    }
    ASSERT_EQ(targets, expected);
    ASSERT_EQ(end - written, popcount(expected));
  };
  for (int i = 0; i < 2'000'000; ++i) {
    const auto s = static_cast<Square>(random() & 63);
    const Bitboard men = random() & random() & ~bit(s);  // a quarter of the squares, or an eighth
    const Bitboard own = (men & random()) | bit(s);
    const Bitboard enemy = men & ~own & (i % 2 ? ~Bitboard{0} : random());
    check(s, own, enemy, slow_bishop_attacks(s, own | enemy) & ~own, backend.bishop_moves,
          backend.count_bishop, backend.write_bishop);
    check(s, own, enemy, slow_rook_attacks(s, own | enemy) & ~own, backend.rook_moves,
          backend.count_rook, backend.write_rook);
    if (HasFatalFailure()) return;
  }
}

// The moves that the slow definitions allow: every move of the right shape that does not leave the
// king attacked.
std::vector<std::uint16_t> slow_legal_moves(const Position& p) {
  const Color us = p.side_to_move();
  const Bitboard own = p.pieces(us), enemy = p.pieces(~us), occupied = own | enemy;
  std::vector<Move> shaped;
  for (Bitboard men = own; men;) {
    const Square from = pop_square(men);
    const int r = rank_of(from), up = us == Color::White ? 1 : -1;
    Bitboard to = 0;
    switch (p.type_on(from)) {
      case PieceType::Pawn:
        to = ray(from, 0, up, occupied) & ~occupied;
        if (relative_rank(us, from) != 1) to &= rank_mask(r + up);
        to &= rank_mask(r + up) | rank_mask(std::clamp(r + 2 * up, 0, 7));
        to |= steps(from, {{-1, up}, {1, up}}) & enemy;
        if (p.en_passant_square() != kNoSquare &&
            (steps(from, {{-1, up}, {1, up}}) & bit(p.en_passant_square())) != 0)
          shaped.emplace_back(from, p.en_passant_square(), MoveKind::EnPassant);
        break;
      case PieceType::Knight:
        to = knight_steps(from) & ~own;
        break;
      case PieceType::King:
        to = king_steps(from) & ~own;
        break;
      default:
        if (p.type_on(from) != PieceType::Rook) to |= slow_bishop_attacks(from, occupied) & ~own;
        if (p.type_on(from) != PieceType::Bishop) to |= slow_rook_attacks(from, occupied) & ~own;
    }
    while (to) {
      const Square s = pop_square(to);
      if (p.type_on(from) == PieceType::Pawn && relative_rank(us, s) == 7) {
        for (const PieceType t :
             {PieceType::Knight, PieceType::Bishop, PieceType::Rook, PieceType::Queen})
          shaped.emplace_back(from, s, MoveKind::Promotion, t);
      } else {
        shaped.emplace_back(from, s);
      }
    }
  }
  std::vector<Move> legal;
  for (const Move m : shaped) {
    Position next = p;
    next.make(m);
    if ((next.attackers_to(next.king(us), next.occupied()) & next.pieces(~us)) == 0)
      legal.push_back(m);
  }
  for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen}) {
    const Square rook = p.castling_rook(us, side), king = p.king(us);
    if (rook == kNoSquare) continue;
    const int rank = rank_of(king);
    const Square king_to = make_square(side == CastlingSide::King ? 6 : 2, rank);
    const Square rook_to = make_square(side == CastlingSide::King ? 5 : 3, rank);
    const Bitboard without = occupied & ~bit(king) & ~bit(rook);
    bool allowed = true;
    const auto each_between = [](Square a, Square b, auto f) {
      for (int s = std::min(a, b); s <= std::max(a, b); ++s) f(static_cast<Square>(s));
    };
    each_between(king, king_to, [&](Square s) {
      allowed &= (without & bit(s)) == 0;
      allowed &= (p.attackers_to(s, occupied & ~bit(king)) & enemy) == 0;
    });
    each_between(rook, rook_to, [&](Square s) { allowed &= (without & bit(s)) == 0; });
    const Bitboard after = without | bit(king_to) | bit(rook_to);
    allowed &= (p.attackers_to(king_to, after) & enemy) == 0;
    if (allowed) legal.emplace_back(king, rook, MoveKind::Castling);
  }
  return sorted_bits(legal.data(), legal.data() + legal.size());
}

std::vector<Position> positions_of(const std::filesystem::path& path, std::size_t every) {
  std::vector<Position> result;
  std::ifstream file(path);
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    if (number++ % every != 0) continue;
    const auto position = parse_fen(text.substr(0, text.find(';')), true);
    EXPECT_TRUE(position) << text;
    if (position) result.push_back(*position);
  }
  return result;
}

TEST_P(MovegenTest, ListsAgreeWithTheSlowDefinitionOnTheNodesOfTrees) {
  const MovegenTable::Backend& backend = GetParam().backend();
  std::vector<Position> nodes = positions_of(test::data_path("perft.epd"), 1);
  if (const auto path = test::shared_path("cases/perft.epd"))
    for (const Position& p : positions_of(*path, 1)) nodes.push_back(p);
  std::mt19937_64 random(2006);
  for (std::size_t i = 0; i < nodes.size() && nodes.size() < 20'000; ++i) {
    MoveList moves;
    backend.legal_moves(nodes[i], moves);
    ASSERT_EQ(sorted_bits(moves.begin(), moves.end()), slow_legal_moves(nodes[i]))
        << to_fen(nodes[i]);
    for (int k = 0; k < 8 && !moves.empty(); ++k) {
      nodes.push_back(nodes[i]);
      nodes.back().make(moves[static_cast<int>(random() % static_cast<unsigned>(moves.size()))]);
    }
  }
}

TEST_P(MovegenTest, LeavesMadeAreAsManyAsLeavesCounted) {
  const MovegenTable::Backend& backend = GetParam().backend();
  for (const Position& p : positions_of(test::data_path("perft.epd"), 1))
    for (int depth = 1; depth <= 3; ++depth)
      ASSERT_EQ(backend.perft_made(p, depth), backend.perft_counted(p, depth)) << to_fen(p);
}

// Six thousand positions by Marcel van Kervinck with counts to depth 6.
TEST_P(MovegenTest, CountsOfALargeCollectionAreExact) {
  const auto path = test::shared_path("data/suites/perft-marcel.epd");
  if (!path) GTEST_SKIP() << "no ../shared/data/suites/perft-marcel.epd";
  const MovegenTable::Backend& backend = GetParam().backend();
  std::ifstream file(*path);
  int read = 0;
  for (std::string text; std::getline(file, text); ++read) {
    if (text.empty()) continue;
    const auto position = parse_fen(text.substr(0, text.find(';')));
    ASSERT_TRUE(position) << text;
    for (int depth = 1; depth <= (read % 8 == 0 ? 4 : 3); ++depth) {
      const std::size_t at = text.find("D" + std::to_string(depth) + " ");
      if (at == std::string::npos) continue;
      const std::uint64_t nodes = std::stoull(text.substr(at + 3));
      ASSERT_EQ(backend.perft_counted(*position, depth), nodes) << text;
      if (depth <= 2) {
        ASSERT_EQ(backend.perft_made(*position, depth), nodes) << text;
      }
    }
  }
  EXPECT_GT(read, 6000);
}

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.movegen->name << ' ' << to_string(subject.sliders);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, MovegenTest, testing::ValuesIn(subjects()),
                         [](const auto& instance) {
                           std::string name = instance.param.movegen->name;
                           std::erase(name, '-');
                           return name + "_" + std::string(to_string(instance.param.sliders));
                         });

TEST(Movegen, TheDefaultCountsWhatItLists) {
  for (const MovegenTable* movegen : available_movegens()) {
    for (const Position& p : positions_of(test::data_path("perft.epd"), 1)) {
      MoveList moves;
      movegen->best.legal_moves(p, moves);
      ASSERT_EQ(movegen->best.perft_counted(p, 1), static_cast<std::uint64_t>(moves.size()));
      ASSERT_EQ(movegen->best.perft_counted(p, 3), movegen->best.perft_made(p, 3)) << to_fen(p);
    }
  }
}

// 218 is the most that a reachable position is known to have (Petrovic 1964).
TEST_P(MovegenTest, ListsHoldTheLargestPositions) {
  for (const char* fen : {"R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
                          "Kbnn1kb1/PP1q4/q4q2/2q4q/4q3/1q4q1/3q4/r6r b - - 0 1"}) {
    const Position p = parse_fen(fen).value();
    MoveList moves;
    GetParam().backend().legal_moves(p, moves);
    EXPECT_EQ(moves.size(), 218);
    EXPECT_EQ(GetParam().backend().perft_made(p, 1), 218u);
    EXPECT_EQ(GetParam().backend().perft_counted(p, 1), 218u);
  }
}

TEST(Perft, ThreadsAndTheTableChangeNothing) {
  const Position p =
      *parse_fen("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
  const PerftResult plain = perft_tree(p, 4, {});
  EXPECT_EQ(plain.nodes, 4'085'603u);
  EXPECT_EQ(plain.below.size(), 48u);
  const auto counted = Leaves::Counted;
  for (const PerftOptions& options :
       {PerftOptions{counted, std::nullopt, 3, 0}, PerftOptions{counted, std::nullopt, 1, 1},
        PerftOptions{counted, std::nullopt, 2, 8},
        PerftOptions{Leaves::Made, SliderBackend::Magic, 1, 1}}) {
    const PerftResult other = perft_tree(p, 4, options);
    EXPECT_TRUE(other.complete);
    EXPECT_EQ(other.nodes, plain.nodes);
    EXPECT_EQ(other.below, plain.below);
  }
}

// Two kings: the number of leaves passes 2^56 at depth 23 and 2^64 soon after.
TEST(Perft, LargeCountsAreExactOrRefused) {
  const Position p = parse_fen("8/8/4k3/8/8/4K3/8/8 w - - 0 1").value();
  const PerftOptions with_table{Leaves::Counted, std::nullopt, 1, 16};
  EXPECT_EQ(perft_tree(p, 8, with_table).nodes, perft(p, 8));
  const PerftResult large = perft_tree(p, 40, with_table);
  EXPECT_TRUE(large.overflow);
  EXPECT_FALSE(large.complete);
}

TEST(Perft, StopsWhenAsked) {
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  EXPECT_FALSE(
      perft_tree(Position::initial(), 30, {Leaves::Counted, std::nullopt, 1, 1}, stop.get_token())
          .complete);
}

}  // namespace
}  // namespace tahl
