// SPDX-License-Identifier: Apache-2.0
// The status page.   /api/status, /api/history -> this page
// Asked once a second while the page is seen. Whatever members report goes in as text, never as markup.
'use strict';

const kPeriod = 1000, kTimeout = 5000;  // Milliseconds.
const kMostRows = 200;
const kSilentSeconds = 3;
const kStarvingSeconds = 1;  // Shorter waits are how an iteration goes.

const at = (id) => document.getElementById(id);
let charts = [], runLog = null;

// 64-bit numbers and NaN come as strings.
const num = (value) => value === undefined || value === '' ? NaN : Number(value);

const kStateLook = {
  training: 'good', waiting_for_data: 'warn', starting: 'warn', finished: 'info', stopped: '', failed: 'bad', blocked: 'bad',
};

function stateName(state) { return String(state).replace(/^RUN_STATE_/, '').toLowerCase(); }

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Rows of a description list, made anew only if their names change.
function fillList(list, rows) {
  const names = rows.map(([name]) => name).join('\n');
  if (list.dataset.names !== names) {
    list.replaceChildren(...rows.flatMap(([name]) => [makeElement('dt', '', name), makeElement('dd')]));
    list.dataset.names = names;
  }
  rows.forEach(([, text], i) => setText(list.children[2 * i + 1], text));
}

function fillFigures(figures) {
  const list = at('figures');
  const names = figures.map(({id}) => id).join();
  if (list.dataset.names !== names) {
    list.replaceChildren(...figures.map(({id, name}) => {
      const box = makeElement('div', 'figure');
      box.dataset.figure = id;
      box.append(makeElement('dt', '', name), makeElement('dd', 'value'), makeElement('dd', 'note'));
      return box;
    }));
    list.dataset.names = names;
  }
  figures.forEach(({value, note}, i) => {
    setText(list.children[i].children[1], value);
    setText(list.children[i].children[2], note);
  });
}

function showWarnings(warnings) {
  const list = at('warning-list');
  at('warnings').hidden = warnings.length === 0;
  while (list.children.length > warnings.length) list.lastChild.remove();
  while (list.children.length < warnings.length) list.appendChild(makeElement('li', '', ''));
  warnings.forEach((warning, i) => setText(list.children[i], warning));
}

function showRun(status) {
  const progress = status.progress, state = stateName(status.state);
  const name = status.run_name || status.run_id;
  document.title = `${name} – Skein`;
  setText(at('name'), name);
  setText(at('state'), state.replaceAll('_', ' '));
  at('state').className = `pill ${kStateLook[state] ?? ''}`;
  const memory = progress.memory ? ` · memory ${progress.memory} ${progress.memory_size}` : '';
  setText(at('subtitle'), `${status.env_id}${memory} · up ${Format.duration(status.uptime_seconds)}`);
  at('error').hidden = !(status.last_error || progress.last_error);
  setText(at('error-text'), status.last_error || progress.last_error);
  showWarnings(progress.warnings ?? []);

  const steps = num(progress.env_steps), target = num(progress.target_env_steps);
  const share = target > 0 ? Math.min(1, steps / target) : 0;
  const percent = (Math.floor(1000 * share) / 10).toFixed(1);  // 100 % only at the target.
  at('bar-fill').style.width = `${100 * share}%`;
  at('bar').setAttribute('aria-valuenow', percent);
  setText(at('percent'), `${percent} %`);
  const phase = progress.phases > 0 ? ` · phase ${progress.phase} of ${progress.phases}` : '';
  setText(at('steps'), `${Format.count.format(steps)} of ${Format.count.format(target)} env steps${phase}`);
  const eta = num(progress.eta_seconds);
  const waits = state === 'waiting_for_data' && !status.members.some((member) => member.role === 'actor');
  setText(at('eta'), state === 'training' && eta >= 0 ? `${Format.duration(eta)} to go` : waits ? 'no actor is connected' : '');
}

function showFigures(status) {
  const progress = status.progress;
  const actors = status.members.filter((member) => member.role === 'actor');
  const runners = actors.reduce((sum, member) => sum + member.runners, 0);
  const measured = actors.filter((member) => member.report.limit_env_steps_per_second > 0);
  const sum = (field) => measured.reduce((total, member) => total + num(member.report[field]), 0);
  const figures = [
    {id: 'rate', name: 'Env steps/s', value: Format.rate(num(progress.env_steps_per_second_10s)),
     note: `${Format.rate(num(progress.env_steps_per_second_60s))} over 60 s`},
    {id: 'return', name: 'Mean return', value: Format.number(num(progress.mean_episode_return)),
     note: `length ${Format.number(num(progress.mean_episode_length))}, ${Format.short.format(num(progress.episodes))} episodes`},
    {id: 'lag', name: 'Policy lag', value: Format.number(num(progress.mean_policy_lag)),
     note: `newest policy ${Format.count.format(num(progress.policy_version))}`},
    {id: 'actors', name: 'Actors', value: Format.count.format(actors.length),
     note: `${Format.count.format(runners)} runner${runners === 1 ? '' : 's'}`},
    {id: 'iteration', name: 'Iteration', value: Format.count.format(num(progress.iteration)),
     note: `${Format.count.format(num(progress.queued_batches))} batches queued`},
  ];
  if (measured.length > 0) {
    const limit = sum('limit_env_steps_per_second');
    figures.splice(1, 0, {id: 'efficiency', name: 'Efficiency',
                          value: Format.percent(sum('env_steps_per_second') / limit),
                          note: `of ${Format.short.format(limit)} env steps/s`});
  }
  fillFigures(figures);
}

