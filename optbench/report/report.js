(() => {
  const dialog = document.getElementById("cell"), data = document.getElementById("cells");
  const make = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);
  if (dialog && data) {
    const cells = JSON.parse(data.textContent);
    document.querySelector(".instances").addEventListener("click", (event) => {
      const button = event.target.closest("button[data-k]");
      if (!button) return;
      const cell = cells[button.dataset.k];
      const copy = make("button", "copy the command", { type: "button" });
      copy.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(cell.c);
          copy.textContent = "copied";
        } catch {
          getSelection().selectAllChildren(dialog.querySelector("pre"));
        }
      });
      const close = make("button", "close", { type: "button" });
      close.addEventListener("click", () => dialog.close());
      const row = make("div", "", { className: "row" });
      row.append(copy, ...(cell.f ? [make("a", "its files", { href: cell.f })] : []), close);
      dialog.replaceChildren(make("h3", cell.t, { id: "cell-title" }), ...cell.l.map((line) => make("p", line)), make("pre", cell.c), row);
      dialog.showModal();
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
  for (const table of document.querySelectorAll(".instances")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    const value = (row, k) => {
      const cell = row.cells[k];
      const text = cell.dataset.v ?? cell.textContent;
      return text === "" || text === "–" ? Infinity : isNaN(text) ? text : +text;
    };
    const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), "en", { numeric: true }) : a === b ? 0 : a - b);
    heads.forEach((head, k) => {
      const button = make("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(value(a, k), value(b, k)));
        body.append(...rows);
      });
    });
  }
})();
