// Matching: what a decision costs among 10, 100, 1 000 and 10 000 rules of mixed kinds (exact paths, prefixes, parameters,
// globs, hosts, headers). Each call meets the same two rules, however many others there are.

import { createLimiter } from '../../packages/limiter/dist/index.js'
import { timeCalls } from '../load/time-calls.mjs'

const sizes = [10, 100, 1000, 10_000]

const kinds = [
  i => ({ match: { path: `/service-${i}/orders` }, call: { path: `/service-${i}/orders` } }),
  i => ({ match: { path: `/service-${i}/**`, method: ['GET', 'PUT'] }, call: { path: `/service-${i}/items/7` } }),
  i => ({ match: { path: `/users/:id/items-${i}` }, call: { path: `/users/42/items-${i}` } }),
  i => ({ match: { path: `/files/report-${i}-*.pdf` }, call: { path: `/files/report-${i}-may.pdf` } }),
  i => ({ match: { host: `tenant-${i}.example.com` }, call: { path: '/', host: `tenant-${i}.example.com` } }),
  i => ({ match: { header: { 'x-plan': `plan-${i}` } }, call: { path: '/', headers: { 'x-plan': `plan-${i}` } } }),
]

async function decideAmong(count, called) {
  const made = Array.from({ length: count - 1 }, (_, i) => kinds[i % kinds.length](i))
  const rules = made.map(({ match }, i) => ({
    id: `rule-${i}`,
    match,
    by: 'ip',
    limit: '1000000/s',
    algorithm: 'token-bucket',
  }))
  const whole = { id: 'whole', limit: '10000000/s', algorithm: 'token-bucket' }
  const limiter = await createLimiter({ rules: [whole, ...rules] })
  const calls = made.slice(0, called).map(({ call }) => ({ method: 'GET', ip: '203.0.113.9', headers: {}, ...call }))
  return i => limiter.decide(calls[i % calls.length])
}

const subjectOf = count => `${count.toLocaleString('en').replaceAll(',', ' ')} rules`
const counts = new Map(sizes.map(count => [subjectOf(count), count]))
const subjects = [...counts.keys()]
const [few] = subjects
const many = subjects.at(-1)

export const about = `What one decision costs among 10 to 10 000 rules of mixed kinds: exact paths, prefixes, parameters, globs, hosts and headers.
Each call matches the same number of rules, two, however many others there are; what grows is the search for them. Peers have no
rules to search: each is one limit that its user has put on one route. With all rules called in turn there are also more counts
to find in memory, which is not a cost of matching.
`

export const cases = [
  { name: 'a decision, nine rules called', unit: 'ns/op', called: 9, subjects },
  // with more rules in use there are more counts to find in memory, which is not the matching's cost
  { name: 'a decision, all rules called in turn', unit: 'ns/op', called: Number.POSITIVE_INFINITY, subjects },
]

export const charted = cases.map(({ name }) => name)

/** All subjects are Diana. */
export const allOurs = true

export const marks = [{ case: 'a decision, nine rules called', ours: many, theirs: few, times: 2 }]

/** Measures one subject in this process, which does nothing else. */
export async function measure({ called }, subject) {
  const decide = await decideAmong(counts.get(subject), called)
  return timeCalls(decide)
}
