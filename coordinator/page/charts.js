// SPDX-License-Identifier: Apache-2.0
// Charts over uPlot.   history -> Chart.update() -> canvas
// A chart is over time or over env steps (Axis). It has lines, or shares of a whole that are stacked up to 100 %. Its legend shows the values under the cursor, else
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
  // For axes: short, whatever the size.
  tick(value) {
    if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(Math.abs(value) < 1e-99 ? 0 : 1);
    return Format.short.format(value);
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

// The x axis of all charts: the time of the run, or its env steps.
class Axis {
  constructor(name) {
    this.name = name;
    this.incrs = name === 'time' ? Axis.timeSteps : undefined;
    this.format = name === 'time' ? Format.clock : (value) => Format.short.format(value);
  }

  // Indices of the points that are drawn, null for all. What was trained and lost again (a learner went on from its
  // checkpoint) is left out over env steps, as are points at which nothing had been trained since the one before.
  pick(history) {
    if (this.name === 'time') return null;
    const steps = history.env_steps, picked = [];
    for (let i = steps.length - 1, least = Infinity; i >= 0; --i) {
      if (steps[i] >= least) continue;
      least = steps[i];
      picked.push(i);
    }
    return picked.reverse();
  }
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
    this.place.setAttribute('role', 'img');
    this.empty = this.place.appendChild(makeElement('div', 'empty', 'no data yet'));
    this.plot = null;
    this.drawable = false;
    this.series = [];
    this.axis = null;
    this.x = [];
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(this.place);
    this.recoloured = new AbortController();
    matchMedia('(prefers-color-scheme: dark)')
        .addEventListener('change', () => this.rebuild(), {signal: this.recoloured.signal});
  }

  remove() {
    if (this.plot !== null) this.plot.destroy();
    this.resized.disconnect();
    this.recoloured.abort();
    this.root.remove();
  }

  update(history, axis) {
    const look = () => `${this.axis?.name}\n${this.series.map((series) => series.name).join('\n')}`;
    const before = look(), picked = axis.pick(history);
    const take = (values) => picked === null ? values : picked.map((i) => values[i]);
    this.axis = axis;
    this.x = take(axis.name === 'time' ? history.seconds : history.env_steps);
    this.series = this.options.series(history).map((series) => ({...series, values: take(series.values)}));
    const drawable = this.drawable = this.x.length > 1 && this.series.some((series) => series.values.some(Number.isFinite));
    this.root.hidden = !!this.options.optional && !drawable;
    this.empty.hidden = drawable;
    if (!drawable) {
      if (this.plot !== null) this.plot.destroy();
      this.plot = null;
      this.legend.replaceChildren();
      this.place.setAttribute('aria-label', `${this.options.title}: no data yet`);
      return;
    }
    if (this.plot === null || before !== look()) return this.rebuild();
    this.plot.setData(this.data());
    this.showLegend();
  }

  // uPlot knows no stacks: the sums are drawn from the highest down, each filled to the ground.
  data() {
    if (!this.options.stacked) return [this.x, ...this.series.map((series) => series.values)];
    const sums = [];
    let below = this.x.map(() => 0);
    for (const series of this.series) {
      below = below.map((sum, i) => series.values[i] === null ? null : sum + series.values[i]);
      sums.unshift(below);
    }
    return [this.x, ...sums];
  }

  rebuild() {
    if (this.plot !== null) this.plot.destroy();
    this.plot = null;
    if (!this.drawable || this.place.clientWidth === 0) return;
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
        {...axis, size: 26, gap: 2, space: 60, incrs: this.axis.incrs, values: (_, splits) => splits.map(this.axis.format)},
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
    if (!this.options.stacked && !this.options.share) return splits.map(Format.tick);
    const step = splits.length > 1 ? splits[1] - splits[0] : 1;
    const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(100 * step))));
    return splits.map((value) => `${(100 * value).toFixed(digits)} %`);
  }

  // From 0 where that costs little, and never without height.
  static range(_, low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
    if (low > 0 && low < 0.7 * high) low = 0;
    if (high <= low) return low === 0 ? [0, 1] : [Math.min(0, 1.25 * low), Math.max(0, 1.25 * low)];
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
    this.where = makeElement('span');
    this.legend.replaceChildren(...this.values.map(({item}) => item), this.where);
  }

  showLegend() {
    const index = this.plot === null ? null : this.plot.cursor.idx;
    this.series.forEach((series, i) => {
      let at = index ?? series.values.length - 1;
      while (index === null && at > 0 && series.values[at] === null) --at;
      this.values[i].value.textContent = this.options.format(series.values[at] ?? NaN);
    });
    this.where.textContent = index === null ? '' : `at ${this.axis.format(this.x[index])}`;
    // Of the newest values only: what is under the cursor is no news to who listens.
    if (index === null) this.place.setAttribute('aria-label', `${this.options.title}: ${this.legend.textContent}`);
  }

  resize() {
    const width = this.place.clientWidth, height = this.place.clientHeight;
    if (width === 0) return;
    if (this.plot === null) return this.rebuild();
    if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({width, height});
  }
}

