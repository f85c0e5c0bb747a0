// Moves as UCI writes them, after a walk (MoveInput): writing and reading, and what is legal.

#include <algorithm>
#include <vector>

#include "chess/movegen_table.h"
#include "chess/notation.h"
#include "fuzz/properties.h"
#include "fuzz/slow_rules.h"

namespace {

using namespace tahl;
using namespace tahl::fuzz;

std::vector<std::uint16_t> sorted(const auto& moves) {
  std::vector<std::uint16_t> bits;
  for (const Move m : moves) bits.push_back(m.bits());
  std::sort(bits.begin(), bits.end());
  return bits;
}

void check_moves(const Position& p) {
  const MoveList moves = legal_moves(p);
  const std::vector<std::uint16_t> slow = sorted(SlowRules(p).legal_moves());
  check(sorted(moves) == slow, "the legal moves are those of the slow rules", p);
  check(has_legal_move(p) == !moves.empty(), "has_legal_move is as the list", p);
  // Every back end, as compiled for every instruction set that there is here.
  for (const MovegenTable* table : available_movegens()) {
    for (const auto* backend : {&table->best, &table->titboard, &table->pext, &table->magic}) {
      if (!backend->legal_moves) continue;
      MoveList others;
      backend->legal_moves(p, others);
      check(sorted(others) == slow, "every back end lists the same", p, table->name);
      check(backend->perft_counted(p, 1) == slow.size(), "every back end counts the same", p,
            table->name);
      check(backend->perft_made(p, 1) == slow.size(), "every back end makes the same", p,
            table->name);
    }
  }
}

void check_is_legal(const Position& p, const MoveList& moves, Move m) {
  check(is_legal(p, m) == moves.contains(m), "is_legal is as the list", p,
        std::to_string(m.bits()));
}

// A move, and moves that differ from it by one bit (another square, kind or promotion).
void check_move_and_neighbours(const Position& p, const MoveList& moves, Move m) {
  check_is_legal(p, moves, m);
  after(p, m);
  for (unsigned i = 0; i < 4; ++i) {  // four of the sixteen, which differ by position
    const auto flipped = static_cast<std::uint16_t>(1u << ((p.key() + 5 * i) % 16));
    check_is_legal(p, moves, Move::from_bits(static_cast<std::uint16_t>(m.bits() ^ flipped)));
  }
  const std::string text = to_uci(p, m, true);
  const auto again = parse_uci(p, text, true);
  check(again && *again == m, "reading UCI undoes writing it", p, text);
  if (needs_chess960(p)) return;  // then only king takes rook says it
  const std::string usual = to_uci(p, m, false);
  const auto usual_again = parse_uci(p, usual, false);
  check(usual_again && *usual_again == m, "reading UCI undoes writing it", p, usual);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MoveInput input(data, size);
  const Position& p = input.position();
  check_moves(p);
  const MoveList moves = legal_moves(p);
  for (const Move m : moves) check_move_and_neighbours(p, moves, m);
  while (!input.at_end()) {
    const std::string_view text = input.line();
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
      const auto low = static_cast<unsigned char>(text[i]);
      const auto high = static_cast<unsigned char>(text[i + 1]);
      check_is_legal(p, moves, Move::from_bits(static_cast<std::uint16_t>(low | high << 8)));
    }
    const bool chess960 = needs_chess960(p);
    const auto m = parse_uci(p, text, chess960);
    if (!m) {
      check_message(m.error().message);
      continue;
    }
    check(moves.contains(*m), "what is read is legal", p, text);
    const auto again = parse_uci(p, to_uci(p, *m, chess960), chess960);
    check(again && *again == *m, "what is read can be written and read", p, text);
  }
  return 0;
}
