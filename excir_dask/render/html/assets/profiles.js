// Profiles: how an output moves along a feature, in a dialog that opens from the name of the feature.
const profiles = (() => {
  "use strict";
  const SIDES = { "1": "with", "-1": "against", "0": "none" };
  const HEIGHT = 300, BARS = 62, LEFT = 62, RIGHT = 14, TOP = 12;
  const known = new Map();
  const parsed = document.createElement("template");
  parsed.innerHTML = "<svg></svg>";
  const svg = parsed.content.firstChild.namespaceURI;  // the page names no address, not even this one
  let dialog, holder, current;

  function element(tag, attributes = {}, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }

  function drawn(tag, attributes, ...inside) {
    const made = document.createElementNS(svg, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }

  const has = (output, feature) => known.has(output) && Object.hasOwn(known.get(output).features, feature);

  // The name of a feature as a button that opens its profile.
  function link(cell, output, feature) {
    if (!has(output, feature)) return;
    const button = element("button", { type: "button", class: "open", "data-profile": feature, "data-output": output, "aria-haspopup": "dialog" });
    button.append(...cell.childNodes);
    cell.replaceChildren(button);
  }

  const short = (value) => (value === null ? "–" : Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 }));

  function ticks(low, high) {
    const rough = (high - low) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const found = [];
    for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
    return found;
  }

  function chart(profile, width) {
    const two = "upper" in profile;
    const middle = two ? profile.upper : profile.q50;
    const finite = (two ? [0, ...profile.upper] : [...profile.q25, ...profile.q75]).filter((value) => value !== null);
    let [low, high] = [Math.min(...finite), Math.max(...finite)];
    if (!(high > low)) [low, high] = [low - 1, high + 1];
    const count = profile.cells.length;
    const step = (width - LEFT - RIGHT) / count;
    const floor = HEIGHT - BARS - 34;
    const x = (place) => LEFT + (place + 0.5) * step;
    const y = (value) => floor - ((value - low) / (high - low)) * (floor - TOP);
    const side = SIDES[profile.side];
    const there = profile.cells.map((_, place) => place).filter((place) => middle[place] !== null);
    const picture = drawn("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Chart: ${dialog.querySelector("h2").textContent}; the table below has its figures` });
    for (const at of ticks(low, high)) {
      picture.append(drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }), drawn("text", { x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, short(at)));
    }
    const line = (values, places) => places.map((place) => `${x(place)},${y(values[place])}`).join(" ");
    const joined = !profile.apart && there.length > 1;
    if (!two && joined) picture.append(drawn("polygon", { class: `spread ${side}`, points: `${line(profile.q25, there)} ${line(profile.q75, [...there].reverse())}` }));
    if (!two && !joined) for (const place of there) picture.append(drawn("line", { class: `box ${side}`, x1: x(place), x2: x(place), y1: y(profile.q25[place]), y2: y(profile.q75[place]) }));
    if (joined) picture.append(drawn("polyline", { class: `middle ${side}`, points: line(middle, there) }));
    for (const place of there) picture.append(drawn("circle", { class: `dot ${side}`, cx: x(place), cy: y(middle[place]), r: 4 }));
    const most = Math.max(...profile.share);
    const named = Math.ceil(64 / step);
    profile.cells.forEach((cell, place) => {
      const tall = (BARS * profile.share[place]) / most;
      const base = HEIGHT - 22;
      const figures = two ? `share ${short(profile.upper[place])}` : `median ${short(profile.q50[place])}, quartiles ${short(profile.q25[place])} and ${short(profile.q75[place])}`;
      picture.append(
        drawn("rect", { class: "rows-bar", x: x(place) - 0.42 * step, y: base - tall, width: 0.84 * step, height: tall }),
        drawn("rect", { class: "over", x: x(place) - 0.5 * step, y: TOP, width: step, height: base - TOP }, drawn("title", {}, `${cell}: ${figures}, ${(100 * profile.share[place]).toFixed(1)}% of the rows`)),
      );
      const room = Math.max(4, Math.floor((named * step) / 7));
      if (place % named === 0) picture.append(drawn("text", { x: x(place), y: HEIGHT - 6, "text-anchor": "middle" }, cell.length > room ? `${cell.slice(0, room - 1)}…` : cell));
    });
    return picture;
  }

  function figures(profile, output) {
    const two = "upper" in profile;
    const heads = ["cell", "rows", "share", ...(two ? ["larger value"] : ["q25", "median", "q75"])];
    const rows = profile.cells.map((cell, place) => {
      const numbers = [short(profile.rows[place]), `${(100 * profile.share[place]).toFixed(1)}%`, ...(two ? [profile.upper] : [profile.q25, profile.q50, profile.q75]).map((values) => short(values[place]))];
      numbers[0] = profile.rows[place].toLocaleString("en");
      return element("tr", {}, element("th", { scope: "row" }, cell), ...numbers.map((text) => element("td", { class: "number" }, text)));
    });
    return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table, scrolls" },
      element("table", {}, element("caption", { class: "hidden" }, `${output} along ${profile.name}`),
        element("thead", {}, element("tr", {}, ...heads.map((text, place) => element("th", { scope: "col", ...(place ? { class: "number" } : {}) }, text)))),
        element("tbody", {}, ...rows)));
  }

  function show(output, place) {
    const content = known.get(output);
    const profile = content.profiles[place];
    current = { output, place };
    dialog.querySelector("h2").textContent = `${output} along ${profile.name}`;
    const facts = element("dl", { class: "figures" }, ...profile.facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    const flags = (profile.flag ? profile.flag.split(", ") : []).map((flag) => element("span", { class: "flag" }, flag));
    const back = dialog.querySelector(".back"), on = dialog.querySelector(".on");
    back.disabled = place === 0;
    on.disabled = place + 1 >= content.profiles.length;
    dialog.querySelector(".status").textContent = `${place + 1} of ${content.profiles.length}`;
    holder.replaceChildren(facts, ...flags);
    if (!profile.cells.length) {
      holder.append(element("p", {}, "No row has a value."));
      return;
    }
    const what = "upper" in profile ? `Share of the rows with the larger value of ${output}, and below it how many rows each cell has.`
      : `Median of ${output} and its quartiles in each cell, and below them how many rows each cell has.`;
    holder.append(element("p", { class: "lead" }, what), chart(profile, Math.max(260, holder.clientWidth)), figures(profile, output));
    dialog.scrollTop = 0;
  }

  function turn(by) {
    const place = current.place + by;
    if (place < 0 || place >= known.get(current.output).profiles.length) return;
    show(current.output, place);
  }

  function start() {
    for (const script of document.querySelectorAll(".profile-data")) {
      const content = JSON.parse(script.textContent);
      known.set(content.output, content);
    }
    if (!known.size) return;
    const close = element("button", { type: "button", class: "close", "aria-label": "Close" }, "✕");
    const back = element("button", { type: "button", class: "back" }, "← Previous");
    const on = element("button", { type: "button", class: "on" }, "Next →");
    holder = element("div", { class: "profile" });
    dialog = element("dialog", { "aria-labelledby": "profile-title" }, element("div", { class: "top" }, element("h2", { id: "profile-title" }), close),
      holder, element("div", { class: "pager" }, back, element("p", { class: "status", role: "status" }), on));
    document.body.append(dialog);
    close.addEventListener("click", () => dialog.close());
    back.addEventListener("click", () => turn(-1));
    on.addEventListener("click", () => turn(1));
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      event.preventDefault();
      turn(event.key === "ArrowLeft" ? -1 : 1);
    });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-profile]");
      if (!button) return;
      const { output, profile } = button.dataset;
      dialog.showModal();
      show(output, known.get(output).features[profile]);
    });
    addEventListener("resize", () => { if (dialog.open) show(current.output, current.place); });
  }

  return { start, link };
})();
