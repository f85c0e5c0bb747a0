#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "chess/game.h"
#include "chess/movegen.h"

namespace tahl::search {

// A draw as a search sees it, other than stalemate: dead material, fifty moves, a third occurrence,
// or a second one if the first was at or after `root_ply` (who can repeat once can repeat again, so
// the tree need not show it). Precondition: the side to move is not mated; mate on the hundredth
// ply counts as mate.
bool is_search_draw(const Game& game, int root_ply);

bool is_mate(const Position& position);

// A move of `legal` that mates, or nothing.
std::optional<Move> find_mate_in_one(const Position& position, const MoveList& legal);

// The moves of a shortest mate in at most `moves` moves, our moves and
// the longest defence alternating, or nothing. Every move is tried: about 30^(2 * moves - 2)
// positions. Gives up, with nothing, when `give_up` says so.
std::vector<Move> find_mate(const Position& position, const MoveList& root_moves, int moves,
                            const std::function<bool()>& give_up = {});

}  // namespace tahl::search
