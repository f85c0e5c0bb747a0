// Who won by giving most away? Prints the won games of a PGN file (.zst too; "-" is standard
// input), boldest first, each with the most material, in pawns, that its winner was behind by for
// two moves, or when the game ended.

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "chess/pgn.h"

int material(const tahl::Position& position, tahl::Color color) {
  int sum = 0;
  for (const auto& [type, pawns] : {std::pair(tahl::PieceType::Pawn, 1),
                                    {tahl::PieceType::Knight, 3},
                                    {tahl::PieceType::Bishop, 3},
                                    {tahl::PieceType::Rook, 5},
                                    {tahl::PieceType::Queen, 9}})
    sum += pawns * tahl::popcount(position.pieces(color, type));
  return sum;
}

int main(int argc, char** argv) {
  auto reader = tahl::PgnReader::open(argc > 1 ? argv[1] : "-");
  if (!reader) return std::cerr << reader.error().message << '\n', 1;
  std::multimap<int, std::string, std::greater<>> games;
  while (const tahl::PgnGame* read = reader->next()) {
    if (read->result != tahl::Result::WhiteWins && read->result != tahl::Result::BlackWins)
      continue;
    const auto winner =
        read->result == tahl::Result::WhiteWins ? tahl::Color::White : tahl::Color::Black;
    const tahl::Game game = tahl::to_game(*read);
    std::vector<int> behind;
    for (const tahl::Position& p : game.positions())
      behind.push_back(material(p, ~winner) - material(p, winner));
    int most = 0;
    for (auto from = behind.begin(); from != behind.end(); ++from)
      most = std::max(
          most, *std::min_element(from, from + std::min<std::ptrdiff_t>(4, behind.end() - from)));
    games.emplace(most, std::string(read->tags.find("White").value_or("?")) + " - " +
                            std::string(read->tags.find("Black").value_or("?")));
  }
  for (const auto& [pawns, players] : games) std::cout << pawns << "  " << players << '\n';
}
