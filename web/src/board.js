// The board itself: chessground, the promotion dialog, and a cursor for the keyboard.
import { Chessground } from "chessground";
import "chessground/assets/chessground.base.css";
import "chessground/assets/chessground.cburnett.css";

const roles = { q: "queen", n: "knight", r: "rook", b: "bishop" };

export class Board {
  // onMove(uci) is called with a legal move that somebody made on the board.
  constructor(element, dialog, onMove) {
    this.element = element;
    this.dialog = dialog;
    this.onMove = onMove;
    this.promotions = new Set();
    this.ground = Chessground(element, {
      coordinates: true,
      animation: { duration: 180 },
      premovable: { enabled: false },
      movable: { free: false, rookCastle: true, events: { after: (from, to) => this.#moved(from, to) } },
      drawable: { brushes: { net: { key: "n", color: "#3d7f7a", opacity: 0.85, lineWidth: 11 } } },
    });
    new ResizeObserver(() => this.ground.redrawAll()).observe(element);
    this.#keyboard();
  }

  // `position` as /api/position gives it; `mover` is the colour whose pieces may be moved now, if any.
  show(position, orientation, mover) {
    if (!this.dialog.hidden) this.#closeDialog();
    this.position = position;
    this.promotions = new Set(position.promotions);
    const last = position.uci.at(-1);
    this.ground.set({
      fen: position.fen,
      orientation,
      turnColor: position.turn,
      check: position.check,
      lastMove: last ? [last.slice(0, 2), last.slice(2, 4)] : undefined,
      movable: {
        color: mover ?? undefined,
        dests: mover ? new Map(Object.entries(position.dests)) : new Map(),
      },
    });
    this.#describe();
  }

  arrows(moves) {
    this.ground.setAutoShapes(
      moves.map((uci) => ({ orig: uci.slice(0, 2), dest: uci.slice(2, 4), brush: "net" })),
    );
  }

  #moved(from, to) {
    if (this.promotions.has(from + to)) this.#askPromotion(from, to);
    else this.onMove(from + to);
  }

  // A column of the four pieces on the square where the pawn arrives, as it lies on the screen.
  #askPromotion(from, to) {
    const color = this.position.turn;
    const white = this.ground.state.orientation === "white";
    const file = to.charCodeAt(0) - 97;
    const above = (to[1] === "8") === white;
    this.dialog.replaceChildren(
      ...Object.entries(roles).map(([letter, role]) => {
        const button = document.createElement("button");
        button.setAttribute("aria-label", role);
        button.dataset.role = role;
        const piece = document.createElement("piece");
        piece.className = `${role} ${color}`;
        button.append(piece);
        button.onclick = () => {
          this.#closeDialog();
          this.onMove(from + to + letter);
        };
        return button;
      }),
    );
    this.dialog.className = `cg-wrap ${above ? "above" : "below"}`;
    this.dialog.style.setProperty("--column", white ? file : 7 - file);
    this.dialog.hidden = false;
    this.dialog.onclick = (event) => event.target === this.dialog && this.cancelPromotion();
    this.dialog.onkeydown = (event) => {
      const buttons = [...this.dialog.children];
      const at = buttons.indexOf(document.activeElement);
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Tab: event.shiftKey ? -1 : 1 }[event.key];
      if (event.key === "Escape") this.cancelPromotion();
      else if (step) buttons[(at + (above ? step : step) + 4) % 4].focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    this.dialog.firstChild.focus({ preventScroll: true });
  }

  cancelPromotion() {
    this.#closeDialog();
    this.show(this.position, this.ground.state.orientation, this.position.turn);
  }

  #closeDialog() {
    this.dialog.hidden = true;
    this.dialog.replaceChildren();
  }

  // Arrow keys move a cursor over the focused board; Enter or Space takes and puts down a piece.
  #keyboard() {
    let cursor = "e2";
    const mark = () => {
      this.ground.set({ highlight: { custom: new Map([[cursor, "cursor"]]) } });
      this.#describe(cursor);
    };
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "application");
    this.element.addEventListener("focus", mark);
    this.element.addEventListener("blur", () => this.ground.set({ highlight: { custom: new Map() } }));
    this.element.addEventListener("keydown", (event) => {
      const turn = this.ground.state.orientation === "white" ? 1 : -1;
      const step = { ArrowLeft: [-turn, 0], ArrowRight: [turn, 0], ArrowUp: [0, turn], ArrowDown: [0, -turn] }[event.key];
      if (step) {
        const file = Math.min(7, Math.max(0, cursor.charCodeAt(0) - 97 + step[0]));
        const rank = Math.min(8, Math.max(1, +cursor[1] + step[1]));
        cursor = String.fromCharCode(97 + file) + rank;
        mark();
      } else if (event.key === "Enter" || event.key === " ") {
        this.ground.selectSquare(cursor);
        if (this.dialog.hidden) mark();
      } else if (event.key === "Escape") {
        this.ground.cancelMove();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  #describe(cursor) {
    const piece = cursor && this.ground.state.pieces.get(cursor);
    const square = cursor ? `${cursor}${piece ? `, ${piece.color} ${piece.role}` : ", empty"}. ` : "";
    this.element.setAttribute("aria-label", `${square}Chess board. Arrow keys move, Enter selects.`);
  }
}