function memberState(member) {
  if (member.draining) return ['draining', 'warn'];
  if (member.seconds_since_heartbeat >= kSilentSeconds) return ['silent', 'warn'];
  if (member.role === 'actor' && !member.learner_id) return ['no learner', 'warn'];
  if (member.degraded) return ['degraded', 'warn'];
  if (member.report.starving_seconds >= kStarvingSeconds) return ['starving', 'warn'];
  return ['up', 'good'];
}

// The run's: a member's own version is as old as its last heartbeat.
function memberLag(status, member) {
  const acts = member.role === 'actor' && num(member.report.policy_version) > 0;
  return acts ? num(status.progress.mean_policy_lag) : NaN;
}

const kColumns = [
  {label: 'Member', className: 'member'},
  {label: 'State', className: 'state'},
  {label: 'Feeds', className: 'place'},
  {label: 'Host', className: 'host'},
  {label: 'Env steps/s', className: 'number'},
  {label: 'Of its limit', className: 'number limit'},
  {label: 'Lag', className: 'number', hint: 'versions between acting and training, of all actors in the last iteration'},
  {label: 'Node CPU', className: 'number'},
  {label: 'Memory', className: 'number'},
  {label: 'Seen', className: 'number'},
  {label: 'Time by stage', className: 'stages'},
];

// What was spent between the last reports, so that it shows what is now.
const lastReports = new Map();
function recentStages(member) {
  const key = `${member.member_id} ${member.generation}`, kept = 10;
  const reports = lastReports.get(key) ?? [];
  reports.push(member.report.stage_seconds ?? {});
  if (reports.length > kept) reports.shift();
  lastReports.set(key, reports);
  const now = reports[reports.length - 1], before = reports.length > 1 ? reports[0] : {};
  const names = orderStages(Object.keys(now));
  const spent = names.map((name) => Math.max(0, now[name] - (before[name] ?? 0)));
  const total = spent.reduce((sum, seconds) => sum + seconds, 0);
  return names.map((name, i) => ({name, className: stageClass(name, names), share: total > 0 ? spent[i] / total : 0}));
}

function stageMix(member) {
  const mix = makeElement('div', 'mix'), stages = recentStages(member);
  for (const {className, share} of stages) {
    const part = mix.appendChild(makeElement('span', className));
    part.style.flexGrow = share;
  }
  mix.title = stages.map(({name, share}) => `${name.replaceAll('_', ' ')} ${Format.percent(share)}`).join('\n');
  mix.setAttribute('role', 'img');
  mix.setAttribute('aria-label', mix.title || 'no times yet');
  return mix;
}

function memberCells(status, member) {
  const report = member.report, lag = memberLag(status, member), [state, look] = memberState(member);
  const limit = num(report.limit_env_steps_per_second), rate = num(report.env_steps_per_second);
  const texts = [
    '', state, member.role === 'learner' ? `rank ${member.rank}` : member.learner_id || '–', `${member.host}, pid ${member.pid}`,
    Format.rate(rate), limit > 0 ? Format.percent(rate / limit) : '–', Number.isFinite(lag) ? Format.number(lag) : '–',
    Format.percent(report.cpu_ratio), `${Format.count.format(num(report.resident_bytes) / 2 ** 20)} MiB`,
    `${num(member.seconds_since_heartbeat).toFixed(1)} s`, '',
  ];
  const cells = kColumns.map(({label, className}, i) => {
    const cell = makeElement('td', className, texts[i]);
    cell.dataset.label = label;
    return cell;
  });
  if (member.metrics_address) {
    // All processes of a run have TLS, or none.
    const link = cells[0].appendChild(makeElement('a', '', member.member_id));
    link.href = `${location.protocol === 'https:' ? 'https' : 'http'}://${member.metrics_address}/metrics`;
    link.title = 'its metrics';
  } else {
    cells[0].textContent = member.member_id;
  }
  cells[1].classList.add(look);
  cells[10].appendChild(stageMix(member));
  return cells;
}

