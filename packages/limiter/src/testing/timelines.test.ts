import { describe, expect, it } from 'vitest'
import { createTestDecider } from './test-decider.ts'
import { runTimeline, type Timeline, type TimelineDecider } from './timeline.ts'
import { timelines } from './timelines.ts'

const aDayIn2026 = 20_772 * 86_400_000

function inMemory({ rule }: Timeline, startMs: number): TimelineDecider {
  const judge = createTestDecider([rule])
  return (atMs, cost, key) => {
    const call = { method: 'GET', path: '/', attributes: { key } }
    return judge.takeLocal(call, cost, Math.round((startMs + atMs) * 1000))
  }
}

describe('the memory store answers every table of moments', () => {
  it.each(timelines)('$title', async timeline => {
    await runTimeline(timeline, inMemory(timeline, aDayIn2026))
  })

  it.each(timelines)(
    'the memory store answers every table of moments with a clock that begins at zero: $title',
    async timeline => {
      await runTimeline(timeline, inMemory(timeline, 0))
    },
  )
})

describe('a table of moments', () => {
  const timeline: Timeline = {
    title: 'two a second',
    rule: { algorithm: 'fixed-window', limit: '2/s' },
    rows: [
      { at: 0, times: 2, expected: 'pass' },
      { at: 10, expected: 'refuse', remaining: 0, retryAfterMs: 990, resetAfterMs: 990 },
    ],
  }

  it.each([
    [{ expected: 'pass' }, 'the answer should be pass, and is refuse'],
    [{ expected: 990 }, 'the answer should be 990, and is refuse'],
    [{ remaining: 1 }, 'remaining should be 1, and is 0'],
    [{ retryAfterMs: 989 }, 'retryAfterMs should be 989, and is 990'],
    [{ resetAfterMs: 991 }, 'resetAfterMs should be 991, and is 990'],
  ] as const)('a table of moments that expects %o fails, with the row', async (change, message) => {
    const rows = [timeline.rows[0]!, { ...timeline.rows[1]!, ...change }]
    await expect(runTimeline({ ...timeline, rows }, inMemory(timeline, 0))).rejects.toThrow(
      `two a second: row 2, at 10 ms, cost 1: ${message}`,
    )
  })

  it('a failing table of moments names the call with the wrong answer', async () => {
    const rows = [{ at: 0, times: 3, expected: 'pass' as const }]
    await expect(runTimeline({ ...timeline, rows }, inMemory(timeline, 0))).rejects.toThrow(
      'row 1 (call 3 of 3), at 0 ms, cost 1: the answer should be pass, and is refuse',
    )
  })

  it('each table of moments has a title of its own', () => {
    expect(new Set(timelines.map(({ title }) => title)).size).toBe(timelines.length)
  })
})
