// The page, from the top: what was run and found, then a panel for each part of the profile that has data.

const profile = JSON.parse(document.getElementById('profile').textContent);
const lockName = (lock) => (lock === null ? 'a lock left out' : profile.locks[lock].short);

const MARKS = {
  initialised: ['heap', 'on the heap or a stack; named by who waits for it, or where it was initialised'],
  'first-use': ['heap', 'on the heap or a stack; named by its first use or by who waits for it'],
  futex: ['futex', 'a wait of the program by a futex of its own, seen from the kernel; named by where it waits'],
  rest: ['rest', 'all that found no record of their own'],
  kernel: ['kernel', 'a lock of the kernel'],
};

const headPanel = () => {
  const { command, host, lock, wall, end, finding, next, left_out: leftOut } = profile;
  return el('header', {}, el('h1', {}, 'Lock profile'), el('p', {}, el('code', {}, command)),
    el('p', { className: 'faint' }, `${host ?? 'on a machine that the profile does not name'}; lock ${lock}; ran ${seconds(wall)}, ${end}`),
    el('p', { className: 'finding' }, finding),
    next === null ? null : el('p', {}, 'Next: ', el('code', {}, next)),
    leftOut.length === 0 ? null : el('p', { id: 'left-out' }, `Not on this page, but in the JSON: ${leftOut.join('; ')}.`));
};

const countedLine = (what, number, counted, refused) => el('p', {}, what,
  number === null ? refused : `${count(number)}${counted < 0.995 ? `, worked out from ${percent(counted)} of the time` : ''}`);
// What a processor's event is a count of: makers' differ.
const outOfOtherNodes = (event) => (event === null ? 'Lines out of another node\'s cache'
  : `${event.endsWith('HITM') ? 'Loads of lines that another node had modified' : 'Demand fills from another node\'s cache'} (${event})`);
const missesLine = ({ reads, counted, refused, other_nodes: others }) => [countedLine('Reads that no cache had: ', reads, counted, refused),
  others ? countedLine(`${outOfOtherNodes(others.event)}: `, others.lines, others.counted, others.refused) : null];

// What there were too many of to keep all.
const leftOut = (sampling) => {
  const parts = [
    [sampling.dropped, 'sampled waits are without their place'],
    [sampling.cut, 'stacks have one call only'],
    [sampling.blocked_dropped, 'sampled waits are without who had the lock'],
    [sampling.orders_dropped, 'times two locks were taken in an order that is not kept'],
  ].filter(([number]) => number > 0);
  return parts.length === 0 ? null
    : el('p', { className: 'faint' }, `Too many: ${parts.map(([number, what]) => `${number} ${what}`).join(', ')}.`);
};

const cpuPanel = () => {
  const { cpu, sampling } = profile;
  const all = sum(PARTS.map(([key]) => cpu[key])) || 1;
  return el('div', {},
    el('div', { className: 'split', role: 'img', 'aria-label': 'where the time of all threads went; the list below says the same' },
      PARTS.map(([key, label, paint]) => el('span', { title: label, style: { width: `${(100 * cpu[key]) / all}%`, background: paint } }))),
    legend(PARTS.map(([key, label, paint]) => [`${seconds(cpu[key])} ${label} (${percent(cpu[key] / all)})`, paint])),
    sampling.hold_period > 0 ? el('p', { className: 'faint' },
      `Counts are exact, waits all timed; sampled: 1 hold in ${sampling.hold_period}, CPU time and place of 1 wait in ${sampling.spin_period}.`) : null,
    leftOut(sampling),
    profile.cache_misses === null ? null : missesLine(profile.cache_misses));
};

const notesPanel = (notes) => notes.map(({ cause, lock, advice, evidence }) => el('div', { className: 'note' },
  el('h3', {}, cause, lock === undefined ? null : [': ', name(lockName(lock))]), el('p', {}, advice), el('p', { className: 'faint' }, evidence)));

