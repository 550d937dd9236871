// SPDX-License-Identifier: Apache-2.0
// The log's last lines and the run's configuration.   /api/log, /api/config -> this page
// Lines may come from anyone who may speak to the run: they go in as text, never as markup.
'use strict';

const kLogPeriod = 2000;  // Milliseconds.

class RunLog {
  constructor(at) {
    this.lines = at('log');
    this.note = at('log-note');
    this.asked = -Infinity;
    this.shown = '';
    this.hasConfig = false;
    const config = at('config');
    config.addEventListener('toggle', () => config.open && this.showConfig(at('config-text')));
  }

  // `get`: asks the coordinator for JSON.
  async update(get) {
    if (performance.now() - this.asked < kLogPeriod) return;
    this.asked = performance.now();
    let lines = [];
    try {
      lines = await get('/api/log');
      this.note.textContent = lines.length > 0 ? `last ${lines.length} line${lines.length === 1 ? '' : 's'}` : 'empty so far';
    } catch (error) {
      this.note.textContent = `cannot be read (${error.message})`;
    }
    const now = JSON.stringify(lines);
    if (now === this.shown) return;
    this.shown = now;
    const box = this.lines, atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
    box.replaceChildren(...lines.map((line) => RunLog.element(line)));
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  static element({time, level, program, message}) {
    const line = makeElement('div');
    if (['warning', 'error', 'critical'].includes(level)) line.className = level;
    const date = new Date(time), when = makeElement('time');
    when.textContent = Number.isNaN(date.getTime()) ? time : date.toLocaleTimeString('en-GB');
    if (!Number.isNaN(date.getTime())) when.dateTime = date.toISOString();
    line.append(when, makeElement('span', 'program', program));
    const text = makeElement('span', 'message', message);
    if (line.className !== '') text.prepend(makeElement('b', '', `${level}: `));
    line.append(text);
    return line;
  }

  async showConfig(place) {
    if (this.hasConfig) return;
    try {
      const answer = await fetch('/api/config', {cache: 'no-store'});
      if (!answer.ok) throw new Error(`/api/config: ${answer.status}`);
      place.textContent = await answer.text();
      this.hasConfig = true;
    } catch (error) {
      place.textContent = `The configuration cannot be read now (${error.message}): close this and open it again.`;
    }
  }
}
