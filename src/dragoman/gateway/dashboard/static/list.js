// A list of any length with as many rows in the page as can be seen: the others exist as numbers only.

import { h } from "./dom.js";

const SPARE = 8; // rows above and below, for those who scroll fast

export class VirtualList {
  /** `draw(item, index)` gives a row; `onEnd` is called when the last rows come into sight. */
  constructor({ label, draw, onEnd, onOpen, head, rowHeight }) {
    this.items = [];
    this.selected = null; // an id: rows move
    this._draw = draw;
    this._onEnd = onEnd;
    this._onOpen = onOpen;
    this._rowHeight = rowHeight;
    this._rows = new Map();
    this.space = h("div.rows", { role: "rowgroup" });
    this.element = h("div.list", { role: "table", "aria-label": label, tabindex: "-1" }, head, this.space);
    this._onScroll = () => this._schedule();
    this.element.addEventListener("scroll", this._onScroll, { passive: true });
    this.space.addEventListener("focusin", (event) => {
      const row = event.target.closest("[data-id]");
      if (row && row.dataset.id !== this.selected) this._mark(row.dataset.id);
    });
    this._resize = new ResizeObserver(() => this.refresh());
    this._resize.observe(this.element);
  }

  /** New items; whoever reads further down stays where they are. */
  set(items) {
    const top = this.element.scrollTop;
    const anchor = top > this._height() ? this.items[Math.floor(top / this._height())] : null;
    this.items = items;
    this.space.style.height = `${items.length * this._height()}px`;
    if (anchor) {
      const now = items.findIndex((item) => item.id === anchor.id);
      if (now >= 0) this.element.scrollTop = now * this._height() + (top % this._height());
    }
    this.refresh();
  }

  refresh() {
    this._rows.forEach((row) => row.remove());
    this._rows.clear();
    this.space.style.height = `${this.items.length * this._height()}px`;
    this._show();
  }

  move(step) {
    if (!this.items.length) return;
    const now = this.items.findIndex((item) => item.id === this.selected);
    const next = now < 0 ? 0 : Math.min(this.items.length - 1, Math.max(0, now + step));
    this._mark(this.items[next].id);
    this._reveal(next);
    this._rows.get(this.selected)?.querySelector("a")?.focus({ preventScroll: true });
  }

  openSelected() {
    const item = this.items.find((one) => one.id === this.selected);
    if (item) this._onOpen(item);
  }

  close() {
    this._resize.disconnect();
  }

  _height() {
    return this._rowHeight();
  }

  _mark(id) {
    this._rows.get(this.selected)?.removeAttribute("aria-current");
    this.selected = id;
    this._rows.get(id)?.setAttribute("aria-current", "true");
  }

  _reveal(index) {
    const height = this._height();
    const head = this.space.offsetTop;
    const top = index * height;
    const seen = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + height > this.element.scrollTop + seen) this.element.scrollTop = top + height - seen;
    this._show();
  }

  _schedule() {
    if (this._frame) return;
    this._frame = requestAnimationFrame(() => {
      this._frame = 0;
      this._show();
    });
  }

  _show() {
    const height = this._height();
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - SPARE);
    const count = Math.ceil(this.element.clientHeight / height) + 2 * SPARE;
    const last = Math.min(this.items.length, first + count);
    const wanted = new Set();
    for (let index = first; index < last; index++) wanted.add(this.items[index].id);
    for (const [id, row] of this._rows) {
      if (!wanted.has(id)) {
        row.remove();
        this._rows.delete(id);
      }
    }
    for (let index = first; index < last; index++) this._place(this.items[index], index, height);
    if (last >= this.items.length - SPARE) this._onEnd();
  }

  _place(item, index, height) {
    let row = this._rows.get(item.id);
    if (!row) {
      row = this._draw(item);
      row.dataset.id = item.id;
      if (item.id === this.selected) row.setAttribute("aria-current", "true");
      this._rows.set(item.id, row);
      this.space.append(row);
    }
    row.setAttribute("aria-rowindex", String(index + 2));
    row.style.transform = `translateY(${index * height}px)`;
  }
}
