// Charts: unpack Bokeh, draw what is visible, and draw again when the page turns light or dark.
const charts = (() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const swap = JSON.parse(document.getElementById("dark").textContent);
  const drawn = new Map();
  let ready = false;

  function recoloured(value) {
    if (typeof value === "string") return Object.hasOwn(swap, value) ? swap[value] : value;
    if (Array.isArray(value)) return value.map(recoloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inside]) => [key, recoloured(inside)]));
  }

  async function draw(holder) {
    if (!ready || holder.offsetParent === null || drawn.get(holder) === dark.matches) return;
    drawn.set(holder, dark.matches);
    const item = JSON.parse(document.getElementById(`${holder.id}-item`).textContent);
    holder.replaceChildren();
    await Bokeh.embed.embed_item(dark.matches ? recoloured(item) : item, holder.id);
    holder.dataset.drawn = dark.matches ? "dark" : "light";
  }

  // Elements below one, also those that Bokeh hides from the page's style.
  const below = (node) => [...node.querySelectorAll("*")].flatMap((one) => [one, ...(one.shadowRoot ? below(one.shadowRoot) : [])]);

  // A copy of every chart as one canvas, which the style scales to the paper: Bokeh's own cannot be drawn again in time.
  function copy() {
    discard();
    for (const holder of drawn.keys()) {
      const layers = below(holder).filter((one) => one.tagName === "CANVAS" && one.width && one.height);
      if (!layers.length) continue;
      const made = document.createElement("canvas");
      made.className = "printed";
      made.width = layers[0].width;
      made.height = layers[0].height;
      made.style.maxWidth = `${1.4 * layers[0].clientWidth}px`;
      for (const layer of layers) made.getContext("2d").drawImage(layer, 0, 0, made.width, made.height);
      holder.append(made);
    }
  }

  const discard = () => document.querySelectorAll(".printed").forEach((one) => one.remove());

  const all = () => Promise.all([...document.querySelectorAll(".chart")].map(draw));

  async function unpack() {
    const packed = atob(document.getElementById("bokeh").textContent.trim());
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    ready = true;
  }

  async function start() {
    const holders = document.querySelectorAll(".chart");
    if (!holders.length) return;
    if (typeof DecompressionStream === "undefined") {
      for (const holder of holders) {
        holder.textContent = "Charts need a browser of 2023 or later; every table on this page works without them.";
        holder.style.minHeight = "0";
      }
      return;
    }
    await unpack();
    dark.addEventListener("change", all);
    addEventListener("beforeprint", copy);
    addEventListener("afterprint", discard);
    await all();
    document.documentElement.dataset.charts = "ready";
  }

  return { start, all };
})();
