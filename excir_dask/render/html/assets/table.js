// Large tables: search, filters, sorting by any column, and pages of rows, in plain JavaScript.
const tables = (() => {
  "use strict";
  const PAGE = 50;
  const ARROWS = { "1": "▲", "-1": "▼", "0": "·" };
  const SIDES = { "1": "with", "-1": "against", "0": "none" };
  const NAMES = { "1": "▲ with the output", "-1": "▼ against the output", "0": "· neither" };

  function element(tag, attributes = {}, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }

  function reader(column) {
    if ("same" in column) return () => column.same;
    if ("at" in column) return (row) => column.distinct[column.at[row]];
    return (row) => column.values[row];
  }

  const length = (column) => column.count ?? (column.at ?? column.values).length;

  function format(column, value, scale) {
    if (value === null) return "–";
    if (column.kind === "score") return (value / scale).toFixed(4);
    if (column.kind === "whole") return value.toLocaleString("en");
    if (column.kind === "direction") return ARROWS[value];
    return String(value);
  }

  function cell(column, value, scale, first) {
    const made = element(first ? "th" : "td", first ? { scope: "row" } : {});
    const text = format(column, value, scale);
    if (column.kind === "direction") {
      made.append(element("span", { class: `arrow ${SIDES[value]}`, title: NAMES[value].slice(2) }, text));
    } else if (column.kind === "flag") {
      for (const flag of value ? value.split(", ") : []) made.append(element("span", { class: "flag" }, flag), " ");
    } else if (first) {
      text.split(/(?<=[_.=/-])/).forEach((part, place) => made.append(...(place ? [element("wbr"), part] : [part])));
    } else {
      made.append(text);
    }
    if (!["text", "flag", "direction"].includes(column.kind)) made.className = "number";
    if (column.bar && value !== null) {
      const share = value / scale;
      const bar = element("i", { class: share < 0.5 ? "against" : "with" });
      bar.style.left = `${100 * Math.min(share, 0.5)}%`;
      bar.style.width = `${100 * Math.abs(share - 0.5)}%`;
      made.append(element("span", { class: "bar", "aria-hidden": "true" }, bar));
    }
    return made;
  }

  function build(holder) {
    const { columns, sort, scale } = JSON.parse(document.getElementById(`${holder.id}-rows`).textContent);
    const what = holder.dataset.what;
    const read = columns.map(reader);
    const total = columns.length ? length(columns[0]) : 0;
    const textual = columns.flatMap((column, place) => (["text", "flag"].includes(column.kind) ? [place] : []));
    const state = { by: sort, down: false, page: 0, wanted: [], picks: new Map() };
    let order = [];

    const search = element("input", {
      type: "search", id: `${holder.id}-search`, placeholder: `Search ${what}`, autocomplete: "off",
      spellcheck: "false", "aria-keyshortcuts": "/",
    });
    const bar = element("div", { class: "tools", role: "search" },
      element("label", { for: search.id }, "Search ", element("kbd", { "aria-hidden": "true" }, "/")), search);
    columns.forEach((column, place) => {
      if (!column.pick) return;
      const found = [...new Set(Array.from({ length: total }, (_, row) => read[place](row)))];
      if (found.length < 2) return;
      const select = element("select", { id: `${holder.id}-pick-${place}` }, element("option", { value: "" }, "all"));
      found.forEach((value, index) => {
        const name = column.kind === "direction" ? NAMES[value] : value === "" ? "none" : format(column, value, scale);
        select.append(element("option", { value: String(index) }, name));
      });
      select.addEventListener("change", () => {
        if (select.value === "") state.picks.delete(place);
        else state.picks.set(place, found[Number(select.value)]);
        update();
      });
      if (column.picked) {
        select.value = "0";
        state.picks.set(place, found[0]);
      }
      bar.append(element("span", { class: "pick" }, element("label", { for: select.id }, column.title), select));
    });

    const heads = columns.map((column, place) => {
      const button = element("button", { type: "button" }, column.title, element("span", { class: "sorted", "aria-hidden": "true" }));
      if (column.hint) button.title = column.hint;
      button.addEventListener("click", () => {
        state.down = state.by === place ? !state.down : ["number", "score"].includes(column.kind);
        state.by = place;
        update();
      });
      return element("th", { scope: "col", ...(["text", "flag", "direction"].includes(column.kind) ? {} : { class: "number" }) }, button);
    });
    const body = element("tbody");
    const table = element("table", { class: "large" },
      element("caption", { class: "hidden" }, `All ${what}`), element("thead", {}, element("tr", {}, ...heads)), body);
    const box = element("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Table, scrolls" }, table);
    const cue = element("p", { class: "cue", "aria-hidden": "true" }, "more columns: scroll sideways →");
    const status = element("p", { class: "status", role: "status" });
    const back = element("button", { type: "button" }, "← Previous");
    const on = element("button", { type: "button" }, "Next →");
    back.addEventListener("click", () => turn(-1));
    on.addEventListener("click", () => turn(1));
    const pager = element("div", { class: "pager" }, back, status, on);
    holder.append(bar, box, cue, pager);
    const hint = () => { cue.hidden = box.scrollLeft + box.clientWidth >= box.scrollWidth - 1; };
    box.addEventListener("scroll", hint);
    window.addEventListener("resize", hint);

    // a column whose only value has been picked says nothing more
    const shown = (column, place) => !(column.kind === "text" && state.picks.has(place));

    function matches(row) {
      for (const [place, value] of state.picks) if (read[place](row) !== value) return false;
      return state.wanted.every((word) => textual.some((place) => read[place](row).toLowerCase().includes(word)));
    }

    function compare(a, b) {
      const left = read[state.by](a);
      const right = read[state.by](b);
      if (left === right) return a - b;
      if (left === null || left === "") return 1;
      if (right === null || right === "") return -1;
      const found = typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right;
      return (state.down ? -found : found) || a - b;
    }

    function update() {
      order = [];
      for (let row = 0; row < total; row += 1) if (matches(row)) order.push(row);
      order.sort(compare);
      state.page = 0;
      heads.forEach((head, place) => {
        head.hidden = !shown(columns[place], place);
        const way = state.by === place ? (state.down ? "descending" : "ascending") : "none";
        head.setAttribute("aria-sort", way);
        head.querySelector(".sorted").textContent = { none: "", ascending: " ↑", descending: " ↓" }[way];
      });
      show();
    }

    function show() {
      const from = state.page * PAGE;
      const rows = order.slice(from, from + PAGE).map((row) =>
        element("tr", {}, ...columns.flatMap((column, place) =>
          shown(column, place) ? [cell(column, read[place](row), scale, place === 0)] : [])));
      if (holder.dataset.profiles !== undefined) {
        const output = columns.findIndex((column) => column.title === "output");
        order.slice(from, from + PAGE).forEach((row, place) =>
          profiles.link(rows[place].firstChild, output < 0 ? holder.dataset.profiles : read[output](row), read[0](row)));
      }
      body.replaceChildren(...rows);
      hint();
      const count = (number) => number.toLocaleString("en");
      const share = order.length < total ? `${count(order.length)} found of ${count(total)}` : count(total);
      status.textContent = rows.length
        ? `${count(from + 1)}–${count(from + rows.length)} of ${share} ${what}` : `Nothing found in ${count(total)} ${what}`;
      back.disabled = from === 0;
      on.disabled = from + PAGE >= order.length;
    }

    function turn(by) {
      state.page += by;
      show();
      box.scrollTop = 0;
      if ((by < 0 ? back : on).disabled) (by < 0 ? on : back).focus();
    }

    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        state.wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        update();
      }, total > 2000 ? 120 : 0);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !search.value) return;
      event.preventDefault();
      search.value = "";
      search.dispatchEvent(new Event("input"));
    });
    update();
  }

  function start() {
    document.querySelectorAll(".rows").forEach(build);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea")) return;
      const search = [...document.querySelectorAll(".rows input[type=search]")].find((input) => input.offsetParent);
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.scrollIntoView({ block: "center" });
    });
  }

  return { start };
})();
