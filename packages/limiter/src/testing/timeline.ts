import assert from 'node:assert/strict'

/** The options of a rule that define how it counts. */
export interface TimelineRule {
  readonly limit: string | number | readonly (string | number)[]
  readonly algorithm?: string
  readonly whenFull?: 'refuse' | 'wait' | 'shadow'
  readonly queue?: { readonly size?: number; readonly timeout?: string; readonly perCaller?: number }
  /** Options of the algorithm. */
  readonly [option: string]: unknown
}

/** The call passes at once, is refused, or passes after this number of milliseconds. */
export type Outcome = 'pass' | 'refuse' | number

/** One call, or several alike at one moment, and the answer to each. */
export interface Row {
  /** Milliseconds on the timeline's own clock. */
  readonly at: number
  readonly cost?: number
  /** The caller; left out, always the same one. */
  readonly key?: string
  readonly times?: number
  readonly expected: Outcome
  /** The permits left afterwards, of the level with the fewest. */
  readonly remaining?: number
  readonly retryAfterMs?: number
  /** The time after which nothing is remembered, by the level that remembers longest. */
  readonly resetAfterMs?: number
}

/** A table of moments: calls by a rule on a given clock, and their answers. */
export interface Timeline {
  readonly title: string
  readonly rule: TimelineRule
  readonly rows: readonly Row[]
}

/** The fields of a verdict that a timeline checks. */
export interface TimelineAnswer {
  readonly allowed: boolean
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly { readonly remaining: number; readonly resetAfterMs: number }[]
}

/** Decides one call of a timeline's rule at a moment of its clock; must not delay it, only report for how long it would. */
export type TimelineDecider = (atMs: number, cost: number, key: string) => TimelineAnswer | Promise<TimelineAnswer>

/** Makes the calls of a timeline, in order, and throws at the first answer that is not the expected one. */
export async function runTimeline(timeline: Timeline, judge: TimelineDecider): Promise<void> {
  for (const [index, row] of timeline.rows.entries()) {
    const { at, cost = 1, key = 'caller', times = 1 } = row
    for (let call = 1; call <= times; call++) {
      const answer = await judge(at, cost, key)
      const place = `row ${index + 1}${times > 1 ? ` (call ${call} of ${times})` : ''}, at ${at} ms, cost ${cost}`
      compare(row, answer, `${timeline.title}: ${place}`)
    }
  }
}

function compare(row: Row, answer: TimelineAnswer, place: string): void {
  const seen = {
    expected: answer.allowed ? answer.waitMs || 'pass' : 'refuse',
    remaining: Math.min(...answer.decisions.map(decision => decision.remaining)),
    retryAfterMs: answer.retryAfterMs,
    resetAfterMs: Math.max(...answer.decisions.map(decision => decision.resetAfterMs)),
  }
  for (const part of ['expected', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const) {
    if (row[part] === undefined || row[part] === seen[part]) continue
    const name = part === 'expected' ? 'the answer' : part
    throw new assert.AssertionError({
      message: `${place}: ${name} should be ${row[part]}, and is ${seen[part]}`,
      actual: seen[part],
      expected: row[part],
      operator: 'strictEqual',
    })
  }
}
