// SPDX-License-Identifier: Apache-2.0
// Charts over uPlot.   history -> Chart.update() -> canvas
// A chart has lines, or shares of a whole that are stacked up to 100 %. Its legend shows the values under the cursor, else
// the newest ones. Colours are those of the style sheet, so a chart is made anew when the colour scheme changes.
'use strict';

const Format = {
  count: new Intl.NumberFormat('en-US', {maximumFractionDigits: 0}),
  short: new Intl.NumberFormat('en-US', {notation: 'compact', maximumSignificantDigits: 3}),
  // Enough digits to see it move, and no more.
  number(value) {
    if (!Number.isFinite(value)) return '–';
    const size = Math.abs(value);
    if (size !== 0 && (size < 0.001 || size >= 1e9)) return value.toExponential(2);
    return value.toLocaleString('en-US', {maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4});
  },
  rate(value) { return Number.isFinite(value) ? Format.count.format(value) : '–'; },
  percent(share) { return Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %` : '–'; },
  duration(seconds) {
    if (!Number.isFinite(seconds) || seconds < 0) return '–';
    const total = Math.round(seconds), hours = Math.floor(total / 3600), minutes = Math.floor(total % 3600 / 60);
    if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
    if (hours > 0) return `${hours} h ${String(minutes).padStart(2, '0')} min`;
    if (minutes > 0) return `${minutes} min ${String(total % 60).padStart(2, '0')} s`;
    return `${total} s`;
  },
  // For axes: 90 -> "1:30", 7500 -> "2:05 h".
  clock(seconds) {
    const total = Math.round(seconds), hours = Math.floor(total / 3600), minutes = Math.floor(total % 3600 / 60);
    if (hours > 0) return `${hours}:${String(minutes).padStart(2, '0')} h`;
    return `${minutes}:${String(total % 60).padStart(2, '0')}`;
  },
};

// Waiting is the same grey everywhere.
const kWaiting = new Set(['wait', 'barrier', 'idle']);
const kStageOrder = ['env_step', 'inference', 'build', 'send', 'update', 'admit', 'receive', 'publish', 'checkpoint'];

function orderStages(names) {
  const place = (name) => kWaiting.has(name) ? 1000 : kStageOrder.includes(name) ? kStageOrder.indexOf(name) : 100;
  return [...names].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

// The style sheet's class of a stage, given all that it stands among in their order.
function stageClass(name, ordered) {
  return kWaiting.has(name) ? 'stage-wait' : `stage-${ordered.indexOf(name) % 6 + 1}`;
}

function makeElement(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

class Chart {
  // options: {title, hint, format, stacked, series(history) -> [{name, className, values}]}
  constructor(parent, options) {
    this.options = options;
    this.root = parent.appendChild(makeElement('figure', 'chart'));
    const caption = this.root.appendChild(makeElement('figcaption', '', options.title));
    caption.appendChild(makeElement('span', 'hint', options.hint));
    this.legend = this.root.appendChild(makeElement('div', 'legend'));
    this.place = this.root.appendChild(makeElement('div', 'plot'));
    this.empty = this.place.appendChild(makeElement('div', 'empty', 'no data yet'));
    this.plot = null;
    this.series = [];
    this.seconds = [];
    new ResizeObserver(() => this.resize()).observe(this.place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.rebuild());
  }

  update(history) {
    const before = this.series.map((series) => series.name).join();
    this.seconds = history.seconds;
    this.series = this.options.series(history);
    const drawable = this.seconds.length > 1 && this.series.some((series) => series.values.some(Number.isFinite));
    this.root.hidden = !!this.options.optional && !drawable;
    this.empty.hidden = drawable;
    if (!drawable) return;
    if (this.plot === null || before !== this.series.map((series) => series.name).join()) return this.rebuild();
    this.plot.setData(this.data());
    this.showLegend();
  }

  // uPlot knows no stacks: the sums are drawn from the highest down, each filled to the ground.
  data() {
    if (!this.options.stacked) return [this.seconds, ...this.series.map((series) => series.values)];
    const sums = [];
    let below = this.seconds.map(() => 0);
    for (const series of this.series) {
      below = below.map((sum, i) => series.values[i] === null ? null : sum + series.values[i]);
      sums.unshift(below);
    }
    return [this.seconds, ...sums];
  }

  rebuild() {
    if (this.plot !== null) this.plot.destroy();
    this.plot = null;
    if (this.series.length === 0 || this.seconds.length < 2 || this.place.clientWidth === 0) return;
    this.makeLegend();
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const stacked = this.options.stacked;
    const drawn = stacked ? [...this.series].reverse() : this.series;
    const axis = {stroke: colour('muted'), grid: {stroke: colour('grid'), width: 1}, ticks: {show: false},
                  font: '11px system-ui, sans-serif'};
    this.plot = new uPlot({
      width: this.place.clientWidth,
      height: this.place.clientHeight,
      legend: {show: false},
      cursor: {drag: {x: false, y: false}, y: false, points: {show: !stacked}, sync: {key: 'skein'}},
      scales: {x: {time: false}, y: stacked ? {range: [0, 1]} : {range: Chart.range}},
      axes: [
        {...axis, size: 26, gap: 2, space: 60, incrs: Chart.timeSteps, values: (_, splits) => splits.map(Format.clock)},
        {...axis, size: 46, gap: 4, space: 34, values: (_, splits) => this.axisLabels(splits)},
      ],
      series: [{}, ...drawn.map((series) => ({
        stroke: stacked ? undefined : colour(series.className),
        fill: stacked ? colour(series.className) : undefined,
        width: stacked ? 0 : 2,
        points: {show: false},
        spanGaps: false,
      }))],
      hooks: {setCursor: [() => this.showLegend()]},
    }, this.data(), this.place);
    this.showLegend();
  }

  axisLabels(splits) {
    if (!this.options.stacked && !this.options.share) return splits.map((value) => Format.short.format(value));
    const step = splits.length > 1 ? splits[1] - splits[0] : 1;
    const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(100 * step))));
    return splits.map((value) => `${(100 * value).toFixed(digits)} %`);
  }

  // From 0 where that costs little, and never without height.
  static range(_, low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
    if (low > 0 && low < 0.7 * high) low = 0;
    if (high <= low) return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, low + Math.abs(low) * 0.1];
    const margin = 0.08 * (high - low);
    return [low === 0 ? 0 : low - margin, high + margin];
  }

  makeLegend() {
    this.values = this.series.map((series) => {
      const item = makeElement('span');
      item.appendChild(makeElement('i', `key ${series.className}`));
      item.appendChild(document.createTextNode(`${series.name} `));
      const value = item.appendChild(makeElement('b'));
      return {item, value};
    });
    this.legend.replaceChildren(...this.values.map(({item}) => item));
  }

  showLegend() {
    const index = this.plot === null ? null : this.plot.cursor.idx;
    this.series.forEach((series, i) => {
      let at = index ?? series.values.length - 1;
      while (index === null && at > 0 && series.values[at] === null) --at;
      this.values[i].value.textContent = this.options.format(series.values[at] ?? NaN);
    });
  }

  resize() {
    const width = this.place.clientWidth, height = this.place.clientHeight;
    if (width === 0) return;
    if (this.plot === null) return this.rebuild();
    if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({width, height});
  }
}

// Of time axes: 1 s to 30 days.
Chart.timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].concat(
    [1, 2, 3, 6, 12, 24, 48, 120, 240, 720].map((hours) => 3600 * hours));

// Shares of the seconds that were spent in each stage, over the last few points.
function stageShares(seconds, stages) {
  const kWindow = 5;
  const names = orderStages(Object.keys(stages));
  const spent = names.map((name) => seconds.map((_, i) => stages[name][i] - stages[name][Math.max(0, i - kWindow)]));
  const total = seconds.map((_, i) => spent.reduce((sum, column) => sum + column[i], 0));
  return names.map((name, k) => ({
    name: name.replaceAll('_', ' '),
    className: stageClass(name, names),
    values: spent[k].map((value, i) => total[i] > 0 ? value / total[i] : null),
  }));
}

function makeCharts(parent) {
  const line = (name, className, column) => (history) => [{name, className, values: history[column]}];
  return [
    new Chart(parent, {title: 'Return', hint: 'mean of the last 100 episodes', format: Format.number,
                       series: line('return', 'accent', 'return')}),
    new Chart(parent, {title: 'Env steps per second', hint: 'trained on, over the last 10 and 60 s', format: Format.rate,
                       series: (history) => [
                         {name: '10 s', className: 'accent', values: history.rate_10s},
                         {name: '60 s', className: 'accent-2', values: history.rate_60s}]}),
    new Chart(parent, {title: 'Policy lag', hint: 'versions between acting and training', format: Format.number,
                       series: line('lag', 'accent', 'policy_lag')}),
    new Chart(parent, {title: 'Actors’ time', hint: 'share of all runners’ time by stage', format: Format.percent,
                       stacked: true, series: (history) => stageShares(history.seconds, history.actor_stages)}),
    new Chart(parent, {title: 'Learner’s time', hint: 'share by stage; barrier = waiting for data',
                       format: Format.percent, stacked: true,
                       series: (history) => stageShares(history.seconds, history.learner_stages)}),
    new Chart(parent, {title: 'Efficiency', hint: 'actors’ env steps/s over what they can do at most',
                       format: Format.percent, optional: true, share: true,
                       series: line('of the limit', 'accent', 'efficiency')}),
  ];
}