const lockDetails = (lock) => el('div', {},
  el('p', {}, name(lock.name)),
  lock.sites.length === 0 ? null : el('h3', {}, 'Threads wait for it in'),
  lock.sites.map(({ name: site, share, frames, owner_frames: owner }) => el('div', {}, `${percent(share)} `, name(site), calls(frames),
    owner.length === 0 ? null : [el('p', {}, 'while its owner was in'), calls(owner)])),
  lock.frames.length === 0 ? null : [el('h3', {}, lock.origin === 'initialised' ? 'Initialised in' : 'First used in'), calls(lock.frames)]);

const locksPanel = (locks) => {
  const longest = Math.max(...locks.map(({ wait }) => wait.total_ns), 1);
  const mark = ({ origin }) => (origin in MARKS
    ? [' ', el('span', { className: `mark ${origin}`, title: MARKS[origin][1] }, MARKS[origin][0])] : null);
  const number = (title, value, show, about) => ({ title, about, number: true, value, show: (lock) => show(value(lock)) });
  const { element, filter } = table([
    {
      title: 'Lock', value: ({ short }) => short,
      show: (lock) => [name(lock.short, lock.name), mark(lock), el('span', { className: 'faint' },
        ` ${lock.kind}${lock.objects === 1 ? '' : ` x${count(lock.objects)}`}${lock.module ? `, ${lock.module}` : ''}`)],
    },
    number('Acquired', ({ acquired }) => acquired, count),
    number('Contended', ({ contended }) => contended, count, 'attempts that had to wait'),
    number('Share', ({ share }) => share, percent, 'of the attempts, those that had to wait'),
    number('Moved', ({ moved }) => moved, percent, 'acquisitions on another CPU than the one before'),
    { ...number('Waited', ({ wait }) => wait.total_ns, duration, 'all waits together'), part: ({ wait }) => wait.total_ns / longest },
    number('mean', ({ wait }) => wait.mean_ns, duration, 'mean wait'),
    number('p99', ({ wait }) => wait.p99_ns, duration, '99th percentile of the waits, to about 20 %'),
    number('max', ({ wait }) => wait.max_ns, duration, 'longest wait'),
    number('Held', ({ hold }) => hold?.total_ns, duration, 'all holds together, worked out from those that were timed'),
    number('mean', ({ hold }) => hold?.mean_ns, duration, 'mean hold'),
    number('max', ({ hold }) => hold?.max_ns, duration, 'longest hold that was timed'),
  ], locks, { sorted: 5, details: lockDetails });

  const words = el('input', { type: 'search', oninput: () => apply() });
  const side = el('select', { onchange: () => apply() },
    el('option', { value: '' }, 'all locks'), el('option', { value: 'user' }, 'the program\'s'), el('option', { value: 'kernel' }, 'the kernel\'s'));
  const apply = () => {
    const wanted = words.value.trim().toLowerCase();
    filter((lock) => `${lock.name} ${lock.kind} ${lock.module ?? ''} ${lock.sites.map((site) => site.name).join(' ')}`.toLowerCase().includes(wanted)
      && (side.value === '' || (lock.origin === 'kernel') === (side.value === 'kernel')));
  };
  const both = locks.some(({ origin }) => origin === 'kernel') && locks.some(({ origin }) => origin !== 'kernel');
  return el('div', {}, el('div', { className: 'controls' }, el('label', {}, 'Filter', words), both ? el('label', {}, 'Show', side) : null), element);
};

