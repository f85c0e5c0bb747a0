// Moves in SAN after a walk (MoveInput): writing and reading, in short and in long.

#include <algorithm>
#include <string>
#include <vector>

#include "chess/notation.h"
#include "fuzz/properties.h"

namespace {

using namespace tahl;
using namespace tahl::fuzz;

void check_reads_as(const Position& p, const std::string& text, Move m) {
  const auto read = parse_san(p, text);
  check(read && *read == m, "SAN that says one move is read as that move", p, text);
}

void check_san(const Position& p, Move m, const std::string& san) {
  check_reads_as(p, san, m);
  const Position next = after(p, m);
  const char last = san.back();
  check((last == '+' || last == '#') == next.is_check(), "SAN says whether it is check", p, san);
  check((last == '#') == (next.is_check() && !has_legal_move(next)), "SAN says whether it is mate",
        p, san);

  // As other programs write it.
  std::string bare;
  for (const char c : san)
    if (c != 'x' && c != '+' && c != '#') bare += c;
  check_reads_as(p, bare, m);
  check_reads_as(p, san + "!?", m);
  if (m.is_promotion()) {
    bare.erase(bare.find('='), 1);
    check_reads_as(p, bare, m);
    bare.back() = static_cast<char>(bare.back() + ('a' - 'A'));
    check_reads_as(p, bare, m);
  }
  if (m.is_castling()) {
    std::string zeros = san;
    std::replace(zeros.begin(), zeros.end(), 'O', '0');
    check_reads_as(p, zeros, m);
  } else {
    const std::string squares = square_name(m.from()) + (p.is_capture(m) ? "x" : "-") +
                                square_name(m.to()) +
                                (m.is_promotion() ? san.substr(san.find('='), 2) : "");
    const PieceType type = p.type_on(m.from());
    const std::string letter =
        type == PieceType::Pawn ? "" : std::string(1, "PNBRQK"[static_cast<unsigned>(index(type))]);
    check_reads_as(p, letter + squares, m);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MoveInput input(data, size);
  const Position& p = input.position();
  const MoveList moves = legal_moves(p);
  std::vector<std::string> sans;
  for (const Move m : moves) {
    sans.push_back(to_san(p, m));
    check_san(p, m, sans.back());
  }
  std::sort(sans.begin(), sans.end());
  check(std::adjacent_find(sans.begin(), sans.end()) == sans.end(), "no two moves share their SAN",
        p);
  while (!input.at_end()) {
    const std::string_view text = input.line();
    const auto m = parse_san(p, text);
    if (!m) {
      check_message(m.error().message);
      continue;
    }
    check(moves.contains(*m), "what is read is legal", p, text);
  }
  return 0;
}