// 1 s to 30 days.
Axis.timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].concat(
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

// What readers of RL know by another name, or what it is good for. A statistic that is not here is shown all the same.
const kStatistics = {
  policy_loss: {}, value_loss: {},
  entropy: {hint: 'of the policy: how much it explores'},
  kl: {title: 'KL divergence', hint: 'of the policy by an update; 0.01 to 0.1 is usual'},
  clip_fraction: {hint: 'share of samples; 5 to 40 % is usual', share: true},
  explained_variance: {hint: 'by the value function; 1 is best'},
  lr: {title: 'Learning rate'},
  grad_norm: {title: 'Gradient norm', hint: 'before it is clipped'},
};

function titleOf(name) {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// A chart for each name in a group of the history, made when the name is first seen.
class ChartGroup {
  constructor(parent, group, known, hint) {
    Object.assign(this, {parent, group, known, hint, charts: new Map()});
  }

  update(history, axis) {
    const names = Object.keys(history[this.group]);
    const order = Object.keys(this.known);
    const place = (name) => order.includes(name) ? order.indexOf(name) : order.length;
    names.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
    for (const name of names) {
      if (!this.charts.has(name)) this.charts.set(name, this.make(name));
    }
    for (const [name, chart] of this.charts) {
      if (names.includes(name)) continue;
      chart.remove();
      this.charts.delete(name);
    }
    names.forEach((name) => this.charts.get(name).update(history, axis));
    const roots = names.map((name) => this.charts.get(name).root);
    const here = [...this.parent.children].filter((child) => roots.includes(child));
    if (roots.some((root, i) => here[i] !== root)) this.parent.append(...roots);
  }

  make(name) {
    const {title = titleOf(name), hint = this.hint, share = false} = Object.hasOwn(this.known, name) ? this.known[name] : {};
    return new Chart(this.parent, {
      title, hint, share, format: share ? Format.percent : Format.number,
      series: (history) => [{name: name.replaceAll('_', ' '), className: 'accent', values: history[this.group][name]}]});
  }
}

function makeCharts(at) {
  const line = (name, className, column) => (history) => [{name, className, values: history[column]}];
  const episodes = at('charts-episodes'), speed = at('charts-speed');
  return [
    new Chart(episodes, {title: 'Return', hint: 'mean of the last 100 episodes', format: Format.number,
                         series: line('return', 'accent', 'return')}),
    new Chart(episodes, {title: 'Episode length', hint: 'env steps, mean of the last 100 episodes', format: Format.number,
                         series: line('length', 'accent', 'episode_length')}),
    new ChartGroup(episodes, 'episode_metrics', {}, 'mean of the last 100 episodes'),
    new ChartGroup(at('charts-update'), 'update_stats', kStatistics, ''),
    new ChartGroup(at('charts-update'), 'callback_metrics', {}, 'of the callback'),
    new Chart(speed, {title: 'Env steps per second', hint: 'trained on, over the last 10 and 60 s', format: Format.rate,
                      series: (history) => [
                        {name: '10 s', className: 'accent', values: history.rate_10s},
                        {name: '60 s', className: 'accent-2', values: history.rate_60s}]}),
    new Chart(speed, {title: 'Policy lag', hint: 'versions between acting and training', format: Format.number,
                      series: line('lag', 'accent', 'policy_lag')}),
    new Chart(speed, {title: 'Actors', hint: 'that are members of the run', format: Format.number,
                      series: line('actors', 'accent', 'actors')}),
    new Chart(speed, {title: 'Actors’ time', hint: 'share of all runners’ time by stage', format: Format.percent,
                      stacked: true, series: (history) => stageShares(history.seconds, history.actor_stages)}),
    new Chart(speed, {title: 'Learner’s time', hint: 'share by stage; barrier = waiting for data',
                      format: Format.percent, stacked: true,
                      series: (history) => stageShares(history.seconds, history.learner_stages)}),
    new Chart(speed, {title: 'Efficiency', hint: 'actors’ env steps/s over what they can do at most',
                      format: Format.percent, optional: true, share: true,
                      series: line('of the limit', 'accent', 'efficiency')}),
  ];
}