const cyclesPanel = (cycles) => [el('p', {}, 'Threads that take these locks in these orders at the same time can wait for each other for ever.'),
  cycles.map(({ steps, deadlocked, gives_up }) => el('div', { className: 'note' },
    el('h3', {}, steps.map(({ held }) => [name(lockName(held)), ', then ']), name(lockName(steps[0].held))),
    deadlocked ? el('p', {}, 'They did so at the end: this was a deadlock.') : null,
    gives_up ? el('p', {}, 'They did so at the end, one of them until a deadline: that ends by itself.') : null,
    el('div', { className: 'stacks' }, steps.map(({ held, wanted, seen, held_frames: first, wanted_frames: second }) => el('div', {},
      el('p', {}, name(lockName(wanted)), ' with ', name(lockName(held)), ` held, seen ${plural(seen, 'time', 'times')}`),
      el('h3', {}, 'the first was taken in'), calls(first), el('h3', {}, 'the second in'), calls(second))))))];

const ordersPanel = (orders) => table([
  { title: 'Held', value: ({ held }) => lockName(held), show: ({ held }) => name(lockName(held)) },
  { title: 'Taken with it held', value: ({ wanted }) => lockName(wanted), show: ({ wanted }) => name(lockName(wanted)) },
  { title: 'Seen', number: true, value: ({ seen }) => seen, show: ({ seen }) => count(seen) },
], orders, { sorted: 2, details: (order) => el('div', { className: 'stacks' }, el('div', {}, calls(order.held_frames)), el('div', {}, calls(order.wanted_frames))) }).element;

const convoysPanel = (convoys) => table([
  { title: 'Lock', value: ({ lock }) => lockName(lock), show: ({ lock }) => name(lockName(lock)) },
  { title: 'Began', number: true, value: ({ start }) => start, show: ({ start }) => seconds(start) },
  { title: 'Lasted', number: true, value: ({ length_ns: length }) => length, show: ({ length_ns: length }) => duration(length) },
  { title: 'Most waiters', number: true, value: ({ waiters_max: most }) => most, show: ({ waiters_max: most }) => count(most) },
], convoys, { sorted: 2 }).element;

const kernelPanel = ({ source, scope, seconds: length, events, dropped, limits }) => el('div', {},
  el('p', {}, `Watched by ${source}, ${typeof scope === 'string' ? scope : `process ${scope.process}`}, for ${seconds(length)}: ${plural(events, 'wait', 'waits')}, ${count(dropped)} dropped.`),
  limits.length === 0 ? null : el('ul', {}, limits.map((limit) => el('li', {}, limit))));

