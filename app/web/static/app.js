// Charts that can be read point by point. Without this script the pages show the same lines as pictures.
(() => {
  "use strict";

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const milli = (s) => (s < 1 ? `${+(s * 1000).toPrecision(3)} ms` : `${+s.toPrecision(3)} s`);
  const plain = (v) => (v >= 100 ? Math.round(v).toLocaleString("en").replaceAll(",", "\u202f") : `${+v.toPrecision(3)}`);
  const KINDS = {
    tps: { dot: 1, colour: "--c1", show: (v) => `${plain(v)} tok/s`, tick: plain },
    ttft: { dot: 2, colour: "--c2", show: milli, tick: (v) => (v === 0 ? "0" : milli(v)) },
  };

  /** One x axis for medians and single runs: [x, median, run, expected, ceiling, failed]. */
  function columns(data, kind) {
    const rows = new Map();
    for (const x of [data.since, data.until]) rows.set(x, [undefined, null, null, null]); // levels reach from end to end
    for (const [x, y] of data.lines[kind]) rows.set(x, [y, null, null, null]);
    for (const dot of data.dots) {
      const y = dot[KINDS[kind].dot];
      const failed = dot[4] !== "ok";
      if (y === null && !failed) continue;
      const row = rows.get(dot[0]) ?? [undefined, null, null, null];
      if (failed) row[3] = dot[4];
      else row[1] = y;
      row[2] = dot[3];
      rows.set(dot[0], row);
    }
    const xs = [...rows.keys()].sort((a, b) => a - b);
    const level = (name) => xs.map(() => (kind === "tps" ? data.levels[name] ?? null : null));
    return {
      plot: [xs, xs.map((x) => rows.get(x)[0]), xs.map((x) => rows.get(x)[1]), level("expected"), level("ceiling"), xs.map((x) => (rows.get(x)[3] ? 0 : null))],
      ids: xs.map((x) => rows.get(x)[2]),
      failures: xs.map((x) => rows.get(x)[3]),
    };
  }

  function tip(kind, ids, failures) {
    const box = document.createElement("div");
    box.className = "u-tip";
    box.hidden = true;
    return {
      hooks: {
        init: (u) => u.over.appendChild(box),
        setCursor: (u) => {
          const at = u.cursor.idx;
          const failed = at == null ? null : failures[at];
          const value = at == null ? null : u.data[2][at] ?? u.data[1][at] ?? u.data[5][at];
          box.hidden = value == null;
          if (value == null) return;
          const time = new Date(u.data[0][at] * 1000).toISOString().slice(0, 19).replace("T", " ");
          box.textContent = `${time}  ${failed ? failed.replaceAll("_", " ") : (u.data[2][at] == null ? "median " : "") + KINDS[kind].show(value)}`;
          const left = u.valToPos(u.data[0][at], "x");
          box.style.left = `${left > u.over.clientWidth / 2 ? left - box.offsetWidth - 10 : left + 10}px`;
          box.style.top = "4px";
        },
        ready: (u) =>
          u.over.addEventListener("click", () => {
            const id = u.cursor.idx == null ? null : ids[u.cursor.idx];
            if (id) location.href = `/runs/${encodeURIComponent(id)}`;
          }),
      },
    };
  }

  function draw(place, data) {
    const kind = place.dataset.plot;
    const { plot, ids, failures } = columns(data, kind);
    if (!plot[1].concat(plot[2], plot[5]).some((v) => v != null)) return;
    const seen = [...plot[1], ...plot[2]].filter((v) => v != null);
    const most = Math.max(...seen, ...["expected", "ceiling"].map((n) => data.levels[n] ?? 0).filter((v) => kind === "tps" && v <= 6 * Math.max(...seen)));
    const axis = { stroke: css("--muted"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const options = {
      width: place.clientWidth,
      height: 220,
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "UTC"),
      scales: { x: { min: data.since, max: data.until }, y: { range: [0, most * 1.08] } },
      cursor: { y: false, points: { size: 7 } },
      legend: { show: false },
      axes: [{ ...axis, size: 28, values: times }, { ...axis, size: 58, values: (_, ticks) => ticks.map(KINDS[kind].tick) }],
      series: [
        {},
        { stroke: css(KINDS[kind].colour), width: 1.8, spanGaps: false, points: { show: false } },
        { stroke: css(KINDS[kind].colour), paths: () => null, points: { show: true, size: 3, fill: css(KINDS[kind].colour) } },
        { stroke: css("--ink"), width: 1.2, dash: [6, 4], points: { show: false } },
        { stroke: css("--critical"), width: 1.2, dash: [2, 4], points: { show: false } },
        { stroke: css("--critical"), paths: () => null, points: { show: true, size: 5, fill: css("--critical") } },
      ],
      plugins: [tip(kind, ids, failures)],
    };
    place.replaceChildren();
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", place.closest("figure").querySelector("figcaption").firstChild.textContent.trim() + "; the runs below have the figures");
    const made = new uPlot(options, plot, place);
    new ResizeObserver(() => made.setSize({ width: place.clientWidth, height: 220 })).observe(place);
  }

  function times(_, ticks) {
    const long = ticks.length > 1 && ticks[ticks.length - 1] - ticks[0] > 2 * 86400;
    return ticks.map((s) => new Date(s * 1000).toISOString().slice(...(long ? [5, 10] : [11, 16])));
  }

  async function fill(group) {
    const answer = await fetch(group.dataset.figures, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const data = await answer.json();
    for (const place of group.querySelectorAll("[data-plot]")) draw(place, data);
  }

  function start() {
    for (const wide of document.querySelectorAll("[data-newest]")) wide.scrollLeft = wide.scrollWidth;
    for (const group of document.querySelectorAll("[data-figures]")) {
      fill(group).catch(() => {});
      setInterval(() => document.hidden || fill(group).catch(() => {}), 30000);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", start);
})();
