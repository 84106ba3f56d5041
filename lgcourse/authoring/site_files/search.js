// The search: every word must occur in a section; headings count more. The index is loaded at the
// first key, so that pages stay light. And the button for the theme.
(() => {
  "use strict";
  const up = document.currentScript.dataset.up;
  const box = document.getElementById("search");
  const found = document.getElementById("found");
  const MOST = 15;
  let loading = null;

  function load() {
    loading ??= new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = `${up}index.js`;
      script.onload = done;
      script.onerror = fail;
      document.head.append(script);
    });
    return loading;
  }

  function score(row, words) {
    const title = `${row.page} ${row.title}`.toLowerCase();
    const text = row.text.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const here = (title.includes(word) ? 10 : 0) + Math.min(5, text.split(word).length - 1);
      if (!here) return 0;
      sum += here;
    }
    return sum;
  }

  function excerpt(text, words) {
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 50);
    const part = text.slice(at, at + 170);
    const line = document.createElement("p");
    const pattern = words.map(w => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    for (const piece of part.split(new RegExp(`(${pattern})`, "i"))) {
      const hit = words.includes(piece.toLowerCase());
      const node = document.createElement(hit ? "mark" : "span");
      node.textContent = piece;
      line.append(node);
    }
    return line;
  }

  function show(words) {
    found.replaceChildren();
    found.hidden = !words.length;
    if (!words.length) return;
    const rows = window.siteIndex
      .map(row => [score(row, words), row])
      .filter(([points]) => points)
      .sort((a, b) => b[0] - a[0]);
    const head = document.createElement("p");
    head.textContent = rows.length
      ? `${rows.length} sections${rows.length > MOST ? `, the first ${MOST}:` : ":"}`
      : "Nothing found. Try fewer or shorter words.";
    const list = document.createElement("ol");
    for (const [, row] of rows.slice(0, MOST)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = up + row.url;
      link.textContent = row.title === row.page ? row.page : `${row.page}: ${row.title}`;
      item.append(link, excerpt(row.text, words));
      list.append(item);
    }
    found.append(head, ...(rows.length ? [list] : []));
  }

  async function search() {
    await load();
    show(box.value.toLowerCase().split(/\s+/).filter(Boolean));
  }

  box.addEventListener("input", search);
  box.form.addEventListener("submit", event => { event.preventDefault(); search(); });

  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  if (stored()) root.dataset.theme = stored();
  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it will not be kept */ }
  });
})();
