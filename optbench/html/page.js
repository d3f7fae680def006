(() => {
  const tip = document.getElementById("tip");
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  // Native tooltips are slow and plain: take their text, keep it for screen readers.
  for (const title of all(document, "svg title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const place = (event, text) => {
    const [first, ...rest] = text.split("\n");
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: first }), rest.join("\n"));
    tip.hidden = false;
    const { offsetWidth: w, offsetHeight: h } = tip;
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - w - 8)) + "px";
    tip.style.top = (event.clientY + 18 + h > innerHeight ? event.clientY - h - 12 : event.clientY + 18) + "px";
  };
  const pad = (n) => String(n).padStart(2, "0");
  const clock = (s) => {
    if (s < 60) return `${+s.toPrecision(3)} s`;
    s = Math.round(s);
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return h ? `${h}:${pad(m)}:${pad(s % 60)}` : `${m}:${pad(s % 60)}`;
  };
  const watts = (w) => (w >= 1e6 ? `${+(w / 1e6).toPrecision(4)} MW` : w >= 1e3 ? `${+(w / 1e3).toPrecision(4)} kW` : `${+w.toPrecision(4)} W`);

  for (const panel of all(document, ".panel")) {
    const chart = panel.querySelector("svg"), cursor = chart.querySelector(".cursor");
    const axis = JSON.parse(panel.querySelector("script").textContent);
    const deps = all(chart, ".dep");
    const light = (task) => {
      const near = new Set();
      for (const dep of deps) {
        const on = task !== null && (dep.dataset.a === task || dep.dataset.b === task);
        dep.classList.toggle("on", on);
        if (on) near.add(dep.dataset.a).add(dep.dataset.b);
      }
      chart.classList.toggle("focus", task !== null);
      for (const item of all(chart, "[data-t]")) {
        item.classList.toggle("on", item.dataset.t === task);
        item.classList.toggle("near", near.has(item.dataset.t));
      }
    };
    let lit = null;
    chart.addEventListener("pointermove", (event) => {
      const item = event.target.closest("[data-tip]");
      const task = event.target.closest("[data-t]")?.dataset.t ?? null;
      if (task !== lit) light((lit = task));
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const t = ((x - axis.left) / axis.width) * axis.end;
      const inside = t >= 0 && t <= axis.end;
      cursor.classList.toggle("on", inside);
      cursor.setAttribute("transform", `translate(${x} 0)`);
      if (item) return place(event, item.dataset.tip);
      if (!inside) return void (tip.hidden = true);
      let text = axis.step_s === null ? `at ${Math.round(t * 100) / 100}` : `at ${clock(t * axis.step_s)}`;
      if (axis.t) {
        let k = axis.t.findIndex((edge) => edge > t) - 1;
        if (k >= 0) text += `\n${watts(axis.w[k])}`;
      }
      place(event, text);
    });
    chart.addEventListener("pointerleave", () => {
      light((lit = null));
      cursor.classList.remove("on");
      tip.hidden = true;
    });
  }
  for (const item of all(document, "section:not(.schedules) [data-tip]")) {
    item.addEventListener("pointermove", (event) => place(event, item.dataset.tip));
    item.addEventListener("pointerleave", () => (tip.hidden = true));
  }
  const buttons = all(document, ".tabs button");
  const show = (panel) => {
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.panel === panel);
    for (const figure of all(document, ".panel")) figure.hidden = buttons.length > 0 && figure.dataset.panel !== panel;
  };
  for (const button of buttons) button.addEventListener("click", () => show(button.dataset.panel));
  show("0");
})();
