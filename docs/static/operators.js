"use strict";
// Rows that have every word of the search, and what is chosen of those that are supported.
const rows = [...document.querySelectorAll("#operators tbody tr")].map((row) => ({
  row, text: `${row.dataset.pack} ${row.textContent}`.toLowerCase(), supported: row.cells[3].textContent,
}));
const search = document.getElementById("filter"), supported = document.getElementById("supported");

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { row, text, supported: is } of rows) {
    row.hidden = !words.every((word) => text.includes(word)) || (supported.value !== "" && is !== supported.value);
    count += !row.hidden;
  }
  document.getElementById("count").textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
}

search.addEventListener("input", filter);
supported.addEventListener("change", filter);
filter();
