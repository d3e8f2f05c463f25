// Who keeps whom waiting: a picture of the heaviest pairs, and all pairs as a table; and threads against locks.

const PAIRS_DRAWN = 14;
const MATRIX = { threads: 40, locks: 12 };

const place = (frames) => (frames.length === 0 ? 'not known' : profile.frames[frames[0]][0]);
const clipped = (text, room) => (text.length > room ? `${text.slice(0, room - 2)}..` : text);

// Waiters at the left, holders at the right, a line for each pair, as thick as the wait was long.
const waitPicture = (blocking) => {
  const pairs = new Map();
  for (const { lock, ns, waiter, holder } of blocking) {
    const [left, right] = [place(waiter), place(holder)];
    const key = `${left}\n${right}\n${lock}`;
    if (!pairs.has(key)) pairs.set(key, { left, right, lock, ns: 0 });
    pairs.get(key).ns += ns;
  }
  const drawn = [...pairs.values()].sort((a, b) => b.ns - a.ns).slice(0, PAIRS_DRAWN);
  const rows = (side) => [...new Set(drawn.map((pair) => pair[side]))];
  const [waiters, holders] = [rows('left'), rows('right')];
  const height = 40 * Math.max(waiters.length, holders.length) + 30;
  const y = (list, of) => 50 + 40 * list.indexOf(of);
  const box = (x, at, label) => svg('g', {}, svg('title', {}, label),
    svg('rect', { x, y: at - 13, width: 250, height: 26, rx: 4 }), svg('text', { x: x + 8, y: at + 4 }, clipped(label, 33)));
  const lines = drawn.map((pair) => {
    const [from, to] = [y(waiters, pair.left), y(holders, pair.right)];
    const width = Math.max(1, (14 * pair.ns) / drawn[0].ns);
    return svg('path', { d: `M250,${from} C350,${from} 350,${to} 450,${to}`, 'stroke-width': width },
      svg('title', {}, `${pair.left} waits for ${pair.right}: ${lockName(pair.lock)}, ${duration(pair.ns)}`));
  });
  return svg('svg', { class: 'graph', viewBox: `0 0 700 ${height}`, role: 'img', 'aria-label': 'who waits for whom; the table below says the same' },
    svg('text', { x: 0, y: 20 }, 'these wait'), svg('text', { x: 450, y: 20 }, 'for these, who hold the lock'), ...lines,
    ...waiters.map((label) => box(0, y(waiters, label), label)), ...holders.map((label) => box(450, y(holders, label), label)));
};

const waitGraphPanel = (blocking) => {
  const longest = Math.max(...blocking.map(({ ns }) => ns), 1);
  const listed = table([
    { title: 'Waiter', value: ({ waiter }) => place(waiter), show: ({ waiter }) => name(place(waiter)) },
    { title: 'Holder', value: ({ holder }) => place(holder), show: ({ holder }) => name(place(holder)) },
    { title: 'Lock', value: ({ lock }) => lockName(lock), show: ({ lock }) => name(lockName(lock)) },
    { title: 'Time', number: true, value: ({ ns }) => ns, show: ({ ns }) => duration(ns), part: ({ ns }) => ns / longest },
    { title: 'Sampled', number: true, value: ({ waits }) => waits, show: ({ waits }) => count(waits) },
  ], blocking, {
    sorted: 3,
    details: ({ waiter, holder }) => el('div', { className: 'stacks' },
      el('div', {}, el('h3', {}, 'The waiter'), calls(waiter)), el('div', {}, el('h3', {}, 'Where the holder took it'), calls(holder))),
  });
  return el('div', {}, el('div', { className: 'wide' }, waitPicture(blocking)), listed.element);
};

const threadName = ({ pid, tid, name: given }) => `${given || 'thread'} ${tid}${tid === pid ? '' : ` of ${pid}`}`;

const threadsPanel = (threads) => {
  const listed = table([
    { title: 'Thread', value: threadName, show: (thread) => name(threadName(thread)) },
    { title: 'Acquired', number: true, value: ({ acquired }) => acquired, show: ({ acquired }) => count(acquired) },
    ...PARTS.map(([key, label]) => ({ title: label, number: true, value: ({ cpu }) => cpu[key], show: ({ cpu }) => seconds(cpu[key]) })),
  ], threads, { sorted: 5 });
  return el('div', {}, matrix(threads), listed.element);
};

const matrix = (threads) => {
  const totals = new Map();
  for (const { waits } of threads) for (const [lock, , ns] of waits) if (lock !== null) totals.set(lock, (totals.get(lock) ?? 0) + ns);
  const locks = [...totals].sort((a, b) => b[1] - a[1]).map(([lock]) => lock).slice(0, MATRIX.locks);
  if (locks.length === 0) return el('p', {}, 'No thread waited.');
  const waited = (thread, wanted) => sum(thread.waits.filter(([lock]) => lock === wanted).map(([, , ns]) => ns));
  const rows = threads.slice(0, MATRIX.threads);
  const most = Math.max(...rows.flatMap((thread) => locks.map((lock) => waited(thread, lock))), 1);
  const caption = `Time waited: ${rows.length} of ${plural(threads.length, 'thread', 'threads')}, ${locks.length} of ${plural(totals.size, 'lock', 'locks')}, most first`;
  return el('div', { className: 'wide' }, el('table', { className: 'matrix' }, el('caption', {}, caption),
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Thread'),
      locks.map((lock) => el('th', { scope: 'col', className: 'number', title: lockName(lock) }, clipped(lockName(lock), 22))))),
    el('tbody', {}, rows.map((thread) => el('tr', {}, el('th', { scope: 'row' }, name(threadName(thread))),
      locks.map((lock) => {
        const ns = waited(thread, lock);
        return el('td', { className: 'number heat', style: { '--part': (0.85 * ns) / most } }, ns === 0 ? '' : duration(ns));
      }))))));
};
