// What threads did while they were on a CPU, from sampled stacks.

const SAMPLED = [
  ['program', 'in the program', 'var(--program)'], ['kernel', 'in the kernel', 'var(--kernel)'],
  ['spin_program', 'spinning for locks of the program\'s own', 'var(--spin)'],
  ['spin_library', 'spinning for locks of the preloaded library', 'var(--found)'],
  ['spin_kernel', 'spinning for locks of the kernel', 'var(--wait)'],
];
const didWhat = ({ part }) => SAMPLED.find(([key]) => key === part.replace('-', '_'))[1];

const samplesPanel = ({ source, rate, taken, lost, kernel_permitted: whole, shares, intervals, functions, stacks, limits, refused }) => {
  if (refused !== null) return el('p', {}, `CPU time was not sampled: ${refused}.`);
  const known = SAMPLED.filter(([key]) => shares[key] !== null);
  const layers = known.map(([key, label, paint]) => ({ label, paint, values: intervals.map((one) => (one[key] ?? 0) * one.samples) }));
  const number = (title, value, show) => ({ title, number: true, value, show: (one) => show(value(one)) });
  const what = { title: 'What threads do there', value: didWhat, show: didWhat };
  const columns = [what, number('Share', ({ share }) => share, percent), number('Samples', ({ samples }) => samples, count)];
  const innermost = ({ frames }) => (frames.length === 0 ? 'not known' : profile.frames[frames[0]][0]);
  return el('div', {},
    el('p', {}, `${plural(taken, 'sample', 'samples')} by ${source}, ${rate} a second of each thread's CPU time${whole ? '' : ' outside of the kernel'}; ${count(lost)} lost.`),
    el('div', { className: 'split', role: 'img', 'aria-label': 'what threads did on the CPU; the list below says the same' },
      known.map(([key, label, paint]) => el('span', { title: label, style: { width: `${100 * shares[key]}%`, background: paint } }))),
    legend(known.map(([key, label, paint]) => [`${percent(shares[key])} ${label}`, paint])),
    intervals.length < 2 ? null : stackedChart(layers, 'samples over time', (at) =>
      layers.map(({ label, values }) => `${Math.round(values[at])} ${label}`).join(', ')),
    stacks.length === 0 ? null : [el('h3', {}, 'Where threads spin'),
      table([{ title: 'Innermost call', value: innermost, show: (one) => name(innermost(one)) }, ...columns], stacks,
        { sorted: 2, details: ({ frames }) => calls(frames) }).element],
    el('h3', {}, 'Functions'),
    table([{ title: 'Function', value: (one) => one.name, show: (one) => [name(one.name), el('span', { className: 'faint' }, ` ${one.module}`)] }, ...columns],
      functions, { sorted: 2 }).element,
    limits.length === 0 ? null : el('ul', {}, limits.map((limit) => el('li', {}, limit))));
};
