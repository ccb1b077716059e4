// The parts of the HTML page that are the same for every picture: its style and its script.
//
//   page.html#T05     opens with thread 5 picked; so does typing "5" or a click on one of its cells
//
// A picked owner's cells have the class `on`; <aside id="picked"> lists them. Hovering previews.
#pragma once

#include <string_view>

namespace kiln::explain {

inline constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--panel:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--page:#0f1318;--ink:#e6edf3;--soft:#9aa5b1;--line:#30363d;--panel:#171c22}}
*{box-sizing:border-box}
body{margin:0;padding:1.25rem 1.5rem 6rem;background:var(--page);color:var(--ink);
  font:14px/1.45 system-ui,sans-serif}
h1{font:700 1.3rem/1.2 ui-monospace,Menlo,Consolas,monospace;margin:0}
header{display:flex;flex-wrap:wrap;gap:.75rem 2rem;align-items:center;margin-bottom:.75rem}
form{display:flex;gap:.5rem;align-items:center}
input,button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);
  border-radius:6px;padding:.25rem .6rem}
input[aria-invalid=true]{border-color:#d1242f;outline-color:#d1242f}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;margin:0 0 1rem;padding:0;
  color:var(--soft);font-size:12px}
.legend span{display:inline-block;width:14px;height:14px;margin-right:.4rem;vertical-align:-2px;
  border-radius:3px}
.grids{display:grid;gap:1.5rem 2rem;justify-content:start;align-items:start;overflow-x:auto;
  padding-bottom:.5rem}
figure{margin:0}
figcaption,summary{font-weight:600;margin-bottom:.35rem}
summary{cursor:pointer}
.tables{display:flex;flex-wrap:wrap;gap:1rem 2rem;margin-top:1.25rem;align-items:start}
.note{margin:.2rem 0 0;color:var(--soft);font:12px/1.4 ui-monospace,Menlo,Consolas,monospace}
table{border-collapse:separate;border-spacing:1px;font:12px/1 ui-monospace,Menlo,Consolas,monospace}
th{font-weight:400;color:var(--soft);padding:0 .35rem;height:1.4rem;white-space:nowrap}
th[scope=row]{text-align:right;min-width:4.2em}
tbody td{position:relative;min-width:42px;height:34px;padding:0 4px 5px;text-align:center;color:#10151b;
  background:#eceff2;border-radius:3px;cursor:pointer}
td i{position:absolute;right:4px;bottom:2px;font-size:9px;font-style:normal;opacity:.75}
td b{position:absolute;left:4px;bottom:2px;font-size:9px}
.marked tbody td{min-width:56px;height:42px;padding-bottom:9px}
.marked td i{right:6px;bottom:5px}
.marked td b{left:6px;bottom:5px}
.a{box-shadow:inset 0 0 0 2px #10151b}
.x{box-shadow:none;outline:2px dashed #c1121f;outline-offset:-2px}
.legend .a:not(.x){box-shadow:inset 0 0 0 2px var(--ink)}
td.near{filter:brightness(.88) saturate(1.5)}
.picking{padding-bottom:42vh}
.picking td[data-o]:not(.on){opacity:.28}
td.on{font-weight:700;z-index:1;box-shadow:0 0 0 2px var(--page),0 0 0 4px var(--ink)}
#picked{position:fixed;left:0;right:0;bottom:0;max-height:38vh;overflow:auto;padding:.7rem 1.5rem;
  background:var(--panel);border-top:1px solid var(--line);font-size:12px}
#picked strong{font-size:14px;margin-right:.8rem}
#picked dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.4rem 0 0}
#picked dt{font-weight:600}
#picked dd{margin:0;font-family:ui-monospace,Menlo,Consolas,monospace}
@media (max-width:60rem){.grids{display:block}figure{margin-bottom:1.5rem;overflow-x:auto;padding:4px}#picked dl{display:block}}
@media print{form,#picked{display:none}td{print-color-adjust:exact}}
)css";

inline constexpr std::string_view kPageScript = R"js("use strict";
(() => {
  const {word, prefix} = document.body.dataset;
  const cells = [...document.querySelectorAll("td[data-o]")];
  const box = document.getElementById("owner");
  const panel = document.getElementById("picked");
  const nameOf = owner => prefix + String(owner).padStart(prefix ? 2 : 1, "0");
  const ofOwner = owner => cells.filter(cell => cell.dataset.o === String(owner));
  let picked = null;

  function list(owner) {
    panel.replaceChildren();
    const head = document.createElement("strong");
    head.textContent = word + " " + nameOf(owner);
    const rows = document.createElement("dl");
    for (const figure of document.querySelectorAll("figure")) {
      const mine = [...figure.querySelectorAll("td.on")];
      if (mine.length === 0) continue;
      const what = document.createElement("dt");
      what.textContent = figure.querySelector("figcaption").textContent;
      const where = document.createElement("dd");
      where.textContent = mine.map(cell => cell.title).join("; ");
      rows.append(what, where);
    }
    panel.append(head, rows);
  }

  function pick(owner) {
    const mine = owner === null ? [] : ofOwner(owner);
    picked = mine.length ? owner : null;
    for (const cell of cells) cell.classList.toggle("on", cell.dataset.o === String(picked));
    document.body.classList.toggle("picking", picked !== null);
    panel.hidden = picked === null;
    if (picked !== null) list(picked);
    return mine.length > 0;
  }

  // "T05", "t5" and "5" are one owner; anything else is none.
  function ownerIn(text) {
    const found = /^([a-z]?)0*(\d+)$/i.exec(text.trim());
    if (!found || (found[1] && found[1].toLowerCase() !== prefix.toLowerCase())) return null;
    return found[2];
  }

  function go(owner) {
    const name = owner === null ? "" : nameOf(owner);
    history.replaceState(null, "", location.pathname + location.search + (name && "#" + name));
    box.value = name;
    box.setAttribute("aria-invalid", "false");
    pick(owner);
  }

  function fromHash() {
    const owner = ownerIn(location.hash.slice(1));
    if (pick(owner)) box.value = nameOf(owner);
  }

  document.addEventListener("click", event => {
    const cell = event.target.closest("td[data-o]");
    if (cell) go(cell.dataset.o === String(picked) ? null : cell.dataset.o);
  });
  document.addEventListener("mouseover", event => {
    const over = event.target.closest("td[data-o]");
    for (const cell of cells) cell.classList.toggle("near", !!over && cell.dataset.o === over.dataset.o);
  });
  document.addEventListener("keydown", event => { if (event.key === "Escape") go(null); });
  box.addEventListener("input", () => {
    const owner = ownerIn(box.value);
    const found = pick(owner);
    box.setAttribute("aria-invalid", String(box.value !== "" && !found));
  });
  box.form.addEventListener("submit", event => event.preventDefault());
  box.form.addEventListener("reset", () => go(null));
  window.addEventListener("hashchange", fromHash);
  fromHash();
})();
)js";

}  // namespace kiln::explain
