// Panels of which the reader chooses one, then tables and charts.
(() => {
  "use strict";
  for (const choice of document.querySelectorAll(".choice")) {
    const select = choice.querySelector("select");
    const panels = choice.querySelectorAll(":scope > .panel");
    const show = () => {
      for (const panel of panels) panel.hidden = panel.id !== select.value;
      charts.all();
    };
    choice.querySelector(".pick").hidden = panels.length < 2;
    select.addEventListener("change", show);
    show();
  }
  profiles.start();
  tables.start();
  charts.start();
})();
