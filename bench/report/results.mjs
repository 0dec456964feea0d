// From samples to figures, and from figures to marks.

const median = values => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

/** The figures of one subject in one case: medians, and the spread of the one that is compared. */
export function summarise(topic, one, subject, samples) {
  const values = samples.map(({ value }) => value)
  const { value: _value, ...beside } = samples[0]
  const medians = Object.keys(beside).map(name => [name, median(samples.map(sample => sample[name]))])
  return {
    topic,
    case: one.name,
    unit: one.unit,
    subject,
    rounds: samples.length,
    value: median(values),
    spread: [Math.min(...values), Math.max(...values)],
    beside: Object.fromEntries(medians),
  }
}

/** Whether a mark is met: `ours` takes at most `most`, or `times` as much as `theirs`. */
export function judge(mark, results) {
  const valueBy = subject => results.find(result => result.case === mark.case && result.subject === subject).value
  const value = valueBy(mark.ours)
  const most = mark.most ?? valueBy(mark.theirs) * mark.times
  const asked = mark.most === undefined ? `≤ ${mark.times.toFixed(2)} × ${mark.theirs}` : `≤ ${mark.most}`
  const reached = mark.most === undefined ? (value / valueBy(mark.theirs)).toFixed(2) : value.toFixed(0)
  return { case: mark.case, ours: mark.ours, asked, reached, met: value <= most }
}

/** Three digits, which is more than a busy machine can tell. */
export const rounded = value => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))

/** Results by case, in the order in which they were measured. */
export function byCase(results) {
  const names = [...new Set(results.map(result => result.case))]
  return names.map(name => [name, results.filter(result => result.case === name)])
}
