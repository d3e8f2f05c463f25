// The run from left to right: where the time went, and which locks were waited for. Arrow keys walk through it.

const PARTS = [
  ['program', 'in the program', 'var(--program)'], ['kernel', 'in the kernel', 'var(--kernel)'],
  ['lock_spin', 'on a CPU, waiting for locks', 'var(--spin)'], ['lock_wait', 'off the CPU, waiting for locks', 'var(--wait)'],
];
const LOCKS_SHOWN = 8;

const legend = (entries) => el('ul', { className: 'legend' },
  entries.map(([label, paint]) => el('li', {}, el('i', { style: { background: paint } }), label)));

// One stacked bar for each interval; `layers` are { label, paint, values }, `say(at)` is what is known of an interval.
const stackedChart = (layers, about, say) => {
  const length = layers[0].values.length;
  const tallest = Math.max(...layers[0].values.map((_, at) => sum(layers.map(({ values }) => values[at]))), Number.MIN_VALUE);
  const readout = el('p', { className: 'readout', role: 'status' });
  const bars = layers[0].values.flatMap((_, at) => {
    let top = 100;
    return layers.map(({ paint, values }) => {
      const height = (100 * values[at]) / tallest;
      top -= height;
      return svg('rect', { x: at, y: top, width: 0.92, height, style: `fill: ${paint}` });
    });
  });
  const cursor = svg('rect', { y: 0, width: 1, height: 100, 'fill-opacity': 0.25, visibility: 'hidden' });
  const chart = svg('svg', {
    class: 'chart', viewBox: `0 0 ${length} 100`, preserveAspectRatio: 'none', tabindex: 0, role: 'img', 'aria-label': about,
  }, ...bars, cursor);
  let at = 0;
  const look = (wanted) => {
    at = Math.min(Math.max(wanted, 0), length - 1);
    cursor.setAttribute('x', at);
    cursor.setAttribute('visibility', 'visible');
    readout.textContent = say(at);
  };
  chart.addEventListener('mousemove', (event) => {
    const box = chart.getBoundingClientRect();
    look(Math.floor(((event.clientX - box.left) / box.width) * length));
  });
  chart.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) { look(at + step); event.preventDefault(); }
  });
  return el('div', {}, chart, readout, legend(layers.map(({ label, paint }) => [label, paint])));
};

const timelinePanel = ({ interval, intervals }) => {
  const moment = (at) => `${seconds(at * interval)} to ${seconds((at + 1) * interval)}`;
  const times = PARTS.map(([key, label, paint]) => ({ label, paint, values: intervals.map(({ cpu }) => cpu[key]) }));
  const whole = stackedChart(times, 'where the time went, over time', (at) =>
    `${moment(at)}: ${times.map(({ label, values }) => `${seconds(values[at])} ${label}`).join(', ')}`);

  const totals = new Map();
  for (const { waits } of intervals) for (const [lock, , ns] of waits) totals.set(lock, (totals.get(lock) ?? 0) + ns);
  const most = [...totals].sort((a, b) => b[1] - a[1]).map(([lock]) => lock).filter((lock) => lock !== null).slice(0, LOCKS_SHOWN);
  const waited = (at, wanted) => sum(intervals[at].waits.filter(([lock]) => wanted(lock)).map(([, , ns]) => ns));
  const layers = most.map((lock, place) => ({
    label: lockName(lock), paint: `hsl(${(place * 360) / LOCKS_SHOWN + 5} 60% 58%)`,
    values: intervals.map((_, at) => waited(at, (other) => other === lock)),
  }));
  if (totals.size > most.length) {
    const others = intervals.map((_, at) => waited(at, (lock) => !most.includes(lock)));
    layers.push({ label: 'other locks', paint: 'var(--faint)', values: others });
  }
  if (layers.length === 0) return whole;
  const locks = stackedChart(layers, 'time waited for each lock, over time', (at) => {
    const parts = layers.filter(({ values }) => values[at] > 0).map(({ label, values }) => `${duration(values[at])} ${label}`);
    return `${moment(at)}: ${parts.join(', ') || 'no waits'}`;
  });
  return el('div', {}, el('h3', {}, 'Time of all threads'), whole, el('h3', {}, 'Waits, by lock'), locks);
};
