// Arbitrary text as FEN: what is read is written and read again, passes and moves lead to positions
// of which the same is true, and a message is one line.

#include "chess/movegen.h"
#include "fuzz/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tahl;
  using namespace tahl::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool chess960 : {false, true}) {
    const auto position = parse_fen(text, chess960);
    if (!position) {
      check_message(position.error().message);
      continue;
    }
    check(chess960 || parse_fen(text, true).has_value(), "Chess960 refuses nothing that is chess",
          text);
    check_fen(*position);
    const MoveList moves = legal_moves(*position);
    check(has_legal_move(*position) == !moves.empty(), "has_legal_move is as the list", *position);
    for (const Move m : moves) {
      const Position next = after(*position, m);
      check_fen(next, FenStyle::XFen, needs_chess960(next));
    }
    if (position->is_check()) continue;
    Position passed = *position;
    passed.make_null();
    check_fen(passed);
  }
  return 0;
}
