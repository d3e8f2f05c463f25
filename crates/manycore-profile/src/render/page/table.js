// Tables that sort by their headings and open a row for details.

const ROWS_AT_ONCE = 100;

// columns: { title, about, value(row), show(row), number, part(row) }, where `part` (0 to 1) is drawn as a bar.
// options: caption, sorted (a column's number), details(row), matches(row, words).
const table = (columns, rows, options = {}) => {
  const body = el('tbody');
  const status = el('p', { className: 'faint', role: 'status' });
  const more = el('button', { type: 'button', onclick: () => { shown += ROWS_AT_ONCE; draw(); } }, 'Show more');
  let [column, descending, shown, chosen] = [options.sorted ?? 0, true, ROWS_AT_ONCE, rows];

  const cell = ({ show, number, part }, row, at) => {
    const content = [show(row)];
    if (at === 0 && options.details) content[0] = opener(row, content[0]);
    if (part) content.push(el('span', { className: 'bar', style: { width: `${100 * part(row)}%` } }));
    return el('td', { className: number ? 'number' : '' }, content);
  };

  const opener = (row, content) => el('button', {
    type: 'button', className: 'row', 'aria-expanded': 'false',
    onclick: ({ currentTarget }) => {
      const open = currentTarget.getAttribute('aria-expanded') === 'true';
      currentTarget.setAttribute('aria-expanded', String(!open));
      const line = currentTarget.closest('tr');
      if (open) line.nextSibling.remove();
      else line.after(el('tr', { className: 'details' }, el('td', { colspan: columns.length }, options.details(row))));
    },
  }, content);

  const ordered = () => {
    const value = columns[column].value;
    const compared = (a, b) => {
      const [left, right] = [value(a) ?? -1, value(b) ?? -1];
      const order = typeof left === 'string' ? left.localeCompare(right) : left - right;
      return descending ? -order : order;
    };
    return [...chosen].sort(compared);
  };

  const draw = () => {
    const sorted = ordered();
    body.replaceChildren(...sorted.slice(0, shown).map((row) => el('tr', {}, columns.map((one, at) => cell(one, row, at)))));
    status.textContent = `${count(Math.min(shown, sorted.length))} of ${plural(rows.length, 'row', 'rows')}`;
    status.hidden = rows.length <= ROWS_AT_ONCE && chosen.length === rows.length;
    more.hidden = sorted.length <= shown;
    headings.forEach((heading, at) => {
      const order = descending ? 'descending' : 'ascending';
      heading.setAttribute('aria-sort', at === column ? order : 'none');
    });
  };

  const headings = columns.map(({ title, about, number }, at) => el('th', { scope: 'col', className: number ? 'number' : '' },
    el('button', {
      type: 'button', title: about,
      onclick: () => {
        // Numbers are first wanted from the largest down, words from A up.
        [descending, column] = [at === column ? !descending : Boolean(number), at];
        draw();
      },
    }, title)));

  draw();
  const element = el('div', {},
    el('div', { className: 'wide' }, el('table', {},
      options.caption ? el('caption', {}, options.caption) : null, el('thead', {}, el('tr', {}, headings)), body)),
    status, more);
  const filter = (wanted) => { [chosen, shown] = [rows.filter(wanted), ROWS_AT_ONCE]; draw(); };
  return { element, filter };
};
