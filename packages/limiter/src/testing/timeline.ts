import assert from 'node:assert/strict'

/** The words of a rule that say how to count. */
export interface TimelineRule {
  readonly limit: string | number | readonly (string | number)[]
  readonly algorithm?: string
  readonly whenFull?: 'refuse' | 'wait' | 'shadow'
  readonly queue?: { readonly size?: number; readonly timeout?: string }
  /** Words of the algorithm's own. */
  readonly [option: string]: unknown
}

/** Passes at once, is refused, or passes after so many milliseconds. */
export type Outcome = 'pass' | 'refuse' | number

/** One call, or several alike at one moment, and the answer to each. */
export interface Row {
  /** Milliseconds on the timeline's own clock. */
  readonly at: number
  readonly cost?: number
  /** Whose call it is; one and the same caller where left out. */
  readonly key?: string
  readonly times?: number
  readonly expected: Outcome
  /** What is left afterwards, of the level with least. */
  readonly remaining?: number
  readonly retryAfterMs?: number
  /** Until nothing is remembered, by the level that remembers longest. */
  readonly resetAfterMs?: number
}

/** A table of moments: calls by a rule on a given clock, and their answers. */
export interface Timeline {
  readonly title: string
  readonly rule: TimelineRule
  readonly rows: readonly Row[]
}

/** What a timeline asks of a verdict. */
export interface TimelineAnswer {
  readonly allowed: boolean
  readonly waitMs: number
  readonly retryAfterMs: number
  readonly decisions: readonly { readonly remaining: number; readonly resetAfterMs: number }[]
}

/** Judges one call of a timeline's rule at a moment of its clock; must not hold it back, only say how long it would. */
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