// Runs of neighbours as the kernel writes them: 0-3,8.
const ranges = (numbers) => {
  const runs = [];
  for (const number of numbers) {
    if (runs.length > 0 && runs[runs.length - 1][1] + 1 === number) runs[runs.length - 1][1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(',');
};

const systemCallsPanel = ({ mechanism, cpus, processes, moved, bypassed, in_place: inPlace, others, latency_ns: latency, functions }) => {
  const all = moved + bypassed + inPlace;
  const number = (title, value, show, about) => ({ title, about, number: true, value, show: (one) => show(value(one)) });
  const onSockets = (one) => one.moved + one.bypassed + one.in_place;
  const why = ({ reasons }) => Object.entries(reasons).sort((a, b) => b[1] - a[1]).map(([reason, times]) => `${count(times)} ${reason}`).join(', ');
  return el('div', {},
    el('p', {}, name(mechanism), cpus.length === 0 ? null : ` on CPU ${ranges(cpus)}`,
      `: ${count(moved)} of ${plural(all, 'call', 'calls')} on sockets moved${all > 0 ? ` (${percent(moved / all)})` : ''}, `
      + `${count(bypassed)} bypassed, ${count(inPlace)} in place, ${count(others)} on other descriptors; ${plural(processes, 'process', 'processes')}.`),
    latency === null ? null : el('p', {}, 'Moved calls took ', [['half of them', latency.p50], ['99 %', latency.p99], ['99.9 %', latency.p999], ['the longest', latency.max]]
      .map(([what, ns]) => `${duration(ns)} (${what})`).join(', '), ', with what they waited for.'),
    table([
      { title: 'Function', value: (one) => one.name, show: (one) => name(one.name) },
      number('Moved', (one) => one.moved, count, 'executed by another thread'),
      number('Share', (one) => (onSockets(one) > 0 ? one.moved / onSockets(one) : null), percent, 'of the calls on sockets, those that were moved'),
      number('Bypassed', (one) => one.bypassed, count, 'in place because moving costs more than it saves'),
      number('In place', (one) => one.in_place, count, 'in place for other reasons'),
      number('Others', (one) => one.others, count, 'on other descriptors'),
      { title: 'Why not moved', value: why, show: why },
    ], functions, { sorted: 1 }).element);
};

const conditionsPanel = (conditions) => table([
  { title: 'Condition variable', value: ({ short }) => short, show: ({ name: full, short }) => name(short, full) },
  { title: 'Waits', number: true, value: ({ waits }) => waits, show: ({ waits }) => count(waits) },
  { title: 'Timeouts', number: true, value: ({ timeouts }) => timeouts, show: ({ timeouts }) => count(timeouts) },
  { title: 'Waited', number: true, value: ({ wait }) => wait.total_ns, show: ({ wait }) => duration(wait.total_ns) },
  { title: 'mean', number: true, value: ({ wait }) => wait.mean_ns, show: ({ wait }) => duration(wait.mean_ns) },
], conditions, { sorted: 3, caption: 'Waiting for work is no loss.' }).element;

const processesPanel = (processes) => table([
  { title: 'Process', value: ({ pid }) => pid, show: ({ pid, program }) => [name(program), ` ${pid}`] },
  { title: 'Threads', number: true, value: ({ threads }) => threads, show: ({ threads }) => count(threads) },
  { title: 'Spun', number: true, value: ({ lock_spin: spin }) => spin, show: ({ lock_spin: spin }) => seconds(spin) },
  { title: 'Waited', number: true, value: ({ lock_wait: wait }) => wait, show: ({ lock_wait: wait }) => seconds(wait) },
  { title: 'End', value: ({ end }) => end, show: ({ end }) => end },
], processes, { sorted: 3 }).element;

const outsidersPanel = (outsiders) => el('ul', {}, outsiders.map(({ pid, program, why }) => el('li', {}, name(program), ` ${pid}: ${why}`)));

const PANELS = [
  ['time', 'Where the time went', () => profile.cpu, cpuPanel],
  ['notes', 'What would help', () => profile.notes, notesPanel],
  ['locks', 'Locks', () => profile.locks, locksPanel],
  ['flame', 'Where threads wait', () => profile.stacks, flamePanel],
  ['samples', 'On the CPU, by samples', () => profile.cpu_samples, samplesPanel],
  ['timeline', 'Over time', () => profile.timeline, timelinePanel],
  ['waits', 'Who waits for whom', () => profile.blocking, waitGraphPanel],
  ['threads', 'Threads', () => profile.threads, threadsPanel],
  ['cycles', 'Possible deadlocks', () => profile.cycles, cyclesPanel],
  ['orders', 'Lock order', () => profile.orders, ordersPanel],
  ['convoys', 'Longest queues', () => profile.convoys, convoysPanel],
  ['system-calls', 'System calls', () => profile.system_calls, systemCallsPanel],
  ['kernel', 'The kernel', () => profile.kernel, kernelPanel],
  ['conditions', 'Condition variables', () => profile.conditions, conditionsPanel],
  ['processes', 'Processes', () => (profile.processes.length > 1 ? profile.processes : null), processesPanel],
  ['outsiders', 'Not seen into', () => profile.not_interposed, outsidersPanel],
];

const present = PANELS.filter(([, , data]) => data() && data().length !== 0);
document.getElementById('page').append(headPanel(),
  el('nav', { 'aria-label': 'Parts of the page' }, el('ul', {}, present.map(([id, title]) => el('li', {}, el('a', { href: `#${id}` }, title))))),
  ...present.map(([id, title, data, panel]) => el('section', { id, 'aria-label': title }, el('h2', {}, title), panel(data()))));
document.title = `Lock profile of ${profile.command}`;