function showMembers(status) {
  const head = at('member-head');
  if (head.children.length === 0) {
    for (const {label, className, hint} of kColumns) {
      const cell = head.appendChild(makeElement('th', className.includes('number') ? 'number' : '', label));
      if (hint) cell.title = hint;
    }
  }
  setText(at('member-count'), `(${status.members.length})`);
  const rows = [];
  for (const member of status.members.slice(0, kMostRows)) {
    const row = makeElement('tr');
    row.dataset.member = member.member_id;
    row.append(...memberCells(status, member));
    rows.push(row);
    if (!member.report.last_error) continue;
    const complaint = makeElement('tr', 'complaint');
    const cell = complaint.appendChild(makeElement('td', '', member.report.last_error));
    cell.colSpan = kColumns.length;
    rows.push(complaint);
  }
  at('member-rows').replaceChildren(...rows);
  const more = status.members.length - kMostRows;
  at('member-more').hidden = more <= 0;
  setText(at('member-more'), `and ${more} more: skein status lists them all`);
  const live = new Set(status.members.map((member) => `${member.member_id} ${member.generation}`));
  for (const key of lastReports.keys()) {
    if (!live.has(key)) lastReports.delete(key);
  }
}

function showDetails(status) {
  const progress = status.progress, account = progress.account ?? {};
  const count = (value) => Format.count.format(num(value ?? 0));
  fillList(at('run'), [
    ['Run id', status.run_id], ['Folder', status.run_directory || '–'], ['Checkpoint', progress.checkpoint || '–'],
    ['Env steps/s over 300 s', Format.rate(num(progress.env_steps_per_second_300s))],
    ['Joins, leaves, expired', `${count(status.joins)}, ${count(status.leaves)}, ${count(status.expirations)}`],
    ['Actors moved', count(status.actor_moves)],
  ]);
  fillList(at('account'), ['collected', 'trained', 'stale', 'rejected', 'lost', 'pending'].map(
                              (fate) => [fate, count(account[fate])]));
  for (const [id, values] of [['episode-metrics', progress.episode_metrics], ['losses', progress.losses],
                              ['callback-metrics', progress.callback_metrics]]) {
    const rows = Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    at(id).parentElement.hidden = rows.length === 0;
    fillList(at(id), rows.map(([name, value]) => [name.replaceAll('_', ' '), Format.number(num(value))]));
  }
}

async function get(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(kTimeout), cache: 'no-store'});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// The newest points in the place of what is known from there on. A stage that is new was 0 before.
function mergeColumns(known, recent, keep) {
  const merged = {};
  for (const [name, column] of Object.entries(recent)) {
    if (Array.isArray(column)) {
      merged[name] = (known[name] ?? new Array(keep).fill(0)).slice(0, keep).concat(column);
    } else {
      merged[name] = typeof column === 'object' ? mergeColumns(known[name] ?? {}, column, keep) : column;
    }
  }
  return merged;
}

let runHistory = null;
async function updateHistory() {
  const recent = runHistory === null ? null : await get('/api/history/recent');
  const fits = recent !== null && recent.stride === runHistory.stride && recent.points >= runHistory.points &&
      recent.seconds.length > 0 && recent.seconds[0] <= runHistory.seconds[runHistory.seconds.length - 1];
  if (fits) {
    runHistory = mergeColumns(runHistory, recent, runHistory.seconds.findIndex((second) => second >= recent.seconds[0]));
  } else {
    runHistory = await get('/api/history');
  }
  drawCharts();
}

function drawCharts() {
  const axis = new Axis(at('axis').querySelector('input:checked').value);
  for (const chart of charts) chart.update(runHistory, axis);
}

// The viewer's choice of the axis stays with the browser, where it has a place for it.
function setUpAxis() {
  const kKey = 'skein-axis';
  try {
    const chosen = at('axis').querySelector(`input[value="${CSS.escape(localStorage.getItem(kKey) ?? '')}"]`);
    if (chosen !== null) chosen.checked = true;
  } catch { /* None. */ }
  at('axis').addEventListener('change', (event) => {
    try {
      localStorage.setItem(kKey, event.target.value);
    } catch { /* None. */ }
    if (runHistory !== null) drawCharts();
  });
}

let lastAnswer = null;
async function update() {
  try {
    const status = await get('/api/status');
    showRun(status);
    showFigures(status);
    showMembers(status);
    showDetails(status);
    await updateHistory();
    await runLog.update(get);
    lastAnswer = new Date();
    at('notice').hidden = true;
    document.body.classList.remove('stale');
  } catch (error) {
    at('notice').hidden = false;
    setText(at('notice'), lastAnswer === null ? 'The coordinator does not answer; trying on.'
        : `The coordinator does not answer. What is shown is from ${lastAnswer.toLocaleTimeString()}.`);
    document.body.classList.add('stale');
  }
}

// Scripts are asked for once only: a coordinator on a busy machine may have been too late with one.
function lackScripts() {
  return [typeof uPlot, typeof Chart, typeof RunLog].includes('undefined');
}

async function run() {
  if (lackScripts()) {
    at('notice').hidden = false;
    setText(at('notice'), 'A part of this page did not arrive; loading it again.');
    setTimeout(() => location.reload(), 3000);
    return;
  }
  charts = makeCharts(at);
  runLog = new RunLog(at);
  setUpAxis();
  while (true) {
    if (document.hidden) {
      await new Promise((seen) => document.addEventListener('visibilitychange', seen, {once: true}));
    }
    await update();
    await new Promise((over) => setTimeout(over, kPeriod));
  }
}

run();
