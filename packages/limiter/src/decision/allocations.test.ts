import { Session } from 'node:inspector/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Call } from '../call.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'

// Time is noisy and bytes are not. On 64 bits without compressed pointers a word has 8 bytes, an object of n fields 3 + n
// words, and a number that is no small integer 2.
const WORD = 8
/** Eight fields, of which one is such a number. */
const VERDICT = (3 + 8 + 2) * WORD
/** What one level said: six fields, of which one is such a number. */
const LEVEL = (3 + 6 + 2) * WORD
/**
 * The outcome of a refused call, nine fields of which two are such numbers; by how much the call came too early; and the few
 * numbers that a meter works it out by.
 */
const REFUSAL = (3 + 9 + 2 * 2 + 2 + 4 * 2) * WORD
/** What another rule takes: its level, and the moment for which its meter is asked. */
const MORE = LEVEL + 2 * WORD
// the profiler looks at one byte in so many, so it is off by a little; one call in 128 is timed; one number more would be 8 %
const SAMPLING_ERROR = 0.07

const CALLS = 20_000
const ROUNDS_AT_MOST = 12

const profiler = new Session()

beforeAll(() => profiler.connect())
afterAll(() => profiler.disconnect())

interface Site {
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly selfSize: number
  readonly children: readonly Site[]
}

function sitesOf(site: Site): Site[] {
  return [site, ...site.children.flatMap(sitesOf)]
}

/** Bytes allocated per call and where, once the compiler has done what it will do: the least of some rounds. */
async function allocated(once: (i: number) => void, enough: number): Promise<{ bytes: number; sites: string }> {
  let least = { bytes: Number.POSITIVE_INFINITY, sites: '' }
  for (let round = 0; round < ROUNDS_AT_MOST && least.bytes > enough; round++) {
    for (let i = 0; i < CALLS; i++) once(i)
    await profiler.post('HeapProfiler.startSampling', {
      samplingInterval: 512,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    for (let i = 0; i < CALLS; i++) once(i)
    const { profile } = await profiler.post('HeapProfiler.stopSampling')
    const sites = sitesOf(profile.head).toSorted((a, b) => b.selfSize - a.selfSize)
    const bytes = sites.reduce((sum, { selfSize }) => sum + selfSize, 0) / CALLS
    if (bytes < least.bytes) least = { bytes, sites: sites.slice(0, 8).map(describe).join('; ') }
  }
  return least
}

function describe({ callFrame, selfSize }: Site): string {
  const file = callFrame.url.split('/').at(-1) ?? ''
  return `${(selfSize / CALLS).toFixed(0)} in ${callFrame.functionName} ${file}`
}

const calls: Call[] = Array.from({ length: 100 }, (_, i) => {
  return { method: 'GET', path: '/orders', headers: { 'x-account-id': `account-${i}`, 'x-device-id': `device-${i}` } }
})

const LOOSE = '50000000/m'
const TIGHT = '1/d'
const refusalIn = (limit: string): number => (limit === TIGHT ? REFUSAL : 0)

async function bytesPerDecision(rules: readonly RuleOptions[], allowed: boolean, most: number): Promise<string> {
  // a number in an array moves without a new one being made
  const nowMs = new Float64Array([1_000_000])
  const limiter = await createLimiter({
    clock: () => nowMs[0]!,
    identify: { account: ['header:x-account-id'], device: ['header:x-device-id'] },
    rules,
  })
  try {
    let others = 0
    for (const call of calls) limiter.decide(call)
    const { bytes, sites } = await allocated(i => {
      nowMs[0]! += 0.01
      const verdict = limiter.decide(calls[i % calls.length]!)
      if (verdict instanceof Promise || verdict.allowed !== allowed) others++
    }, most)
    expect(others).toBe(0)
    return bytes <= most ? 'within bounds' : `${bytes.toFixed(0)} bytes, not ${most.toFixed(0)}: ${sites}`
  } finally {
    await limiter.close()
  }
}

const algorithms = ['fixed-window', 'sliding-window', 'token-bucket', 'leaky-bucket'] as const

for (const [outcome, limit] of [
  ['an admission', LOOSE],
  ['a refusal', TIGHT],
] as const) {
  test.each(algorithms)(`${outcome} by one rule allocates its verdict and nothing else: %s`, async algorithm => {
    const most = (VERDICT + LEVEL + refusalIn(limit)) * (1 + SAMPLING_ERROR)
    const rules = [{ id: 'account', by: 'account', limit, algorithm }]
    expect(await bytesPerDecision(rules, limit === LOOSE, most)).toBe('within bounds')
  })

  test(`${outcome} by four rules allocates one level more for each rule`, async () => {
    const most = (VERDICT + LEVEL + 3 * MORE + refusalIn(limit)) * (1 + SAMPLING_ERROR)
    const rules = [
      { id: 'whole', limit: LOOSE },
      { id: 'account', by: 'account', limit },
      { id: 'device', by: 'device', limit: LOOSE },
      { id: 'resource', by: 'resource', limit: LOOSE },
    ]
    expect(await bytesPerDecision(rules, limit === LOOSE, most)).toBe('within bounds')
  })
}
